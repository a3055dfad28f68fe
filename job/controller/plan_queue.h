/* Plan queue: jobs that wait, in their order: parents first, then urgency, priority, need and age; each is
 * planned on the ledger and leases its chips at once, so that the next one sees them taken. */
#pragma once

struct controller;
struct record;

void plan_queue_run(struct controller *c);

/* plan_queue_split() - what the layers of a planned job are planned with, for its manager (job_plan_split()).
 * Where it cannot be had the job runs all the same: no stage of it is found slow. */
void plan_queue_split(struct record *record);
