/* Claims, the account of a node: how many devices it is offered and has free, and which chips of which
 * vendors these are. Worked out from what was told last (claims.h, whose rules these are). */
#pragma once

#include "scheduler-extender/claims/claims.h"

#define CLAIMS_ACCOUNT_VENDORS_MAX 4  /* whose chips are counted on one node */
#define CLAIMS_ACCOUNT_GROUPS_MAX  16 /* that claims hold chips of on one node, by name */

struct claims_account {
        bool judged; /* else nothing is known of what is free */
        uint32_t offered, free;
        uint32_t ours, ours_free; /* of them, of our driver */
        struct claims_account_chips {
                const struct vendor *vendor;
                bool offers;  /* there are slices with its chips */
                bool planned; /* ... none that kube-scheduler knows */
                uint32_t offered, held;
        } chips[CLAIMS_ACCOUNT_VENDORS_MAX];
        size_t chip_count;
        struct claims_account_group {
                const char *name; /* borrowed until a slice changes */
                uint32_t held;
        } groups[CLAIMS_ACCOUNT_GROUPS_MAX];
        size_t group_count;
        uint32_t unnamed; /* devices of our driver that are held, and that no slice has: nobody says whose
                             chips they are */
};

/* claims_account() - of a node; one that nothing is known of has no devices. */
void claims_account(struct claims *claims, const char *node, struct claims_account *ret);

/* A device of our driver, which stands for no others, that a claim on the node has. Borrowed. */
struct claims_account_had {
        const char *device, *group; /* as its slice has them; group "" = not told */
        const char *claim;          /* its key */
        const char *pod, *pod_uid;  /* for which one of its namespace it is reserved; NULL = for none */
        uint32_t shares;            /* 1 of one that is not shared */
};

/* claims_account_tell() - of a node, whose account was asked for since it changed; also what pods' requests
 * count already. Shares that are left of a device
 * without memory are its first claim's. */
void claims_account_tell(const struct claims *claims, const char *node,
                         void (*tell)(void *userdata, const struct claims_account_had *had), void *userdata);
