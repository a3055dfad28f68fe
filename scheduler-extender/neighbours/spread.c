/* The least of all domains, and the least of all but one. */
#include "scheduler-extender/neighbours/spread.h"

struct spread spread_find(const uint32_t *live, const bool *there, uint32_t count, uint32_t min_domains)
{
        struct spread spread = { .least = INT32_MAX, .next_least = INT32_MAX };
        uint32_t domains = 0;

        for (uint32_t d = 1; d <= count; d++) {
                if (!there[d])
                        continue;
                domains++;
                if (live[d] < spread.least) {
                        spread.next_least = spread.least;
                        spread.least = live[d];
                        spread.domain = d;
                } else if (live[d] < spread.next_least) {
                        spread.next_least = live[d];
                }
        }
        spread.too_few = domains < min_domains;
        return spread;
}

uint32_t spread_least(const struct spread *spread, const bool *there, uint32_t domain, uint32_t most)
{
        uint32_t least = domain == spread->domain ? spread->next_least : spread->least;

        if (spread->too_few)
                return 0;
        return there[domain] && most < least ? most : least;
}
