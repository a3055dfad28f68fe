/* Stage mix: so many of the open chips of each kind, packed onto groups, and how long a step of a split model
 * on them is by the plan of its stages (job/stages/stage_plan.h).
 *
 * Offers (an entry of workers, open chips of one group) are of one kind when a plan cannot tell them apart:
 * entry, chip, memory, network, speed; the group's name, where a stage is bound to one. A mix is judged on
 * all nodes or in a scope of one, within which no network is. What it costs is counted as pipeline.h counts
 * it. Pure but for the heap; a plan and O(offers) a mix.
 *
 * Invariant: no more chips of a group than are open, whatever entries share it. */
#pragma once

#include "job/stages/stage_plan.h"
#include "scheduler-extender/decide/placement.h"

struct stage_mix_offer {
        struct stage_plan_worker worker; /* of one chip; chips and its link are filled in for the plan */
        struct placement_choice place;   /* open: chips that it may have; node, index: of the group */
        size_t tag;                      /* whose it is, for who asks */
        uint64_t network_mbps;           /* of the node; 0 = not known */
        uint32_t chips;                  /* that the policy took; then those that are chosen */
};

struct stage_mix_problem {
        const struct job *job;
        const struct job_split_profile *profile;
        struct stage_mix_offer *offers; /* sorted by stage_mix_init() */
        size_t count;
        bool fixed; /* as many chips of each entry as the policy took, also where the job has a range */
        bool apart; /* ranks are processes: chips of one group need not follow each other */
        double effort;
};

struct stage_mix_step {
        double ms, period_ms; /* INFINITY: no split of the model is possible there */
        bool compared;        /* in no unit: how fast chips are compared with each other alone is known */
};

struct stage_mix_kind {
        size_t first, count; /* its offers */
        size_t role;         /* those of one entry follow each other */
        uint32_t open;       /* in the scope */
        uint32_t chips;      /* of the mix that is looked at */
};

struct stage_mix {
        struct stage_mix_problem *problem; /* borrowed */
        struct stage_mix_kind *kinds;
        size_t kind_count;
        uint32_t *least, *most;                  /* chips of each entry */
        struct stage_mix_step before, best_step; /* of what the policy took, of the best mix so far */
        uint32_t *best;                          /* chips of each offer */
        double spent, most_spent;
        size_t plans; /* that were made */

        const char *scope;     /* the rest is the module's own */
        uint32_t *take, *left; /* of each offer, of each group, by the mix that is packed */
        size_t *groups;        /* of each offer: chips of one group are the same */
        struct stage_plan_worker *workers;
};

/* stage_mix_init() - kinds of the offers; the policy's chips are the best so far. 0 or -ENOMEM; release with
 * stage_mix_free() in any case. */
int stage_mix_init(struct stage_mix *mix, struct stage_mix_problem *problem);
void stage_mix_free(struct stage_mix *mix);

/* stage_mix_enter() - from now on it is about one node, or all: NULL. The mix is empty. Return: are there
 * enough chips for each entry? */
bool stage_mix_enter(struct stage_mix *mix, const char *scope);

/* stage_mix_try() - the mix that the kinds have. Return: 1 = it is the best so far; 0; -ENOMEM. Steps of
 * which one is in milliseconds and the other only compared do not judge each other. */
int stage_mix_try(struct stage_mix *mix);

uint32_t stage_mix_chips(const struct stage_mix *mix, size_t role); /* of an entry, in the mix */
bool stage_mix_spent(const struct stage_mix *mix);

/* stage_mix_cut_cost() - of one cut of the policy's chips in one order at worst, which no effort ends. */
double stage_mix_cut_cost(const struct stage_mix *mix);
