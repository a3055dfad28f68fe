/* Levels: is a sum of gradients over workers on several hosts quicker in two levels than in one?
 *
 * In one level all workers stand in a ring in the order of their ranks, and every neighbour's link carries
 * 2 (P-1)/P of the gradients of P workers. In two, a group adds up among its members, the L leaders stand in
 * a ring, and the groups are told the result. The link of a host carries what its ranks send to those of
 * others. Modelled is the time for each megabyte, on the host that takes the longest:
 *
 *      one level    edges out of the host x 2 (P-1)/P / link
 *      two levels   edges out of the host x 2 (L-1)/L / link  +  members of its largest group / LEVELS_INSIDE
 *
 * Inside is counted as added to the link's time, though pieces overlap, and latencies are left out, as who
 * plans knows neither the gradients' size nor the library's algorithm: so two levels are proposed where they
 * are LEVELS_WORTH of the time or less, and whoever sums may try both (trainer/strategies/levels_trial.h).
 * Two hosts of four workers and 1 Gbit/s: 14.0 ms a megabyte in one level; with a group a host 8.0 + 2.0.
 *
 * Groups are those given, or all of a node together, where several of its groups would share its link.
 * Pure. O(groups^2). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LEVELS_NETWORK_MBPS 1000 /* where nobody says what a node's network does */
#define LEVELS_INSIDE                                                                                        \
        2e6 /* assumed: bytes a ms that memory shared by the members of a group takes in and adds */
#define LEVELS_WORTH 0.9

struct levels_group { /* workers of a device group; groups in the order of their ranks */
        const char *node;
        size_t workers;
        uint64_t network_mbps; /* of its node; 0 = not known */
};

enum levels_cut { LEVELS_ONE, LEVELS_BY_GROUP, LEVELS_BY_NODE };

struct levels_choice {
        enum levels_cut cut;
        size_t nodes;
        double one_ms, two_ms;     /* modelled, for each megabyte (1e6 bytes); two_ms of the better cut */
        double one_link, two_link; /* gradients' sizes that the busiest link carries each way */
        uint64_t network_mbps;     /* of that link, as it was counted */
        size_t unknown;            /* nodes whose network nobody says */
};

void levels_choose(const struct levels_group *groups, size_t count, struct levels_choice *ret);

/* levels_sizes() - workers of each group of a cut, in the order of the ranks.
 * @ret: room for `count` numbers. Return: how many. */
size_t levels_sizes(const struct levels_group *groups, size_t count, enum levels_cut cut, size_t *ret);
