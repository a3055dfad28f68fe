/* Chips of a run: where they are read from and which may serve a role. */
#pragma once

#include "job/run/run.h"

/* run_chips_read() - this machine's, or all of --store. @ret released with run_chips_free(). */
int run_chips_read(const struct run *run, struct run_chips *ret, struct err *err);
void run_chips_free(struct run_chips *list);

/* run_chips_match() - does every selector of the role that is given match the group? */
bool run_chips_match(const struct job_role *role, const struct device_group *group);

/* run_chips_are_here() - is the node of that name this machine? A domain that only one of the two names has
 * does not count. */
bool run_chips_are_here(const char *node);
