/* `remuda plan`: the planners' own commands, and those that need what only this program has: devices, jobs,
 * stores. */
#include "planner/commands/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/plan_more.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "store/speed_store.h"

static const struct plan_command more[] = {
        { "launch", "a placed job as other launchers take it", plan_more_launch, &plan_more_launch_options },
        { "devices", "which devices the device plugin prefers", plan_more_devices,
          &plan_more_devices_options },
        { "slices", "what DRA is told of a machine", plan_more_slices, &plan_more_slices_options },
        { NULL, NULL, NULL, NULL },
};

static int take_chips(const struct ledger *ledger, struct plan_speeds_known *known)
{
        size_t count = 0;

        for (size_t i = 0; i < ledger->node_count; i++)
                count += ledger->nodes[i]->group_count;
        known->chips = calloc(count + 1, sizeof(*known->chips));
        if (known->chips == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->node_count; i++)
                for (uint32_t g = 0; g < ledger->nodes[i]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[i]->groups[g];
                        struct plan_speeds_chip *chip = &known->chips[known->chip_count];

                        if (chip_speed_any_figure(&group->figures) &&
                            text_copy(chip->model, sizeof(chip->model),
                                      ledger_speeds_device(&ledger->symbols, group))) {
                                chip->figures = group->figures;
                                known->chip_count++;
                        }
                }
        return 0;
}

/* Who may read the SpeedTable and not the nodes gets what it says alone. */
static int read_speeds(const char *store, const char *kubeconfig, struct plan_speeds_known *ret,
                       struct err *err)
{
        const struct cluster_arguments arguments = {
                .store = store, .kubeconfig = kubeconfig, .placement = "packed", .overflow = "none"
        };
        struct cluster_arguments_opened opened = { 0 };
        struct err trouble = { 0 };
        int r = speed_store_read_now(store, kubeconfig, &ret->table, err);

        if (r < 0)
                return r;
        if (cluster_arguments_open(&arguments, &opened, &trouble) < 0)
                fprintf(stderr, "remuda plan: the SpeedTable of %s alone counts, not its chips: %s\n", store,
                        trouble.msg);
        else if (take_chips(cluster_ledger(opened.cluster), ret) < 0)
                r = err_set(err, -ENOMEM, "no memory for the chips of %s", store);
        cluster_arguments_close(&opened);
        return r;
}

bool command_plan_below(size_t i, struct command_below *ret)
{
        const struct plan_host host = { .more = more };
        const struct plan_command *c = plan_command_at(&host, i);

        if (c != NULL)
                *ret = (struct command_below){ c->name, c->summary, c->options };
        return c != NULL;
}

int command_plan(int argc, char **argv)
{
        const struct plan_host host = { .more = more, .read_speeds = read_speeds };

        return plan_run(&host, argc, argv);
}
