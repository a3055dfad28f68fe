/* Split state: of a model that is cut over the ranks, as far as the times of its layers are known: what each
 * rank holds, and what of it is to be changed. Part of a world (world.h); judged by resplit.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pipeline_problem;

struct split_state_rank {
        size_t first, next_first; /* layer of its stage; of the next world's */
        double stretch; /* how many times as long its layers take as planned; of the last question */
};

struct split_state {
        const struct pipeline_problem
                *problem;               /* worker i is rank i; the starter's. NULL = nothing is known */
        struct split_state_rank *ranks; /* owned */
        bool compared; /* the plan's times are only compared with each other: no milliseconds */
        bool moving;   /* the ranks are asked to end, for a new split */
        bool said;     /* in this world, why there is no new split */
        uint64_t asked_usec;
        double step_ms; /* with moving: of the split of now */
};
