/* Launch variables: what a rank's process finds in its environment, whoever starts it: `remuda run`, a
 * group's launcher, or the launchers of others. Pure but for the heap. docs/man/remuda-run.1 says what each
 * means. */
#pragma once

#include <jansson.h>

#include "job/plan/launch.h"

struct launch_variables { /* where they go */
        void (*add)(void *userdata, const char *name, const char *value);
        void *userdata;
};

/* launch_variables_json() - they become members of an object. */
struct launch_variables launch_variables_json(json_t *object);

void launch_variables_add(const struct launch_variables *to, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* launch_variables_own() - its job, its chip, its share, its layers. launch_variables_torch() - as torchrun
 * sets them. */
void launch_variables_own(const struct launch_world *world, size_t rank, const struct launch_variables *to);
void launch_variables_torch(const struct launch_world *world, size_t rank, const struct launch_variables *to);

/* launch_variables_groups() - the workers of each device group. */
void launch_variables_groups(const struct launch_world *world, const struct launch_variables *to);

/* launch_variables_segments() - the last tensor of each; none: nothing, the program cuts as it likes. */
void launch_variables_segments(const uint64_t *last, size_t count, const struct launch_variables *to);

/* launch_variables_job() - what the job says of its training: a program that takes no options of the
 * reference trainer finds it here. What it does not say is not there. */
void launch_variables_job(const struct job *job, const struct launch_variables *to);
