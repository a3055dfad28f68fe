/* Jobs that wait, in their order: parents first, then urgency, class, priority, need and age; each is planned
 * on the ledger and leases its chips at once, so that the next one sees them taken. */
#include "job/controller/plan_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "job/controller/claims/claim_plans.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/controller_internal.h"
#include "job/controller/profile/profile_read.h"
#include "job/controller/suspend.h"
#include "job/controller/write.h"
#include "job/plan/job_lease.h"
#include "job/plan/job_order.h"
#include "job/plan/job_plan.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* Jobs whose pods are being made at one time: the first ones need not wait for the last. */
#define MAKING_MAX 4

#define SAY_USEC 10000000u /* the same reason in other words is said this often */

/* Emergencies, and jobs of higher priority in their namespace, that found no room: those after them must not
 * take what they wait for, as long as rules.hold_usec; then for as long they may. */
struct blocked {
        const struct record *jobs[64];
        bool *possible[64]; /* groups that it could have; owned */
        size_t count;
};

static void blocked_free(struct blocked *blocked)
{
        for (size_t i = 0; i < blocked->count; i++)
                free(blocked->possible[i]);
}

static void say_waiting(struct record *record, enum job_phase phase, const char *reason, const char *sentence)
{
        struct job_state *state = &record->state;
        uint64_t now = controller_now(record->controller);
        bool same = state->phase == phase && strcmp(state->reason, reason) == 0;

        if (same && (strcmp(state->message, sentence) == 0 ||
                     controller_monotonic(record->controller) - record->said_usec < SAY_USEC))
                return;
        if (!same)
                write_event(record, phase == JOB_FAILED, reason, "%s", sentence);
        if (phase == JOB_FAILED)
                record->controller->metrics.ended[JOB_FAILED]++;
        record->said_usec = controller_monotonic(record->controller);
        job_state_set_condition(state, JOB_CONDITION_ACCEPTED, true, now, "Accepted",
                                "the job is understood");
        job_state_set(state, phase, now, reason, "%s", sentence);
        record->dirty = true;
        controller_queue(record);
}

static struct open_groups_claim claim_for(struct record *record, enum ledger_pods_takes takes)
{
        struct controller *c = record->controller;
        size_t programs;
        const struct ledger_program *table = cluster_programs(c->options.cluster, &programs);

        return (struct open_groups_claim){
                .job = { .ledger = controller_ledger(c),
                         .job = &record->job,
                         .programs = table,
                         .program_count = programs },
                .rules = cluster_rules(c->options.cluster),
                .ledger_job = ledger_jobs_find(controller_ledger(c), record->namespace_, record->name),
                .emergency = record->emergency,
                .takes = takes,
                .created_usec = record->created_usec,
                .now_usec = clock_steady_usec(),
        };
}

/* What the plan has to say of itself, "Word: sentence", is an event each. */
static void tell_notes(struct record *record)
{
        for (size_t i = 0; i < record->state.note_count; i++) {
                const char *note = record->state.notes[i], *colon = strstr(note, ": ");
                char word[JOB_REASON_BYTES];

                assert(colon != NULL);
                (void) text_format(word, sizeof(word), "%.*s", (int) (colon - note), note);
                write_event(record, false, word, "%s", colon + 2);
        }
}

static void planned(struct record *record)
{
        struct controller *c = record->controller;
        struct job_state *state = &record->state;
        uint64_t now = controller_now(c);

        record->blocks_usec = 0;
        record->unbound = true;
        job_state_doubt_condition(state, JOB_CONDITION_PODS_CREATED, now, "Planned",
                                  "another plan's pods were asked for; those of this one are not made yet");
        c->metrics.planned++;
        if (state->start_usec == 0)
                state->start_usec = now;
        job_state_set_condition(state, JOB_CONDITION_ACCEPTED, true, now, "Accepted",
                                "the job is understood");
        job_state_set(state, state->world == 0 ? JOB_STARTING : JOB_RESTARTING, now, "Planned",
                      "%u ranks in %zu device groups", job_state_world_size(state), state->group_count);
        write_event(record, false, "Planned", "%u ranks in %zu device groups", job_state_world_size(state),
                    state->group_count);
        tell_notes(record);
        record->dirty = true;
        record->accepted_usec = controller_monotonic(c);
        record_lease(record);
        controller_queue(record);
}

static bool plan_job(struct record *record)
{
        struct controller *c = record->controller;
        struct open_groups_claim claim = claim_for(record, LEDGER_PODS_TAKES_NOBODY);
        struct err err = { 0 };
        int r = job_claim_offered(&record->job, claim.job.ledger,
                                  store_serves(cluster_store(c->options.cluster), STORE_RESOURCE_SLICE, NULL),
                                  &err);

        if (r == 0)
                r = job_plan(&claim, &record->state, &err);
        while (r == -EBUSY && record->emergency && claim.takes < claim.rules->takes) {
                claim.takes++; /* the extender evicts who sits on what is leased then */
                r = job_plan(&claim, &record->state, NULL);
        }
        if (r == 0) {
                r = job_pods_check(&record->job, &record->state, &c->options.pods, &err);
                if (r < 0) {
                        job_state_clear_plan(&record->state);
                        say_waiting(record, JOB_FAILED, "ProgramMissing", err.msg);
                        return true;
                }
        }
        if (r == -ERANGE) {
                say_waiting(record, JOB_FAILED, "NoPlan", err.msg);
                return true;
        }
        if (r < 0) {
                say_waiting(record, JOB_PENDING, "Unschedulable", err.msg);
                return false;
        }
        planned(record);
        return true;
}

/* The groups that are left have no plan: all are planned anew, or it is said why they cannot be. */
static bool no_plan(struct record *record, const struct err *err)
{
        write_event(record, true, "NoPlan", "%s", err->msg);
        record_give_up(record, "NoPlan", err->msg);
        return false;
}

/* Return: is nothing to be done any more? */
static bool place_lost_group(struct record *record, size_t index)
{
        struct controller *c = record->controller;
        struct open_groups_claim claim = claim_for(record, LEDGER_PODS_TAKES_NOBODY);
        struct job_state *state = &record->state;
        struct job_group *group = &state->groups[index];
        struct err err = { 0 };
        char name[JOB_GROUP_NAME_BYTES];
        int r = -EBUSY;

        (void) text_copy(name, sizeof(name), group->name);
        if (record->job.restart.migrate)
                r = job_plan_move(&claim, state, index, &err);
        if (r == 0) {
                c->metrics.moves++;
                group = job_state_group(state, name); /* it may stand elsewhere: a split is planned anew */
                assert(group != NULL);
                write_event(record, false, "Migrated", "%s goes to %s of node %s", name, group->group,
                            group->node);
        } else if (job_plan_may_leave(&record->job, state, index)) {
                if (job_plan_leave_out(&claim, state, index, &err) < 0)
                        return no_plan(record, &err);
                state->reshards++;
                write_event(record, true, "LeftOut",
                            "there are no spare chips for %s: the job goes on with fewer", name);
        } else if (r != -EBUSY) {
                return no_plan(record, &err);
        } else {
                say_waiting(record, JOB_RESTARTING, "NoSpareChip",
                            record->job.restart.migrate
                                    ? err.msg
                                    : "its chips cannot be used and spec.restart.migrate is false");
                return false;
        }
        record->dirty = true;
        record_lease(record);
        controller_queue(record);
        return true;
}

/* Was no group's pod of this plan seen on a node yet? */
static bool is_unbound(struct record *record)
{
        for (size_t i = 0; record->unbound && i < record->state.group_count; i++) {
                char name[JOB_POD_NAME_BYTES];
                const struct job_pod *pod;

                job_group_pod_name(record->name, &record->state.groups[i], name);
                pod = record_find_pod(record, name);
                record->unbound = pod == NULL || pod->node[0] == '\0';
        }
        return record->unbound;
}

/* Of chips that fell ill, or that somebody else was bound to, before our pod was. A job that is nowhere yet,
 * or nowhere again after it was evicted, is planned anew as a whole; one whose pods are evicted is about to
 * give up everything. */
static void lose_places(struct record *record)
{
        struct open_groups_claim claim = claim_for(record, LEDGER_PODS_TAKES_NOBODY);
        struct job_state *state = &record->state;
        bool unbound = is_unbound(record);

        claim.takes = record->emergency ? claim.rules->takes : LEDGER_PODS_TAKES_NOBODY;
        if (job_state_is_refused(state))
                return; /* it leases nothing; planned anew it would, each time until the next refusal */
        for (size_t i = 0; i < state->group_count && !record->yielding; i++) {
                struct job_group *group = &state->groups[i];
                char sentence[JOB_MESSAGE_BYTES];

                if (group->node[0] == '\0' ||
                    (job_lease_fits(&claim, record->namespace_, group) && !claim_plans_yields(record, group)))
                        continue;
                (void) text_format(sentence, sizeof(sentence),
                                   "the chips planned for %s on node %s are not free any more", group->name,
                                   group->node);
                write_event(record, true, "PlaceLost", "%s", sentence);
                if (state->phase == JOB_STARTING || unbound) {
                        record_give_up(record, "PlaceLost", sentence);
                        return;
                }
                job_group_lose(group);
                record_lease(record);
                record->dirty = true;
        }
}

/* Return: is its profile not read, or not to be had, which is said? */
static bool lacks_profile(struct record *record, enum job_phase phase)
{
        const char *why;

        if (profile_read_ready(record, &why))
                return false;
        if (why[0] != '\0')
                say_waiting(record, phase, "NoProfile", why);
        return true;
}

static void place_lost(struct record *record)
{
        for (size_t i = 0; i < record->state.group_count;) {
                if (record->state.groups[i].node[0] != '\0') {
                        i++;
                        continue;
                }
                if (lacks_profile(record, JOB_RESTARTING) || !place_lost_group(record, i))
                        return;
        }
}

/* One that has not ended: what cannot be one, or is cancelled, has been looked at before (reconcile()). */
static bool waits(const struct record *record)
{
        return record->state.group_count == 0 && !suspend_holds(record);
}

static enum job_order_state order_state(const struct record *record)
{
        if (record->state.phase == JOB_SUCCEEDED)
                return JOB_ORDER_SUCCEEDED;
        if (job_phase_ended(record->state.phase) || record->deleting)
                return JOB_ORDER_FAILED;
        return waits(record) ? JOB_ORDER_WAITING : JOB_ORDER_RUNNING;
}

static void say_verdict(struct record *record, const struct job_order_entry *entries, size_t count,
                        size_t index)
{
        const struct job_order_entry *entry = &entries[index];
        const char *parent = entry->dependency_count > 0 ? entry->depends_on[entry->parent] : "";
        struct text sentence = { .max_bytes = 400 };

        switch (entry->verdict) {
        case JOB_ORDER_PARENT_UNFINISHED:
                text_printf(&sentence, "waits until job '%s' has succeeded", parent);
                say_waiting(record, JOB_PENDING, "WaitsForDependency", sentence.data);
                break;
        case JOB_ORDER_PARENT_UNKNOWN:
                text_printf(&sentence, "waits for job '%s', which is not there (yet)", parent);
                say_waiting(record, JOB_PENDING, "WaitsForDependency", sentence.data);
                break;
        case JOB_ORDER_PARENT_FAILED:
                text_printf(&sentence, "job '%s', on which it depends, did not succeed", parent);
                say_waiting(record, JOB_FAILED, "DependencyFailed", sentence.data);
                break;
        case JOB_ORDER_CYCLE:
                text_append(&sentence, "spec.dependsOn: the jobs wait for each other in a circle: ");
                job_order_cycle(entries, count, index, &sentence);
                say_waiting(record, JOB_FAILED, "DependencyCycle",
                            sentence.data == NULL ? "a circle of jobs" : sentence.data);
                break;
        default:
                break;
        }
        text_free(&sentence);
}

/* Does the one that waits come before the other, if they wait for the same chips? */
static bool comes_first(const struct record *record, const struct record *other)
{
        return (strcmp(record->namespace_, other->namespace_) == 0 &&
                record->job.priority > other->job.priority) ||
               (int) record->emergency > (int) other->emergency;
}

/* Does an emergency, or a job of higher priority of its namespace, wait for chips that this one could have?
 * Without memory to find out, it does. */
static const struct record *blocker_of(const struct blocked *blocked, struct record *record)
{
        struct open_groups_claim claim = claim_for(record, false);
        size_t count = open_groups_all(claim.job.ledger);
        CLEANUP(free_p) bool *possible = NULL;

        for (size_t i = 0; i < blocked->count; i++) {
                if (!comes_first(blocked->jobs[i], record))
                        continue;
                if (possible == NULL) {
                        possible = calloc(count + 1, sizeof(*possible));
                        if (possible == NULL)
                                return blocked->jobs[i];
                        (void) open_groups_possible(&claim, possible);
                }
                for (size_t g = 0; g < count; g++)
                        if (possible[g] && blocked->possible[i][g])
                                return blocked->jobs[i];
        }
        return NULL;
}

static bool is_making(const struct record *record)
{
        return record->state.group_count > 0 && !record->pods_counted && !record->gone && !record->deleting &&
               record->state.phase == JOB_STARTING;
}

static size_t count_making(const struct controller *c)
{
        size_t count = 0;

        for (const struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                const struct record *record = (const struct record *) e;

                count +=
                        is_making(record) && record->refused_usec == 0; /* others need not wait for a quota */
        }
        return count;
}

/* Jobs of its namespace hold chips while their pods are refused, and as many as may be made at one time have
 * none yet: another one's would be refused, too. */
static bool waits_for_refused(const struct record *like)
{
        size_t refused = 0, making = 0;

        for (const struct name_map_entry *e = name_map_first(&like->controller->records); e != NULL;
             e = name_map_next(&like->controller->records, e)) {
                const struct record *record = (const struct record *) e;

                if (strcmp(record->namespace_, like->namespace_) != 0)
                        continue;
                if (record->refused_usec != 0 && record->state.group_count > 0 && !record->gone)
                        refused++;
                else
                        making += is_making(record);
        }
        return refused > 0 && refused + making >= MAKING_MAX;
}

/* Others wait behind it for a while, unless it could not run if nobody else did. */
static void block(struct blocked *blocked, struct record *record)
{
        struct open_groups_claim claim = claim_for(record, false);
        uint64_t limit = claim.rules->hold_usec, now = controller_monotonic(record->controller);
        bool *possible;

        if (record->blocks_usec == 0 || (limit > 0 && now - record->blocks_usec >= 2 * limit))
                record->blocks_usec = now;
        if (blocked->count == ARRAY_SIZE(blocked->jobs) ||
            (limit > 0 && now - record->blocks_usec >= limit) ||
            (possible = calloc(open_groups_all(claim.job.ledger) + 1, sizeof(*possible))) == NULL)
                return;
        if (open_groups_possible(&claim, possible) < job_worker_chips(&record->job)) {
                free(possible);
                return;
        }
        blocked->possible[blocked->count] = possible;
        blocked->jobs[blocked->count++] = record;
}

/* Classes order between namespaces; one whose pods were refused (a quota of the class, mostly) has shown no
 * right to its class, and comes in the cluster's default order. */
static int64_t class_value_of(const struct record *record)
{
        const char *class =
                record->refused_usec != 0 || record->refusals > 0 ? "" : record->job.priority_class;
        int64_t value = 0;

        (void) cluster_class_value(record->controller->options.cluster, class, &value);
        return value;
}

/* A pod of a class that is not there would be refused. */
static bool lacks_class(struct record *record)
{
        const char *class = record->job.priority_class;
        int64_t value;
        int r = cluster_class_value(record->controller->options.cluster, class, &value);
        char sentence[400];

        if (r == -ENOENT) {
                (void) text_format(sentence, sizeof(sentence),
                                   "spec.priorityClassName: there is no PriorityClass '%s' in the cluster "
                                   "(kubectl get priorityclasses)",
                                   class);
                say_waiting(record, JOB_PENDING, "NoPriorityClass", sentence);
        }
        return r < 0;
}

static void serve_ready(struct record **records, const size_t *order, size_t ready)
{
        CLEANUP(blocked_free) struct blocked blocked = { .count = 0 };
        size_t making = ready > 0 ? count_making(records[order[0]]->controller) : 0;

        for (size_t i = 0; i < ready && making < MAKING_MAX; i++) {
                struct record *record = records[order[i]];
                const struct record *blocker;
                char sentence[200];

                if (controller_monotonic(record->controller) < record->plan_after_usec)
                        continue; /* its pods were refused: it blocks nobody meanwhile */
                if (!kueue_may_plan(record))
                        continue;
                if (lacks_class(record) || lacks_profile(record, JOB_PENDING))
                        continue;
                if (waits_for_refused(record)) {
                        say_waiting(record, JOB_PENDING, "WaitsForRefused",
                                    "the pods of other jobs in its namespace are refused");
                        continue;
                }
                blocker = blocker_of(&blocked, record);
                if (blocker != NULL) {
                        (void) text_format(sentence, sizeof(sentence),
                                           "waits behind job '%s', which comes first", blocker->name);
                        say_waiting(record, JOB_PENDING, "WaitsForPriority", sentence);
                } else if (plan_job(record)) {
                        making += record->state.group_count > 0;
                } else {
                        block(&blocked, record);
                }
        }
}

void plan_queue_run(struct controller *c)
{
        size_t capacity = c->records.count, count = 0, waiting = 0;
        CLEANUP(free_p) struct record **records = calloc(capacity + 1, sizeof(struct record *));
        CLEANUP(free_p) struct job_order_entry *entries = calloc(capacity + 1, sizeof(*entries));
        CLEANUP(free_p) size_t *order = calloc(capacity + 1, sizeof(*order));
        long ready;

        if (records == NULL || entries == NULL || order == NULL)
                return;
        /* what an older pod waits for is no younger job's: held here as in the extender, by the same rule */
        backfill_renew(controller_ledger(c), cluster_rules(c->options.cluster), clock_steady_usec());
        for (struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                struct record *record = (struct record *) e;

                if (record->uid[0] == '\0' || record->gone || !controller_may_look(record))
                        continue;
                if (!job_phase_ended(record->state.phase) && !record->deleting &&
                    record->state.group_count > 0 && !suspend_holds(record)) {
                        lose_places(record);
                        place_lost(record);
                }
                records[count] = record;
                entries[count] = job_order_entry_of(&record->job, record->created_usec);
                if (record_was_planned(record))
                        entries[count].dependency_count = 0;
                entries[count].namespace_ = record->namespace_;
                entries[count].name = record->name;
                entries[count].urgency = record->emergency ? JOB_URGENCY_EMERGENCY : JOB_URGENCY_REGULAR;
                entries[count].class_value = class_value_of(record);
                entries[count].state = order_state(record);
                waiting += entries[count++].state == JOB_ORDER_WAITING;
        }
        if (waiting == 0)
                return;
        ready = job_order(entries, count, order);
        if (ready < 0)
                return;
        for (size_t i = (size_t) ready; i < count; i++)
                say_verdict(records[order[i]], entries, count, order[i]);
        serve_ready(records, order, (size_t) ready);
}

void plan_queue_split(struct record *record)
{
        const struct open_groups_claim claim = claim_for(record, LEDGER_PODS_TAKES_NOBODY);
        struct err err = { 0 };

        if (record->job.strategy == JOB_STRATEGY_SPLIT &&
            job_plan_split(&claim.job, &record->state, &err) < 0)
                syslog(LOG_WARNING, "job %s/%s: its slow stages will not be found: %s", record->namespace_,
                       record->name, err.msg);
}
