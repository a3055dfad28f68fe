/* Spread: how even pods are over the domains of a topology, some of whom are only planned by others. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the fewest are. */
struct spread {
        uint32_t least, next_least; /* in the domain that has the fewest, and of all the others */
        uint32_t domain;            /* that one */
        bool too_few;               /* domains: the least is 0 */
};

/* spread_find() - @live: by domain, 1..@count, the pods; @there: the domains that count. O(domains). */
struct spread spread_find(const uint32_t *live, const bool *there, uint32_t count, uint32_t min_domains);

/* spread_least() - the fewest in any domain if `most` are in this one.
 * kube-scheduler counts who exists. Who is planned by others may come at any time, or never: worst for a
 * domain is that all come who are planned there, and none elsewhere. Example: in zone a one pod and one
 * planned, in b one, maxSkew 1. The next goes to b: in a it could be the third, of one in b. With two in b it
 * may go to a, whether the planned one comes or not. */
uint32_t spread_least(const struct spread *spread, const bool *there, uint32_t domain, uint32_t most);
