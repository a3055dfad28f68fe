/* Claims, inside: shared by claims.c (what was told) and claims_account.c (what follows). Nobody else
 * includes this. */
#pragma once

#include <string.h>

#include "base/name_map.h"
#include "scheduler-extender/claims/claims.h"

struct offered {
        uint32_t name, chip;         /* in the slice's text; chip: its counter set, else its own name */
        uint32_t group;              /* likewise; 0 = not told */
        const struct vendor *vendor; /* NULL = nobody's that is known */
        bool part, shared, sick;
        bool taken, held;               /* by claims; and as a chip */
        uint32_t members, member_count; /* in the slice's text, one behind the other: it stands for these */
        uint32_t shares, used_shares;   /* 0 = it is not shared, or nobody knows in how many */
        uint32_t beside_shares;         /* of the used ones: that pods' requests count */
        uint64_t memory_bytes, used_bytes;
};

struct slice {
        struct name_map_entry entry;
        struct place *place; /* NULL = of no single node */
        struct slice *next;
        int64_t generation, slice_count;
        const struct vendor *vendor; /* of its driver */
        uint32_t device_count;
        bool counts;  /* is of the generation of its pool that counts: the newest, or until that one is
                         whole the last one that was */
        bool whole;   /* and all of that one are, or were, there */
        bool of_last; /* of its pool's last generation that was whole */
        bool planned; /* of an inventory: kube-scheduler knows nothing of its devices */
        bool gone;    /* it was deleted or made anew, and counts until the newest generation is whole */
        const char *driver, *pool, *text;
        struct offered devices[];
};

static inline bool same_pool(const struct slice *slice, const char *driver, const char *pool)
{
        return strcmp(slice->driver, driver) == 0 && strcmp(slice->pool, pool) == 0;
}

#define TEMPLATE_MARK "#" /* before the key of a template, among the claims: no namespace begins so */

struct result {
        const char *driver, *pool, *device;
        uint64_t memory_bytes;
        uint32_t shares;
};

struct claim {
        struct name_map_entry entry;
        struct place *place;
        struct claim *next;
        uint64_t asked;
        bool allocated;
        const char *pod, *pod_uid; /* NULL, both = it is reserved for none */
        struct claims_ask *asks;   /* behind the results */
        uint32_t result_count, ask_count;
        struct result results[];
};

/* A pod that has claims. */
struct pod {
        struct name_map_entry entry, extended_entry; /* the second: by the claim of its extended resources */
        bool has_claims, asks_us, begun;
        uint32_t claim_count, made; /* CLAIMS_PER_POD_MAX bits: the pod's own claims, which go with it */
        const char *claims[];       /* keys, and behind them as many of templates, NULL = none */
};

/* A node, as far as slices and claims name it. */
struct place {
        struct name_map_entry entry;
        struct place *next_changed;
        bool changed;
        struct slice *slices;
        struct claim *claims;
};

struct claims {
        const struct claims
                *base; /* whose claims these are, and pods that are not here; NULL = all are here */
        struct name_map slices, claims, pods, extended, places;
        struct place *changed, *named;
        uint32_t loose, held;
};
