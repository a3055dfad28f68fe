/* Plan more: the commands of `remuda plan` that are no mathematics: they look at jobs (plan_launch.c) or at
 * devices (plan_devices.c, plan_slices.c). As struct plan_command's run(). */
#pragma once

#include "planner/commands/plan.h"

int plan_more_launch(int argc, char **argv, const struct plan_host *host);
int plan_more_devices(int argc, char **argv, const struct plan_host *host);
int plan_more_slices(int argc, char **argv, const struct plan_host *host);
extern const struct option_program plan_more_launch_options, plan_more_devices_options,
        plan_more_slices_options;
