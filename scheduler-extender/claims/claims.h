/* Claims: which devices DRA drivers offer (ResourceSlices), and which of them ResourceClaims hold, by name.
 *
 * A node's devices are those of the slices that name it. Of a pool the slices of the newest generation count,
 * once all of them are there, and until then those of the last one that was whole; where there is none,
 * nothing is offered, and what is free there is not known. A device is taken while a claim's
 * allocation names it, in use or not, but for admin access; the allocation says on which node, so that a
 * kubelet that wipes its node's slices gives nothing back. Whoever asks gets bounds: a pod's claims ask for
 * at least so many devices, a node has at most so many free ones. Classes, selectors, constraints, taints,
 * and how much of a device a claim wants are kube-scheduler's to judge.
 *
 * Of drivers that a vendor's row names, and of ours, whose devices name their vendor and their group, chips
 * are counted too: devices that draw on one counter set are one chip, which is held once any of them is;
 * partitions that draw on none are no chips. A claim that kube-scheduler made for a pod's extended resources
 * holds none: the pod's requests count them.
 *
 * A device of ours that stands for several, a whole group, is none itself: who has it has each of them. One
 * that several claims share is as many devices as it has shares, and as many chips, as its ids are counted
 * elsewhere; all are held when no memory is left. Another driver's shares are not counted, and its node not
 * judged.
 *
 * Pure but for the heap. A change costs O(devices x claims) of its node, a look-up O(1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/dra_name.h" /* DRA_NAME_DRIVER */
#include "agent/vendor/vendor.h"

#define CLAIMS_DEVICES_MAX 128        /* of a slice; this and the next as Kubernetes has it */
#define CLAIMS_MEMBERS_MAX 512        /* of devices of a slice that stand for several */
#define CLAIMS_RESULTS_MAX 32         /* of a claim */
#define CLAIMS_ASKS_MAX    8          /* requests of a pod's claims by classes of ours that are read */
#define CLAIMS_CHOICES_MAX 8          /* of one of them */
#define CLAIMS_PER_POD_MAX 32         /* that are read of a pod: with more it is asked for less */
#define CLAIMS_ASKED_MAX   UINT32_MAX /* devices that a pod is said to ask for */

struct claims;

struct claims_slice_device {
        const char *name;
        const char *counters;              /* the first counter set that it draws on; NULL = none */
        const struct vendor *vendor;       /* of a device of our driver; NULL = as the slice has it */
        const char *group;                 /* likewise: the device group that it is of; NULL = not told */
        bool part;                         /* its driver calls it something else than a whole device */
        bool shared;                       /* several claims may have it */
        bool sick;                         /* of planned ones: it must not be used */
        uint32_t shares;                   /* and of a device of our driver so many; 0 = not told */
        uint64_t memory_bytes;             /* of which claims have parts; 0 = not told */
        size_t first_member, member_count; /* in the slice's members: the devices it stands for */
};

/* This and the next two: what an object says. Borrowed. */
struct claims_slice_facts {
        const char *driver, *pool;
        const char *node; /* NULL = its devices are not those of one node */
        int64_t generation, slice_count;
        const struct vendor *vendor; /* whose chips they are; NULL = not known */
        struct claims_slice_device devices[CLAIMS_DEVICES_MAX];
        size_t device_count;
        bool planned; /* no slice: its inventory tells of devices that no slice has (claims_planned.h) */
        const char *members[CLAIMS_MEMBERS_MAX]; /* names of devices of the pool */
        size_t member_count;
};

/* A request by classes of ours: so many devices of a vendor, or of a runtime; the first choice that is there.
 */
struct claims_ask {
        struct claims_choice {
                const char *of; /* "nvidia", "cuda" */
                uint32_t devices;
        } choices[CLAIMS_CHOICES_MAX];
        size_t choice_count;
        bool one_group; /* all of them of one device group */
};

struct claims_claim_facts {
        bool allocated;
        bool planned;     /* remuda-controller allocates it: DEVICE_CLASS_PLANNED */
        const char *node; /* of its allocation; NULL = not one node's */
        uint64_t asked;   /* devices, at least */
        struct claims_result {
                const char *driver, *pool, *device;
                uint64_t memory_bytes; /* that it has of a shared one; 0 = not told */
                uint32_t shares;       /* likewise; 0 = not told */
        } results[CLAIMS_RESULTS_MAX]; /* without those of admin access */
        size_t result_count;
        const char *pod, *pod_uid; /* for which it is reserved, the first of them; NULL = for none */
        struct claims_ask asks[CLAIMS_ASKS_MAX]; /* of its requests those by classes of ours alone */
        size_t ask_count;
};

struct claims_pod_facts {
        const char *names[CLAIMS_PER_POD_MAX]; /* of claims in its namespace, as far as they are there */
        bool of_template[CLAIMS_PER_POD_MAX];  /* ... or of the template of one that is still to be made */
        const char *templates[CLAIMS_PER_POD_MAX]; /* ... of one that is made; NULL = of none */
        bool made[CLAIMS_PER_POD_MAX]; /* ... or made of a template for this pod: the claim goes with it */
        size_t name_count;
        bool has_claims;      /* there or not */
        const char *extended; /* the claim that was made for its extended resources; NULL = none */
        bool asks_us;         /* it asks for POD_RESOURCE_CLAIM */
        bool begun;           /* it has a sandbox, or had: its claims were prepared */
};

struct claims *claims_new(void);

/* claims_new_on() - pods to be tried, with the claims of another one, which outlives it: claims_asked.h. */
struct claims *claims_new_on(const struct claims *base);
void claims_free(struct claims *claims); /* accepts NULL */

/* claims_set_*() - an object is new or changed; NULL = it is gone. 0 or -ENOMEM: what was there is gone. */
int claims_set_slice(struct claims *claims, const char *name, const struct claims_slice_facts *facts);
int claims_set_claim(struct claims *claims, const char *key, const struct claims_claim_facts *facts);
int claims_set_pod(struct claims *claims, const char *key, const struct claims_pod_facts *facts);

/* claims_reserved() - the pod for which an allocated claim is reserved; NULL = there is none. Borrowed until
 * the claim changes. */
const char *claims_reserved(const struct claims *claims, const char *key, const char **ret_uid);

/* claims_node() - where an allocated claim has its devices; NULL = on no single node. Borrowed likewise. */
const char *claims_node(const struct claims *claims, const char *key);

/* claims_set_template() - what a claim that is made of it would ask for. */
int claims_set_template(struct claims *claims, const char *key, const struct claims_claim_facts *facts);

/* claims_pod() - has the pod of that key claims at all?
 * @ret_asks_us: may be NULL */
bool claims_pod(const struct claims *claims, const char *pod_key, bool *ret_asks_us);

/* claims_next_changed() - the name of a node whose account may have changed since it was named last; NULL =
 * there is no other. It is valid until the next call of any of these functions. */
const char *claims_next_changed(struct claims *claims);

/* claims_loose() - devices that are not one node's: any node may come to have them. claims_has_slices() - is
 * anything offered at all? Where nothing is, nobody may have told. claims_held() - claims that are allocated.
 */
uint32_t claims_loose(const struct claims *claims);
bool claims_has_slices(const struct claims *claims);
uint32_t claims_held(const struct claims *claims);
