#include "cli/plan.h"

/* clang-format off: a row each */
const struct plan_command plan_commands[] = {
        { "shards", "how much of each batch every worker takes", plan_shards },
        { "segments", "which gradients travel together", plan_segments },
        { NULL, NULL, NULL },
};
/* clang-format on */
