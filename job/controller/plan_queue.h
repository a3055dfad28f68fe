/* Plan queue: jobs that wait, in their order: parents first, then urgency, priority, need and age; each is
 * planned on the ledger and leases its chips at once, so that the next one sees them taken. */
#pragma once

struct controller;

void plan_queue_run(struct controller *c);
