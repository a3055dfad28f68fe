/* The words of a job that is suspended, from the first SIGTERM to its next plan. */
#include "job/controller/suspend.h"

#include <string.h>

#include "job/controller/controller_internal.h"
#include "job/controller/write.h"

#define LEAVES "Suspending" /* the reason by which the next controller knows */

/* Does it give its chips up just now? */
static bool leaves(const struct record *record)
{
        return record->state.group_count > 0 && strcmp(record->state.reason, LEAVES) == 0;
}

bool suspend_holds(const struct record *record)
{
        return record->job.suspend || leaves(record);
}

static void say(struct record *record, enum job_phase phase, const char *reason, const char *sentence)
{
        uint64_t now = controller_now(record->controller);

        job_state_set_condition(&record->state, JOB_CONDITION_ACCEPTED, true, now, "Accepted",
                                "the job is understood");
        job_state_set(&record->state, phase, now, reason, "%s", sentence);
        record->dirty = true;
        write_event(record, false, reason, "%s", sentence);
        controller_want_plan(record->controller);
        controller_queue(record);
}

void suspend_begin(struct record *record)
{
        char sentence[160];

        if (leaves(record))
                return;
        (void) text_format(sentence, sizeof(sentence),
                           "spec.suspend is true: its pods are told to end and have %u s for a checkpoint",
                           record->controller->options.pods.grace_sec);
        say(record, record->state.phase, LEAVES, sentence);
}

void suspend_leave(struct record *record)
{
        record->refused_usec = record->unanswered_usec = record->unbound_usec = 0;
        record->yielding = false; /* of the pods that are gone */
        record_give_up(record, LEAVES, "its pods are gone");
}

void suspend_settle(struct record *record)
{
        if (record->state.phase == JOB_SUSPENDED)
                return;
        record->plan_after_usec = record->blocks_usec = 0;
        job_state_doubt_condition(&record->state, JOB_CONDITION_PODS_CREATED,
                                  controller_now(record->controller), "Suspended",
                                  "another plan's pods were asked for; it has none now");
        say(record, JOB_SUSPENDED, "Suspended",
            record->state.world == 0 ? "spec.suspend is true: it has no pods and no chips until that is false"
            : record->job.checkpoint.given
                    ? "spec.suspend is true: it goes on from its last checkpoint when that is false"
                    : "spec.suspend is true: it has no checkpoint, and begins anew when that is false");
}

void suspend_resume(struct record *record)
{
        if (record->state.phase == JOB_SUSPENDED)
                say(record, JOB_PENDING, "Resumed", "spec.suspend is false: it is planned again");
}
