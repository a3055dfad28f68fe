/* Plan searches: several searches of one layer graph at once, each in a child process with a seed of its own;
 * the best answer wins, the lower seed among equals. */
#pragma once

#include <stdint.h>

#include "planner/splits/graph_split.h"

/* plan_searches() - @effort 0: one search a core until the deadline; else four, so that the answer does not
 * depend on the machine.
 * @deadline_ms: CLOCK_MONOTONIC, milliseconds
 * Return: as graph_split(). */
int plan_searches(const struct graph_problem *problem, uint64_t seed, uint64_t effort, double deadline_ms,
                  struct graph_plan *ret, struct err *err);
