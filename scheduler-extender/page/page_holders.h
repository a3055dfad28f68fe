/* Page holders: who has which chips of a node.
 *
 * A claim says which device it has, and for which pod. Of the device plugin's chips the agent tells the pod
 * of those that may not be used (heldBy). Of the others nobody tells which chip a pod has: the ledger's
 * account says how many of a group, and as many are shown as his, usable ones first, in the order of the
 * agent. So counts are true, and which one it is may not be: *ret_counted says so. Pure but for the heap. */
#pragma once

#include "scheduler-extender/claims/claims.h"
#include "scheduler-extender/ledger/ledger.h"
#include "scheduler-extender/page/page_node.h"

struct page_holders_part {
        const struct ledger_pod *pod; /* this and the next: at most one; none: claims that name no pod */
        const struct ledger_job *job; /* that leases them */
        uint32_t group;               /* symbol */
        uint32_t left;                /* chips, or shares, that are not dealt yet, nor named */
        uint32_t named;               /* of which claims say the device */
};

/* Of them the device that a claim names. */
struct page_holders_named {
        const char *device; /* its name in a slice. Borrowed from the claims */
        size_t part;
        uint32_t shares; /* 0 = it is dealt */
};

/* Of one node. Zero-initialised. */
struct page_holders {
        struct page_holders_part *parts;
        size_t count, capacity;
        struct page_holders_named *named;
        size_t named_count, named_capacity;
        bool failed; /* no memory for another */
};

/* Whose a chip is. */
struct page_holders_chip {
        const struct page_holders_part *part; /* the first; NULL = nobody's that the account knows */
        uint32_t used;                        /* shares; 1 of a chip that is not shared */
};

/* page_holders_read() - @claims: may be NULL; they and the ledger stay as they are until the holders are
 * freed. Return: 0 or -ENOMEM. Release with page_holders_free() in any case. */
int page_holders_read(struct page_holders *holders, const struct ledger *ledger, const struct claims *claims,
                      const struct ledger_node *node);
void page_holders_free(struct page_holders *holders);

/* page_holders_deal() - the parts of this group dealt to its chips.
 * @ret: a place for each of max(group->total, group->count), zeroed; those beyond group->count are of chips
 * that are not told one by one. @ret_counted: was one dealt by count, while others of the group are nobody's
 * or another's? */
void page_holders_deal(struct page_holders *holders, const struct ledger *ledger,
                       const struct page_node_told *told, const struct page_node_group *group,
                       struct page_holders_chip *ret, bool *ret_counted);
