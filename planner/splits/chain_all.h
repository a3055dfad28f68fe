/* Chain all: layers for every device, where none may be left idle, as the best plan (chain.h) may do.
 *
 * Each device is a class of its own. Up to CHAIN_ALL_TRIED of them every order is tried, more keep the order
 * of the best plan, the idle ones last; each order is cut exactly: best(k, j), the least possible largest
 * load of the first k devices over the first j layers, is min over i of max(best(k - 1, i), time of layers i
 * to j - 1 on device k). O(devices! x devices x layers^2). What crosses between stages counts in the best
 * plan alone.
 *
 * Example: layers of 4, 1, 1 ms on a fast device and of 40, 10, 10 on a slow one: the best plan leaves the
 * slow one idle (6 ms); for both it is 4, 1 | 10. Invariant: every device has one layer at least, all layers
 * are held. Pure but for the heap. */
#pragma once

#include "planner/splits/chain.h"

#define CHAIN_ALL_TRIED 6

/* chain_all() - @plan: the best one of the problem, of class_count devices and as many layers at least
 * @ret_order: class_count devices, in the order of the stages; @ret_first: where the stage of each begins
 * Return: 0 or -ENOMEM. */
int chain_all(const struct chain_problem *problem, const struct chain_plan *plan, size_t *ret_order,
              size_t *ret_first);
