/* One job looked at as a whole, and the next thing done that is missing. Nothing here remembers what it did:
 * what is there is looked at again each time. */
#include "job/controller/reconcile.h"

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "job/controller/claims/claim_plans.h"
#include "job/controller/claims/claim_templates.h"
#include "job/controller/controller_internal.h"
#include "job/controller/disruption.h"
#include "job/controller/expire.h"
#include "job/controller/job_keys.h"
#include "job/controller/kueue/kueue.h"
#include "job/controller/launchers/progress.h"
#include "job/controller/launchers/tell.h"
#include "job/controller/plan_queue.h"
#include "job/controller/suspend.h"
#include "job/controller/watch.h"
#include "job/controller/write.h"
#include "job/plan/job_lease.h"
#include "job/plan/job_plan.h"

#define UNSEEN_USEC    5000000u             /* a pod that was made should be seen within */
#define UNSAID_USEC    600000000u           /* a pod without a node or a word why: who binds is away */
#define PAUSE_MAX_USEC UINT64_C(3600000000) /* pauses double up to this */
/* In which the groups of an ended job end by themselves, so that logs stay. */
#define FAREWELL_USEC 20000000u

static bool is_expected(const struct record *record, const struct job_pod *pod)
{
        char name[JOB_POD_NAME_BYTES];

        job_state_manager_pod_name(record->name, record->state.world, name);
        if (strcmp(pod->name, name) == 0)
                return true;
        for (size_t i = 0; i < record->state.group_count; i++) {
                job_group_pod_name(record->name, &record->state.groups[i], name);
                if (record->state.groups[i].node[0] != '\0' && strcmp(pod->name, name) == 0)
                        return true;
        }
        return false;
}

/* No kubelet will answer for a node that is given up; one that is only silent may run the pod still. And a
 * pod on no node is deleted by the API server in two writes: if the controller that asked was killed between
 * them, nobody does the second. */
static unsigned grace_for(const struct record *record, const struct job_pod *pod)
{
        if (pod->node[0] == '\0' ? pod->deleting : watch_node_given_up(record, pod->node))
                return 0;
        return pod->started ? record->controller->options.pods.grace_sec : 1;
}

/* Made by a controller that was killed just then, with keys that the others do not have. */
static bool has_other_keys(const struct record *record, const struct job_pod *pod)
{
        char secret[JOB_POD_NAME_BYTES];

        if (pod->asked || pod->secret[0] == '\0' || record->keys == NULL)
                return false;
        job_keys_secret(record->keys, secret);
        return strcmp(secret, pod->secret) != 0;
}

static void remove_unexpected(struct record *record)
{
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (!job_pod_has_ended(pod) && (!is_expected(record, pod) || has_other_keys(record, pod)))
                        write_delete(record, pod, grace_for(record, pod));
        }
}

/* One that was made and not seen for long: it is asked for again, and found if it is there. */
static void forget_unseen(struct record *record)
{
        uint64_t now = controller_monotonic(record->controller);

        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (pod->asked && pod->asked_usec != UINT64_MAX && now - pod->asked_usec > UNSEEN_USEC)
                        record_drop_pod(record, pod);
        }
}

/* Return: is the pod there, as far as is known? */
static bool make_group(struct record *record, const struct job_group *group)
{
        const struct job_pod *pod;
        struct job_pods_owner owner = write_owner(record);
        bool ready = claim_plans_ready(record, group);
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(record->name, group, name);
        pod = record_find_pod(record, name);
        if (pod != NULL)
                return !pod->asked || pod->asked_usec != UINT64_MAX;
        if (!ready || !claim_templates_make(record, group))
                return false; /* a pod that does not find its claim or template is tried again late */
        write_pod(record, name, group->name,
                  job_pods_group(&record->job, &record->state, group, &owner,
                                 &record->controller->options.pods, record->keys));
        return false;
}

static bool make_manager(struct record *record)
{
        const struct job_pod *pod;
        struct job_pods_owner owner = write_owner(record);
        char name[JOB_POD_NAME_BYTES], token[49];

        job_state_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        if (pod != NULL)
                return !pod->asked || pod->asked_usec != UINT64_MAX;
        if (!write_token(token))
                return false;
        job_plan_networks(controller_ledger(record->controller), &record->state);
        plan_queue_split(record);
        write_pod(record, name, "",
                  job_pods_manager(&record->job, &record->state, &owner, &record->controller->options.pods,
                                   record->keys, token));
        return false;
}

static void make_pods(struct record *record)
{
        struct controller *c = record->controller;
        bool all = true, placed = true;

        if (controller_monotonic(c) < record->retry_usec)
                return;
        forget_unseen(record);
        remove_unexpected(record);
        if (controller_monotonic(c) < record->pace.again_usec)
                return; /* it has failed again and again */
        if (!write_secret(record))
                return; /* pods name it, and a pod that does not find it is tried again late */
        for (size_t i = 0; i < record->state.group_count; i++) {
                bool has_place = record->state.groups[i].node[0] != '\0';

                placed = placed && has_place;
                all = has_place && make_group(record, &record->state.groups[i]) && all;
        }
        all = placed && make_manager(record) && all;
        tell_launchers(record);
        if (all)
                record->unanswered_usec = 0; /* also what was made without an answer */
        if (all && job_state_awaits_condition(&record->state, JOB_CONDITION_PODS_CREATED)) {
                record->refused_usec = record->refusals = 0;
                job_state_set_condition(&record->state, JOB_CONDITION_PODS_CREATED, true, controller_now(c),
                                        "Created", "every pod of the plan is made");
                job_state_set(&record->state, record->state.phase, controller_now(c), "Created",
                              "every pod of the plan is made");
                record->dirty = true;
                controller_queue(record); /* nothing else need happen to it now */
        }
        if (all && !record->pods_counted) {
                record->pods_counted = true;
                controller_want_plan(c);
                if (record->accepted_usec > 0) { /* accepted by this process */
                        double seconds = (double) (controller_monotonic(c) - record->accepted_usec) / 1e6;

                        histogram_observe(&c->metrics.accepted_to_pods, seconds);
                        controller_log(c, LOG_INFO, "job-pods", "job=%s pods=%zu seconds=%.4f", record->key,
                                       record->state.group_count + 1, seconds);
                }
        }
}

/* Groups are told to end, so that their pods do, with their logs; what does not is deleted. */
static void release_pods(struct record *record)
{
        uint64_t now = controller_monotonic(record->controller), since;
        bool keep;

        forget_unseen(record);
        since = now - record->ended_usec;
        keep = since < (uint64_t) record->controller->options.keep_pods_sec * 1000000;

        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (job_pod_has_ended(pod) && keep)
                        continue;
                if (!job_pod_has_ended(pod) && pod->started && !pod->manager && !pod->deleting &&
                    since < FAREWELL_USEC)
                        tell_end(record, pod);
                else
                        write_delete(record, pod, grace_for(record, pod));
        }
}

/* The finalizer keeps the object while pods of it may use chips, and no longer: who would take it away may be
 * gone by then, and the job could not be. What waits and has said so has none to lose. */
static void drop_finalizer(struct record *record)
{
        bool said = job_phase_ended(record->state.phase) || record->state.reason[0] != '\0';

        if (said && !record->dirty && !record->writing && !record_uses_chips(record))
                write_finalizer(record, false);
}

static void remove_pods(struct record *record)
{
        forget_unseen(record);
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                write_delete(record, pod, grace_for(record, pod));
        }
}

static void remove_all(struct record *record)
{
        remove_pods(record);
        if (record->pods == NULL && !record->gone)
                write_finalizer(record, false);
}

/* What keeps a job from using its chips. */
struct trouble {
        uint64_t since_usec, least_usec; /* CLOCK_MONOTONIC, 0 = there is none; it is waited for at least */
        const char *reason, *what, *why;
        unsigned *times; /* in a row that it was given up for this */
};

/* Chips are not kept for ever for who cannot use them: he waits, longer each time, and is planned anew.
 * Return: was it given up? */
static bool give_up(struct record *record, const struct trouble *t)
{
        struct controller *c = record->controller;
        uint64_t now = controller_monotonic(c), limit = (uint64_t) c->options.pods_wait_sec * 1000000;
        uint64_t pause = limit << (*t->times < 6 ? *t->times : 6), wait = limit;
        char sentence[JOB_MESSAGE_BYTES];

        if (pause > PAUSE_MAX_USEC && limit < PAUSE_MAX_USEC)
                pause = PAUSE_MAX_USEC;
        wait = wait < t->least_usec ? t->least_usec : wait;
        if (limit == 0 || t->since_usec == 0 || now - t->since_usec < wait)
                return false;
        (void) text_format(sentence, sizeof(sentence),
                           "%.128s after %llu s, its chips are given back for %llu s: %.300s", t->what,
                           (unsigned long long) (wait / 1000000), (unsigned long long) (pause / 1000000),
                           t->why);
        write_event(record, true, "LeaseEnded", "%s", sentence);
        record->refused_usec = record->unanswered_usec = record->unbound_usec = 0;
        record->plan_after_usec = now + pause;
        (*t->times)++;
        record_give_up(record, t->reason, sentence);
        return true;
}

static bool give_up_refused(struct record *record)
{
        return give_up(record,
                       &(struct trouble){ .since_usec = record->refused_usec,
                                          .reason = "PodNotCreated",
                                          .what = "no pods",
                                          .why = record->state.conditions[JOB_CONDITION_PODS_CREATED].message,
                                          .times = &record->refusals });
}

static bool waits_for_node(const struct job_pod *pod)
{
        return pod != NULL && !pod->asked && !pod->deleting && pod->node[0] == '\0' &&
               !job_pod_has_ended(pod);
}

/* A pod of the plan that has no node although the chips planned for it are free, or NULL. */
static const struct job_pod *find_unbound(struct record *record)
{
        struct open_groups_claim claim = { .job = { .ledger = controller_ledger(record->controller),
                                                    .job = &record->job } };
        char name[JOB_POD_NAME_BYTES];
        const struct job_pod *pod;

        for (size_t i = 0; i < record->state.group_count; i++) {
                job_group_pod_name(record->name, &record->state.groups[i], name);
                pod = record_find_pod(record, name);
                if (waits_for_node(pod) &&
                    job_lease_fits(&claim, record->namespace_, &record->state.groups[i]))
                        return pod;
        }
        job_state_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        return waits_for_node(pod) ? pod : NULL;
}

/* Was it so at every look since, each a moment after the other and on a store that was in step? */
static void count_unbound(struct record *record, bool unbound)
{
        struct controller *c = record->controller;
        uint64_t now = controller_monotonic(c);
        uint64_t age = store_age_usec(cluster_store(c->options.cluster), 1u << STORE_POD, now);

        if (!unbound || age > UNSEEN_USEC)
                record->unbound_usec = 0;
        else if (record->unbound_usec == 0 || now - record->unbound_look_usec > UNSEEN_USEC)
                record->unbound_usec = now;
        record->unbound_look_usec = now;
}

/* Pods that are made and that no scheduler binds (a volume that is not there, no node of the image's kind)
 * lease as much as others. */
static bool give_up_unbound(struct record *record)
{
        const struct job_pod *pod = record->state.phase == JOB_RUNNING ? NULL : find_unbound(record);
        bool said = pod != NULL && pod->message[0] != '\0', given_up;
        char what[JOB_POD_NAME_BYTES + 32];

        if (record->state.phase == JOB_RUNNING)
                record->unbound_times = 0;
        count_unbound(record, pod != NULL);
        if (pod == NULL)
                return false;
        (void) text_format(what, sizeof(what), "pod %s is on no node", pod->name);
        given_up =
                give_up(record, &(struct trouble){ .since_usec = record->unbound_usec,
                                                   .least_usec = said ? 0 : UNSAID_USEC,
                                                   .reason = "PodNotBound",
                                                   .what = what,
                                                   .why = said ? pod->message : "no scheduler has said why",
                                                   .times = &record->unbound_times });
        record->controller->metrics.unbound += given_up;
        return given_up;
}

static void end_early(struct record *record, enum job_phase phase, const char *reason, const char *sentence)
{
        struct controller *c = record->controller;

        job_state_set(&record->state, phase, controller_now(c), reason, "%s", sentence);
        record->dirty = true;
        c->metrics.ended[phase]++;
        write_event(record, phase == JOB_FAILED, reason, "%s", sentence);
        controller_want_plan(c);
}

/* The manager holds the world together until its groups, who may write a checkpoint, are gone.
 * Return: are they? */
static bool remove_groups(struct record *record)
{
        bool gone = true;

        forget_unseen(record);
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (pod->manager || job_pod_has_ended(pod))
                        continue;
                write_delete(record, pod, grace_for(record, pod));
                /* What sits on a node that is lost ends when it can: it keeps no chips of the others. */
                gone = gone && pod->node[0] != '\0' && watch_node_is_lost(record, pod->node);
        }
        return gone;
}

/* Nothing is planned or made for a job that is suspended; one that runs gives up what it has. */
static void hold(struct record *record)
{
        if (record->state.group_count > 0 && !watch_has_succeeded(record)) {
                suspend_begin(record); /* written before a pod is told: another controller goes on with it */
                if (!record->dirty && !record->writing && remove_groups(record))
                        suspend_leave(record);
        }
        if (record->state.group_count == 0) {
                progress_close(record);
                remove_pods(record);
                suspend_settle(record);
                drop_finalizer(record);
        }
        record_lease(record);
        if (!record->finalizing)
                write_status(record);
}

void reconcile(struct record *record)
{
        struct controller *c = record->controller;

        disruption_settle(record);
        if (record->gone || record->deleting) {
                remove_all(record);
                return;
        }
        if (!job_phase_ended(record->state.phase) && !record->valid) {
                job_state_set_condition(&record->state, JOB_CONDITION_ACCEPTED, false, controller_now(c),
                                        "InvalidSpec", record->why);
                end_early(record, JOB_FAILED, "InvalidSpec", record->why);
        }
        if (!job_phase_ended(record->state.phase) && record->bad_status[0] != '\0') {
                job_state_clear_plan(&record->state);
                end_early(record, JOB_FAILED, "BadStatus", record->bad_status);
        }
        if (!job_phase_ended(record->state.phase) && record->cancel)
                end_early(record, JOB_CANCELLED, "Cancelled",
                          "cancelled by its annotation " JOB_ANNOTATION_CANCEL);
        if (job_phase_ended(record->state.phase)) {
                kueue_end(record);
                record_lease(record);
                progress_close(record);
                expire_note_end(record);
                write_status(record);
                release_pods(record);
                drop_finalizer(record);
                if (expire_is_due(record))
                        write_removal(record);
                return;
        }
        kueue_look(record);
        kueue_step(record);
        if (suspend_holds(record)) {
                hold(record);
                return;
        }
        suspend_resume(record);
        if (record->state.group_count > 0) {
                if (!record->writing) /* of two writes at one time the second one's version is old */
                        write_finalizer(record, true);
                if (!give_up_refused(record) && !give_up_unbound(record))
                        watch_job(record);
                record_lease(record); /* what lost its place has no lease there */
                progress_ask(record);
        } else {
                remove_unexpected(record);
                controller_want_plan(c);
                drop_finalizer(record);
        }
        if (record->finalizing)
                return;
        write_status(record);
        /* nothing is made from what is not written */
        if (record->has_finalizer && !record->dirty && !record->writing && record->state.group_count > 0)
                make_pods(record);
}
