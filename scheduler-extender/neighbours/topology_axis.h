/* Topology axis: the domains that the nodes are in by one label (their zones, their hosts), numbered, and how
 * many pods in each keep somebody out of it. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;
struct node_match_trait;

/* Domains are numbered from 1 as they are met; 0 = the node is in none. */
struct topology_axis {
        const char *key;                       /* borrowed */
        uint32_t *of_node;                     /* by index of the node */
        const struct node_match_trait **names; /* of the domains */
        uint32_t count;
        uint32_t *base, *live; /* by domain: pods that keep this one out, without and with a plan; `live`
                                  NULL: it is not judged */
};

/* topology_axis_make() - O(nodes x labels). Return: false when out of memory: then it is not judged.
 * topology_axis_bytes() - of memory. topology_axis_free() in any case. */
bool topology_axis_make(const struct ledger *ledger, const char *key, struct topology_axis *ret);
size_t topology_axis_bytes(const struct topology_axis *axis, uint32_t node_count);
void topology_axis_free(struct topology_axis *axis);
