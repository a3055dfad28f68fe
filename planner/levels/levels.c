/* Rings over runs of workers: who sends to whom over which host's link. */
#include "planner/levels/levels.h"

#include <stdbool.h>
#include <string.h>

static bool same_node(const struct levels_group *a, const struct levels_group *b)
{
        return strcmp(a->node, b->node) == 0;
}

/* Does group i begin another group of the cut? By node, groups of one node that follow each other are one. */
static bool begins(const struct levels_group *groups, size_t i, enum levels_cut cut)
{
        return i == 0 || cut != LEVELS_BY_NODE || !same_node(&groups[i - 1], &groups[i]);
}

size_t levels_sizes(const struct levels_group *groups, size_t count, enum levels_cut cut, size_t *ret)
{
        size_t sizes = 0;

        for (size_t i = 0; i < count; i++) {
                if (begins(groups, i, cut))
                        ret[sizes++] = 0;
                ret[sizes - 1] += groups[i].workers;
        }
        return sizes;
}

/* A ring leaves a host where the group after it is another's: edges out of the node of group i. Members of a
 * group follow each other in the ring, or it has one, its leader: either way the edges are the same. */
static size_t edges_out(const struct levels_group *groups, size_t count, const struct levels_group *of)
{
        size_t edges = 0;

        for (size_t i = 0; i < count; i++)
                edges += same_node(&groups[i], of) && !same_node(&groups[(i + 1) % count], of);
        return edges;
}

static size_t largest_on(const struct levels_group *groups, size_t count, enum levels_cut cut,
                         const struct levels_group *of)
{
        size_t largest = 0, size = 0;

        for (size_t i = 0; i < count; i++) {
                size = begins(groups, i, cut) ? groups[i].workers : size + groups[i].workers;
                if (same_node(&groups[i], of) && size > largest)
                        largest = size;
        }
        return largest;
}

static size_t members_of(const struct levels_group *groups, size_t count, enum levels_cut cut)
{
        size_t members = 0;

        for (size_t i = 0; i < count; i++)
                members += cut == LEVELS_ONE ? groups[i].workers : begins(groups, i, cut);
        return members;
}

/* ms a megabyte on the host that takes the longest, what its link carries, and how fast it is counted. */
static double cost(const struct levels_group *groups, size_t count, enum levels_cut cut, double *ret_link,
                   uint64_t *ret_mbps)
{
        double members = (double) members_of(groups, count, cut), worst = -1;

        for (size_t i = 0; i < count; i++) {
                uint64_t mbps = groups[i].network_mbps > 0 ? groups[i].network_mbps : LEVELS_NETWORK_MBPS;
                double link = (double) edges_out(groups, count, &groups[i]) * 2 * (members - 1) / members;
                double inside = cut == LEVELS_ONE ? 0 : (double) largest_on(groups, count, cut, &groups[i]);
                double ms = link * 8e6 / ((double) mbps * 1e3) + inside * 1e6 / LEVELS_INSIDE;

                if (ms <= worst)
                        continue;
                worst = ms;
                *ret_link = link;
                *ret_mbps = mbps;
        }
        return worst;
}

/* Is it the first group of its node? */
static bool is_new(const struct levels_group *groups, size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (same_node(&groups[k], &groups[i]))
                        return false;
        return true;
}

void levels_choose(const struct levels_group *groups, size_t count, struct levels_choice *ret)
{
        static const enum levels_cut cuts[] = { LEVELS_BY_GROUP, LEVELS_BY_NODE };
        uint64_t mbps = 0;
        double link = 0;

        *ret = (struct levels_choice){ .cut = LEVELS_ONE };
        for (size_t i = 0; i < count; i++)
                if (is_new(groups, i)) {
                        ret->nodes++;
                        ret->unknown += groups[i].network_mbps == 0;
                }
        if (ret->nodes < 2)
                return;
        ret->one_ms = cost(groups, count, LEVELS_ONE, &ret->one_link, &ret->network_mbps);
        for (size_t c = 0; c < 2; c++) {
                double ms = cost(groups, count, cuts[c], &link, &mbps);

                if (c > 0 && ms >= ret->two_ms)
                        continue;
                ret->two_ms = ms;
                ret->two_link = link;
                if (ms <= LEVELS_WORTH * ret->one_ms) {
                        ret->cut = cuts[c];
                        ret->network_mbps = mbps;
                }
        }
}
