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

/* chips_sick() - the first rank whose chip is gone or not usable any more, or rank_count. @ret_why: a
 * sentence. */
size_t chips_sick(const struct run *run, const struct inventories *now, char *ret_why, size_t why_bytes);

/* chips_migrate() - give every rank with a sick chip a spare one; without one, go on without the rank where
 * its role's range allows. The others keep theirs. Return: how many ranks moved or left (then the plan has to
 * be made anew); -ENODEV and *err if one can do neither. */
int chips_migrate(struct run *run, const struct inventories *now, struct err *err);
