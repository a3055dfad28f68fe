/* Environment: the variables that a training process is given: an allow-list, and what frameworks expect.
 *
 * Pure but for the heap: the environment that was found is an argument. */
#pragma once

#include <stddef.h>

#include "job/spec/program_table.h"

#define ENVIRONMENT_MAX 4096 /* variables */

struct environment {
        char **variables; /* "NAME=value", then a NULL: as execve() takes it */
        size_t count, capacity;
};

void environment_free(struct environment *environment);

/* environment_get() - a variable's value, owned by the environment; NULL if it is not there. */
const char *environment_get(const struct environment *environment, const char *name);

/* environment_set() - add or replace. 0, -E2BIG past ENVIRONMENT_MAX, or -ENOMEM. */
int environment_set(struct environment *environment, const char *name, const char *value);

/* environment_filter() - from what was found (such as `environ`) what passes. @ret starts empty. */
int environment_filter(struct environment *ret, const struct program_table_row *program, char *const *found);

/* environment_add_frameworks() - set what torchrun, MindSpore, Paddle and Ascend programs read, from the rank
 * that mpirun (OMPI_COMM_WORLD_*) or the caller (RANK, WORLD_SIZE...) gave; a process alone is rank 0 of 1.
 * What is there already is kept. */
int environment_add_frameworks(struct environment *environment, char *const *found);
