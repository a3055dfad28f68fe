/* Neighbour view: may a pod go onto a node, by its required pod affinity and anti-affinity, by the
 * anti-affinity of the pods that are there, and by its topology spread constraints (DoNotSchedule), as
 * kube-scheduler's InterPodAffinity and PodTopologySpread judge it?
 *
 * kube-scheduler judges this before it asks us; whoever looks for a place among all nodes must
 * (docs/adr/0120). Places of plans count as the pods they are for: those of others where they may stand in
 * the way, and nowhere else (docs/adr/0127); while a gang is planned its own members' in every way.
 *
 * A view is what all nodes and pods mean to one pod: for each of its terms the number of pods in each
 * topology domain, and the domains that others keep it out of. It is made when a node is first asked about,
 * O(nodes x labels + pods), and holds until a pod or a node changes; what the plan at hand places is added
 * on top of it: for one place more O(domains), else O(domains + members). As many are kept as a search may
 * have unlike members, within some memory. For a pod that demands nothing and that nobody's demands speak of
 * it is empty, O(demands that there are); without any demand in the ledger nothing is made. Out of memory
 * nobody is kept off. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

/* neighbour_view_takes() - may the request's pod go there now? */
bool neighbour_view_takes(const struct rules_context *ctx, const struct ledger_node *node);

/* neighbour_view_why() - what keeps it off, for a person; "" = nothing. */
void neighbour_view_why(const struct rules_context *ctx, const struct ledger_node *node, char *ret,
                        size_t ret_bytes);

/* neighbour_view_gathers() - do pods like this one all have to be in one domain, which may be any as long as
 * none of them is there? neighbour_view_domain() - the number of that which the node is in: the same for pods
 * of the same demands; 0 = none. */
bool neighbour_view_gathers(const struct rules_context *ctx);
uint32_t neighbour_view_domain(const struct rules_context *ctx, const struct ledger_node *node);

void neighbour_view_free(struct neighbour_view *views); /* of a table; accepts NULL */
