/* Chips of a run: where they are read from and which may serve a role. */
#pragma once

#include "job/run/run.h"

/* run_chips_read() - this machine's, or all of --store. @ret released with run_chips_free(). */
int run_chips_read(const struct run *run, struct run_chips *ret, struct err *err);
void run_chips_free(struct run_chips *list);

/* run_chips_spare() - offers a rank that has lost its chip another one of this machine (its spare_device), by
 * the rule of the controller's groups: assignment_spare(). Return: is there one? */
bool run_chips_spare(struct run *run, const struct run_chips *now, size_t rank);
