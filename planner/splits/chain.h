/* Chain split: which layers of a chain-shaped model go to which device, exactly.
 *
 * Contiguous stages, one device each, devices in any order, unused ones allowed. A stage's load is the time
 * of its layers on its device, what each microbatch begins with there, and, at each of its inner boundaries,
 * the bytes that cross it through the slower of the two links. Minimises the largest load; among those plans
 * the sum of loads.
 *
 * Method. Stages are placed from the last to the first, so that the number of devices used so far tells how
 * many microbatches a stage holds (1F1B: the k-th from the end holds min(k, M)). The state is how many
 * devices of each class are used, the link classes on both sides of the open boundary, and the layer where
 * the suffix begins; for a candidate period the set of reachable begins is a bit set. A state is expanded
 * only for begins that no state using a subset of its devices reaches (that one can do all this one can, in
 * less memory). The period is found by bisection over the loads that can occur; a second pass with the period
 * fixed minimises the sum the same way. O(prod(count + 1) * classes * n^2 / 64) words a probe in the worst
 * case, far less in practice. Unordered chain partitioning is NP-complete in general (Pinar, Tabak, Aykanat,
 * JPDC 68, 2008); with few device classes it is not.
 *
 * Pure; allocates while it runs. Same input, same output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CHAIN_LAYERS_MAX  4096
#define CHAIN_CLASSES_MAX 16
#define CHAIN_STATES_MAX  ((size_t) 1 << 22) /* prod(count + 1); beyond it the answer is not exact */

enum chain_schedule { CHAIN_1F1B, CHAIN_GPIPE, CHAIN_INFERENCE };

struct chain_class { /* equal devices */
        unsigned count;
        uint64_t memory_bytes;
        double bytes_per_ms; /* > 0 */
        double begin_ms;     /* of a microbatch, however many layers its stage has; >= 0 */
        const double *ms;    /* of each layer on this class; < 0 = the layer cannot go there */
};

struct chain_problem {
        size_t layer_count;               /* 1..CHAIN_LAYERS_MAX */
        const uint64_t *memory_bytes;     /* of each layer */
        const uint64_t *activation_bytes; /* output of each layer */
        const uint64_t *held_bytes;       /* what a microbatch keeps in each until its backward pass */
        size_t class_count;               /* 1..CHAIN_CLASSES_MAX */
        const struct chain_class *classes;
        enum chain_schedule schedule;
        unsigned microbatches; /* >= 1 */
};

struct chain_stage {
        size_t class_index;
        size_t first, last; /* both included */
        double load_ms;
        uint64_t memory_bytes;
};

struct chain_plan {
        struct chain_stage *stages; /* owned; in layer order */
        size_t stage_count;
        double period_ms;      /* largest load */
        double latency_ms;     /* sum of loads */
        double lower_bound_ms; /* proven; equal to period_ms when exact */
        bool exact;
};

enum { CHAIN_NO_FIT = 1 }; /* no placement satisfies memory and allowed types */

/* chain_split() - the best plan.
 * Return: 0 and *ret (release with chain_plan_free()); CHAIN_NO_FIT; -ENOMEM, -EINVAL. *ret untouched unless
 * 0. */
int chain_split(const struct chain_problem *problem, struct chain_plan *ret, struct err *err);

/* chain_evaluate() - loads, memory, period and latency of given stages (class_index, first, last are read).
 * Return: 0, or CHAIN_NO_FIT when a stage breaks a rule (which one and by how much is in *err). */
int chain_evaluate(const struct chain_problem *problem, struct chain_stage *stages, size_t stage_count,
                   double *ret_period_ms, double *ret_latency_ms, struct err *err);

/* The two rules of thumb, with the devices in input order: the same number of layers each (the first ones one
 * more), and layers in proportion to the device's speed over the whole model. Return: the period, or -1 where
 * impossible. */
double chain_equal_layers_ms(const struct chain_problem *problem);
double chain_proportional_ms(const struct chain_problem *problem);

void chain_plan_free(struct chain_plan *plan); /* accepts NULL */
