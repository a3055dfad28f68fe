/* Suspend: spec.suspend, and a queue that has not admitted it (kueue.h), in the state of a job. One that runs
 * goes as who is evicted does: its groups have their grace time for a checkpoint, and no restart is charged;
 * then it has no plan, no lease and no pods until it is planned again. What is under way stands in the
 * status, so that the next controller ends it. In memory only; reconcile.h does what is to be done with the
 * pods. */
#pragma once

#include "job/controller/record.h"

/* suspend_holds() - is nothing to be planned or made for it? Also while it gives its chips up, which it does
 * to the end if the word is taken back. */
bool suspend_holds(const struct record *record);

/* The steps, each said in status and event; all but suspend_leave() say so once. */
void suspend_begin(struct record *record);  /* its pods are about to be told */
void suspend_leave(struct record *record);  /* its groups are gone: the plan and the lease end */
void suspend_settle(struct record *record); /* it has no plan */
void suspend_resume(struct record *record); /* it may be planned again */
