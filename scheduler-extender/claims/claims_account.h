/* Claims, the account of a node: how many devices it is offered and has free, and which chips of which
 * vendors these are. Worked out from what was told last (claims.h, whose rules these are). */
#pragma once

#include "scheduler-extender/claims/claims.h"

#define CLAIMS_ACCOUNT_VENDORS_MAX 4 /* whose chips are counted on one node */

struct claims_account {
        bool judged; /* else nothing is known of what is free */
        uint32_t offered, free;
        struct claims_account_chips {
                const struct vendor *vendor;
                bool offers; /* there are slices with its chips */
                uint32_t offered, held;
        } chips[CLAIMS_ACCOUNT_VENDORS_MAX];
        size_t chip_count;
};

/* claims_account() - of a node; one that nothing is known of has no devices. */
void claims_account(struct claims *claims, const char *node, struct claims_account *ret);
