/* Blame: which of the ranks that ended badly is to be named. A rank that is gone takes its neighbours along,
 * and those are often heard of first. Pure. ADR 0104. */
#pragma once

#include "job/world/world.h"

/* blame_find() - the rank whose end explains those of others, whatever the order in which they were heard of:
 * one that was killed rather than one that failed (a neighbour that is gone is an error, SIGPIPE or SIGABRT),
 * that one rather than one that ended as it was asked to, then the first. Return: rank_count: none ended
 * badly. */
size_t blame_find(const struct world *world);

/* blame_signal() - which one ended a program with this exit code; 0 = it ended by itself. */
int blame_signal(int exit_code);
