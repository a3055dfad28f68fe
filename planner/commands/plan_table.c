/* The planners, a row each. */
#include "planner/commands/plan.h"

/* clang-format off */
const struct plan_command plan_commands[] = {
        { "shards", "how much of each batch every worker takes", plan_shards },
        { "reshard", "a new plan for the rest of an epoch", plan_reshard },
        { "segments", "which gradients travel together", plan_segments },
        { "split", "which layers go to which device", plan_split },
        { "model", "a known network, and what it would do on given devices", plan_model },
        { "launch", "a placed job as other launchers take it", plan_launch },
        { "devices", "which devices the device plugin prefers", plan_devices },
        { NULL, NULL, NULL },
};
/* clang-format on */
