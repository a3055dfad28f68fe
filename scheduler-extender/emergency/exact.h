/* Exact: the cheapest set of pods and gangs, by trying: depth first, the dearest first, with the best set so
 * far as a bound and the proof itself as the test. For small clusters, and for what curves cannot say:
 * groups, equal nodes, members that differ. Internal to take_back.c. */
#pragma once

#include "scheduler-extender/emergency/take_back.h"

#define EXACT_UNITS 24                /* pods and gangs that may go */
#define EXACT_PODS  256               /* of them */
#define EXACT_STEPS ((size_t) 200000) /* nodes judged in proofs */

enum { EXACT_E_MANY = 2 };

/* exact_search() - among all who may go on any node that could take a member of @needs.
 * @plan: what was found so far, if `cost` is not VICTIM_COST_MAX; a cheaper set takes its place
 * Return: 0 = `plan` has the best set that was found; TAKE_BACK_E_NONE = no set helps; EXACT_E_MANY = there
 * are too many to try, and `plan` is as it was; -ENOMEM. */
int exact_search(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                 const struct victim_rules *rules, struct take_back *plan);
