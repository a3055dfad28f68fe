/* Weighting share: what a member that goes to one node takes of every batch, exactly.
 *
 * All members, bound, leased and this one, are cut over as everywhere (planner/speeds/speed_cut.h), so that
 * each of them is given its part of the same cut, whoever is bound first. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct weighting_share {
        uint64_t batch; /* samples of each batch for all its chips; 0 = it has no share */
        double weight;  /* batch / the job's batch */
        struct chip_speed_verdict speeds;
        const struct ledger_group *lacking; /* of the member that has no figure; NULL = each has */
        const struct ledger_node *lacking_node;
        size_t chips; /* of all members */
};

/* weighting_share() - @parts: the groups of @node that its chips are of. Return: 0 or -ENOMEM. */
int weighting_share(const struct weighting *weighting, const struct ledger_job *job,
                    const struct ledger_pod *self, const struct request *request,
                    const struct ledger_node *node, const struct ledger_pod_part *parts, size_t part_count,
                    struct weighting_share *ret);
