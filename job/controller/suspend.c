/* The words of a job that is suspended, from the first SIGTERM to its next plan. */
#include "job/controller/suspend.h"

#include <string.h>

#include "job/controller/controller_internal.h"
#include "job/controller/write.h"
#include "job/spec/held.h"

#define SAY_USEC 10000000u

/* Does it give its chips up just now? */
static bool leaves(const struct record *record)
{
        return record->state.group_count > 0 && strcmp(record->state.reason, HELD_LEAVING) == 0;
}

bool suspend_holds(const struct record *record)
{
        return record->job.suspend || record->queue.holds || leaves(record);
}

/* Its author's word, or its queue's. */
static const char *cause_of(const struct record *record)
{
        return record->job.suspend ? "spec.suspend is true" : record->queue.sentence;
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
        char sentence[JOB_MESSAGE_BYTES];

        if (leaves(record))
                return;
        (void) text_format(sentence, sizeof(sentence),
                           "%.400s: its pods are told to end and have %u s for a checkpoint",
                           cause_of(record), record->controller->options.pods.grace_sec);
        say(record, record->state.phase, HELD_LEAVING, sentence);
}

void suspend_leave(struct record *record)
{
        record->refused_usec = record->unanswered_usec = record->unbound_usec = 0;
        record->yielding = false; /* of the pods that are gone */
        record_give_up(record, HELD_LEAVING, "its pods are gone");
}

/* Is this said already? What changes in a queue from moment to moment is said now and then. */
static bool is_said(const struct record *record, const char *reason, const char *sentence)
{
        const struct job_state *state = &record->state;

        if (state->phase != JOB_SUSPENDED || strcmp(state->reason, reason) != 0)
                return false;
        return strcmp(state->message, sentence) == 0 ||
               controller_monotonic(record->controller) - record->said_usec < SAY_USEC;
}

void suspend_settle(struct record *record)
{
        bool queued = !record->job.suspend && record->queue.holds;
        const char *reason = queued ? record->queue.reason : HELD_SUSPENDED, *sentence;

        sentence = queued ? record->queue.sentence
                   : record->state.world == 0
                           ? "spec.suspend is true: it has no pods and no chips until that is false"
                   : record->job.checkpoint.given
                           ? "spec.suspend is true: it goes on from its last checkpoint when that is false"
                           : "spec.suspend is true: it has no checkpoint, and begins anew when that is false";
        if (is_said(record, reason, sentence))
                return;
        record->said_usec = controller_monotonic(record->controller);
        record->plan_after_usec = record->blocks_usec = 0;
        job_state_doubt_condition(&record->state, JOB_CONDITION_PODS_CREATED,
                                  controller_now(record->controller), HELD_SUSPENDED,
                                  "another plan's pods were asked for; it has none now");
        say(record, JOB_SUSPENDED, reason, sentence);
}

void suspend_resume(struct record *record)
{
        bool queued = strcmp(record->state.reason, HELD_SUSPENDED) != 0 && record->queue.admitted;

        if (record->state.phase == JOB_SUSPENDED)
                say(record, JOB_PENDING, queued ? "Admitted" : "Resumed",
                    queued ? record->queue.sentence : "nothing holds it any more: it is planned again");
}
