#include "cli/plan.h"

/* clang-format off: a row each */
const struct plan_command plan_commands[] = {
        { "shards", "how much of each batch every worker takes", plan_shards },
        { "segments", "which gradients travel together", plan_segments },
        { "split", "which layers go to which device", plan_split },
        { NULL, NULL, NULL },
};
/* clang-format on */
