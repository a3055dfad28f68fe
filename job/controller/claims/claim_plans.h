/* Claim plans: the planned claims of all jobs (planned_claim.h): made and allocated before the pods that name
 * them, given up when nobody is to have them any more. One owner: the controller. What is there is looked at
 * again each time: whoever leads next goes on. */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "job/controller/record.h"

/* claim_plans_observe() - a claim is new or changed; NULL = it is gone. */
void claim_plans_observe(struct controller *c, const char *key, const json_t *object);

/* claim_plans_ready() - has the claim of the group its chips, or needs it none? Else what is next for it is
 * asked for, and the record is reconciled again when there is an answer. */
bool claim_plans_ready(struct record *record, const struct job_group *group);

/* claim_plans_yields() - has another claim a device of the group's, so that its place is lost? */
bool claim_plans_yields(struct record *record, const struct job_group *group);

/* claim_plans_sweep() - those that no plan of their job has a place for are deleted. O(claims). */
void claim_plans_sweep(struct controller *c);

void claim_plans_metrics(const struct controller *c, struct text *page);
