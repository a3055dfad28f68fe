/* Runtime: the programming interface a program is built for, and the variable that shows it its chips. Pure.
 */
#pragma once

#include <stdbool.h>

/* runtime_devices_variable() - "CUDA_VISIBLE_DEVICES" for cuda; NULL if the runtime has none (cpu) or is not
 * known. */
const char *runtime_devices_variable(const char *runtime);

/* runtime_is_devices_variable() - is this the visible-devices variable of any vendor? */
bool runtime_is_devices_variable(const char *name);

/* runtime_served_by() - can a device group of runtime `group_runtime` run programs of `runtime`? A CPU group
 * serves cpu, opencl and sunway; every other group its own runtime alone. */
bool runtime_served_by(const char *runtime, const char *group_runtime);
