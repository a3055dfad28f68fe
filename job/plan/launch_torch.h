/* Launch torch: the variables that torchrun gives each process, and torchrun's lines. Pure. */
#pragma once

#include "job/plan/launch.h"

/* Return: 0. */
int launch_torch_run(const struct launch_world *world, struct text *out, struct err *err);
int launch_torch_env(const struct launch_world *world, struct text *out, struct err *err);
