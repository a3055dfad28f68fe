/* Budgets: would disruption budgets allow a set of evictions together?
 *
 * The API server judges one eviction at a time. Here the pods of a set are counted against what each budget
 * has left, one after the other. Budgets that have nothing left are not asked: a pod that may go all the same
 * is not kept by them. */
#pragma once

#include <jansson.h>

#include "store/store.h"

typedef void (*budgets_refuse)(void *userdata, const char *namespace_, const char *name, const char *why);

/* budgets_judge() - @names: bound pods of one namespace, each of which may go by itself. @refuse is called
 * for each for which those before it leave no room; then @answer: 0; else nothing is known, as where a budget
 * may not be read (-EPERM). dir: there are no budgets. From the loop. */
void budgets_judge(struct store *store, const char *namespace_, const char *const *names, size_t count,
                   budgets_refuse refuse, store_answer answer, void *userdata);

/* budgets_begin() - leave those of a PodDisruptionBudgetList's items that have something left.
 * budgets_take() - a pod goes: whether there is room is said, and less is left. @budgets is changed. */
void budgets_begin(json_t *budgets);
bool budgets_take(json_t *budgets, const json_t *pod, char *why, size_t bytes);
