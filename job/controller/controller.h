/* Job controller: TrainingJobs of the store carried out: planned, started as pods, watched, repaired,
 * released.
 *
 *      object -> record -> order -> plan -> status -> pods -> watch -> repair -> end
 *
 * Level-triggered: whatever is seen, reconcile() looks at the whole job and does the next thing that is
 * missing, and every step may be repeated. What was decided is in the object's status before anything is made
 * from it, pods have names that follow from the status, and making one again is found out; so a controller
 * may stop anywhere, and the next one goes on. Only a leader acts. One owner, whose
 * cluster it uses: remuda-controller (job/controller/host.h), or an extender with --jobs on. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/text.h"
#include "job/controller/controller_options.h"
#include "store/store.h"

struct controller;

int controller_new(sd_event *loop, const struct controller_options *options, struct controller **ret,
                   struct err *err);
void controller_free(struct controller *controller); /* accepts NULL */

/* controller_observe() - an object of the store is new or changed (object == NULL: gone); after the ledger
 * has taken it. Kinds that say nothing of jobs are passed over. */
void controller_observe(struct controller *controller, enum store_kind kind, const char *key,
                        const json_t *object);

void controller_synced(struct controller *controller, enum store_kind kind);

/* controller_think() - the ledger has changed, or time has passed: jobs that wait are tried again. */
void controller_think(struct controller *controller);

/* controller_lead() - leads() may have another answer now; it is asked once a second as well. */
void controller_lead(struct controller *controller);

void controller_metrics(const struct controller *controller, struct text *page);
