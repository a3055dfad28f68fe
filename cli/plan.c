/* `remuda plan`: the planners' own commands, and those that need what only this program has: devices, jobs,
 * stores. */
#include "planner/commands/plan.h"
#include "cli/command/commands.h"
#include "cli/plan_more.h"
#include "store/speed_store.h"

static const struct plan_command more[] = {
        { "launch", "a placed job as other launchers take it", plan_more_launch },
        { "devices", "which devices the device plugin prefers", plan_more_devices },
        { NULL, NULL, NULL },
};

int command_plan(int argc, char **argv)
{
        const struct plan_host host = { .more = more, .read_speeds = speed_store_read_now };

        return plan_run(&host, argc, argv);
}
