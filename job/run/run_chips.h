/* Chips of a run: where they are read from and which may serve a role. */
#pragma once

#include "job/run/run.h"

/* inventories_read() - this machine's, or all of --store. @ret released with inventories_free(). */
int inventories_read(const struct run *run, struct inventories *ret, struct err *err);
void inventories_free(struct inventories *list);

/* chips_match() - does every selector of the role that is given match the group? */
bool chips_match(const struct job_role *role, const struct device_group *group);

/* chips_are_here() - is the node of that name this machine? A domain that only one of the two names has does
 * not count. */
bool chips_are_here(const char *node);
