/* What a Workload says of a job, in the words of its status, and what is written into it. */
#include "job/controller/kueue/kueue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/kueue/kueue_workload_status.h"
#include "job/controller/write.h"
#include "job/spec/held.h"
#include "job/spec/labels.h"

#define AGAIN_USEC   1000000u  /* the watch shows in a moment what was written */
#define COMPARE_USEC 10000000u /* between two looks whether job and Workload are like each other */
#define REFUSED_USEC 10000000u /* what was refused is refused again, mostly */

/* A Workload that a TrainingJob owns. */
struct entry {
        struct name_map_entry entry;
        struct kueue_workload workload;
};

static bool is_on(const struct record *record)
{
        return record->controller->options.kueue;
}

/* Can Workloads be read where the job is? */
static bool are_shown(const struct record *record)
{
        return store_serves(cluster_store(record->controller->options.cluster), STORE_KUEUE_WORKLOAD,
                            record->namespace_);
}

static struct entry *find(struct kueue *kueue, const char *key)
{
        return (struct entry *) name_map_find(&kueue->workloads, key);
}

static void drop(struct kueue *kueue, struct entry *entry)
{
        name_map_remove(&kueue->workloads, &entry->entry);
        kueue_workload_free(&entry->workload);
        free(entry);
}

void kueue_free(struct kueue *kueue)
{
        for (struct name_map_entry *e = name_map_first(&kueue->workloads), *next; e != NULL; e = next) {
                next = name_map_next(&kueue->workloads, e);
                drop(kueue, (struct entry *) e);
        }
        name_map_free(&kueue->workloads);
        json_decref(kueue->flavors);
        kueue->flavors = NULL;
}

/* The Workload of this very job, or NULL. */
static const struct kueue_workload *workload_of(const struct record *record)
{
        char name[KUEUE_NAME_BYTES], key[600];
        const struct entry *entry;

        kueue_workload_name(record->name, record->uid, name);
        (void) text_format(key, sizeof(key), "%s/%s", record->namespace_, name);
        entry = find(&record->controller->kueue, key);
        return entry != NULL && strcmp(entry->workload.owner, record->uid) == 0 ? &entry->workload : NULL;
}

/* The job whose Workload it is looks at it. */
static void tell(struct controller *c, const char *key, const char *job)
{
        char namespace_[256], job_key[512];
        struct record *record;

        (void) store_key_split(key, namespace_);
        (void) text_format(job_key, sizeof(job_key), "%s/%s", namespace_, job);
        record = controller_find(c, job_key);
        if (record == NULL)
                return;
        record->queue.admitted = false; /* with what it says now */
        record->queue.compared_usec = 0;
        kueue_look(record);
        controller_queue(record);
        controller_want_plan(c);
}

static void take(struct controller *c, const char *key, struct kueue_workload *workload)
{
        struct entry *entry = (struct entry *) name_map_make(&c->kueue.workloads, key, sizeof(*entry));

        if (entry == NULL) {
                kueue_workload_free(workload);
                return;
        }
        kueue_workload_free(&entry->workload);
        entry->workload = *workload;
        tell(c, key, entry->workload.job);
}

void kueue_observe_workload(struct controller *c, const char *key, const json_t *object)
{
        struct entry *entry = find(&c->kueue, key);
        struct kueue_workload workload = { .name = "" };
        char job[JOB_NAME_BYTES];

        kueue_workload_decode(object, &workload);
        if (object != NULL && workload.job[0] != '\0') {
                take(c, key, &workload);
                return;
        }
        kueue_workload_free(&workload);
        if (entry == NULL)
                return;
        memcpy(job, entry->workload.job, sizeof(job));
        drop(&c->kueue, entry);
        tell(c, key, job);
}

void kueue_observe_flavor(struct controller *c, const char *key, const json_t *object)
{
        json_t *spec = json_object_get(object, "spec");

        if (c->kueue.flavors == NULL)
                c->kueue.flavors = json_object();
        if (object == NULL)
                (void) json_object_del(c->kueue.flavors, key);
        else
                (void) json_object_set_new(c->kueue.flavors, key,
                                           spec != NULL ? json_incref(spec) : json_object());
        for (struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                struct record *record = (struct record *) e;

                record->queue.admitted = false;
                kueue_look(record);
        }
        controller_want_plan(c);
}

static void hold(struct record *record, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void hold(struct record *record, const char *reason, const char *fmt, ...)
{
        struct record_queue *queue = &record->queue;
        va_list values;

        queue->holds = true;
        (void) text_copy(queue->reason, sizeof(queue->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(queue->sentence, sizeof(queue->sentence), fmt, values); /* cut to its field */
        va_end(values);
}

static void hold_without(struct record *record)
{
        const struct kueue *kueue = &record->controller->kueue;
        const struct record_queue *queue = &record->queue;
        bool known = kueue->workloads_synced && kueue->flavors_synced && are_shown(record);

        if (!known && record->state.group_count > 0)
                return; /* what runs is not stopped because somebody cannot be asked */
        if (!kueue->workloads_synced || !kueue->flavors_synced)
                hold(record, HELD_WAITS, "what Kueue says is not read yet");
        else if (!are_shown(record))
                hold(record, HELD_KUEUE_MISSING,
                     "its label " LABELS_QUEUE " names queue '%.100s', and no Workloads of Kueue "
                     "(kueue.x-k8s.io/v1beta1) can be read: install Kueue and let remuda-controller read "
                     "them, or "
                     "remove the label",
                     queue->label);
        else if (queue->refused[0] != '\0')
                hold(record, HELD_REFUSED, "its Workload for queue '%.100s' cannot be made: %.300s",
                     queue->label, queue->refused);
        else
                hold(record, HELD_WAITS, "waits in queue '%.100s'", queue->label);
}

/* Would it be asked for so now? Where a name cannot be said, that is no change of the job. */
static void compare(struct record *record, const struct kueue_workload *workload)
{
        struct record_queue *queue = &record->queue;
        struct err err = { 0 };
        json_t *sets =
                kueue_workload_pod_sets(&record->job, controller_ledger(record->controller), workload, &err);

        queue->unlike = sets != NULL && !kueue_workload_asks(workload, sets);
        queue->compared_usec = sets != NULL ? controller_monotonic(record->controller) : 0;
        (void) text_copy(queue->unnamed, sizeof(queue->unnamed), err.msg);
        json_decref(sets);
}

/* A plan holds as it was admitted; without one it is asked whether it would be admitted so now. That looks
 * through all groups of the ledger, so not at every look; and before these are read it says nothing. */
static bool has_changed(struct record *record, const struct kueue_workload *workload)
{
        struct record_queue *queue = &record->queue;
        uint64_t now = controller_monotonic(record->controller);

        if (record->state.group_count > 0 || !cluster_is_ready(record->controller->options.cluster))
                return false;
        if (queue->compared_usec == 0 || now - queue->compared_usec >= COMPARE_USEC)
                compare(record, workload);
        return queue->unlike;
}

/* It is admitted. Where it already has a plan, what has become of flavors since does not end it. */
static void take_admission(struct record *record, const struct kueue_workload *workload)
{
        struct err err = { 0 };

        if (record->queue.admitted)
                return;
        if (has_changed(record, workload)) {
                hold(record, HELD_WAITS,
                     "it has changed since it was admitted: it waits in queue '%.100s' again",
                     workload->queue);
                return;
        }
        if (record->state.group_count == 0 && record->queue.unnamed[0] != '\0') {
                hold(record, HELD_UNUSABLE, "Kueue admitted it, but %.400s", record->queue.unnamed);
                return;
        }
        record->queue.admitted =
                kueue_workload_admit(workload, record->controller->kueue.flavors, &record->job, &err) == 0;
        if (!record->queue.admitted && record->state.group_count == 0)
                hold(record, HELD_UNUSABLE, "Kueue admitted it, but %.400s", err.msg);
}

static void look_at(struct record *record, const struct kueue_workload *workload)
{
        const char *message = workload->message;

        if (workload->finished)
                hold(record, HELD_FINISHED,
                     "its Workload '%.100s' says Finished: %.300s; delete it to wait anew", workload->name,
                     message);
        else if (workload->evicted)
                hold(record, HELD_EVICTED, "Kueue evicted it (%s): %.400s", workload->reason, message);
        else if (workload->inactive) /* one that we made so is made active in a moment */
                hold(record, workload->suspended ? HELD_WAITS : HELD_INACTIVE,
                     "its Workload '%.100s' is not active (spec.active is false)", workload->name);
        else if (!workload->admitted)
                hold(record, HELD_WAITS, "waits in queue '%.100s'%s%.300s", workload->queue,
                     message[0] == '\0' ? "" : ": ", message);
        else
                take_admission(record, workload);
}

void kueue_look(struct record *record)
{
        const struct kueue_workload *workload;
        struct record_queue *queue = &record->queue;

        queue->holds = false;
        if (!is_on(record) || !record->valid || record->uid[0] == '\0')
                return;
        workload = workload_of(record);
        if (workload != NULL)
                look_at(record, workload);
        else if (queue->label[0] != '\0')
                hold_without(record);
        if (!queue->holds && workload != NULL)
                (void) text_format(queue->sentence, sizeof(queue->sentence),
                                   "Kueue admitted it to ClusterQueue '%.200s': it is planned",
                                   workload->cluster_queue);
}

bool kueue_may_plan(struct record *record)
{
        const struct kueue_workload *workload = is_on(record) ? workload_of(record) : NULL;

        if (workload == NULL)
                return !record->queue.holds;
        compare(record, workload);
        if (record->queue.unlike || record->queue.unnamed[0] != '\0') {
                record->queue.admitted = false;
                kueue_look(record);
                controller_queue(record);
        }
        return !record->queue.holds;
}

/* Nothing of it uses chips. */
static bool is_at_rest(const struct record *record)
{
        return record->state.group_count == 0 && record->pods == NULL;
}

static void create(struct record *record)
{
        struct job_pods_owner owner = write_owner(record);
        const char *class = record->job.priority_class;
        int64_t priority = 0;
        struct err err = { 0 };
        json_t *sets;
        int r = class[0] == '\0' ? 0
                                 : cluster_class_value(record->controller->options.cluster, class, &priority);

        if (r < 0) {
                if (r != -EAGAIN) /* they are not read yet */
                        (void) text_format(record->queue.refused, sizeof(record->queue.refused),
                                           "spec.priorityClassName: there is no PriorityClass '%.100s'",
                                           class);
                return;
        }
        sets = kueue_workload_pod_sets(&record->job, controller_ledger(record->controller), NULL, &err);
        if (sets != NULL)
                write_workload(record, NULL,
                               kueue_workload_new(&record->job, &owner, record->queue.label, priority, sets));
        else
                (void) text_copy(record->queue.refused, sizeof(record->queue.refused), err.msg);
}

/* Of a change of the label that comes too late: the quota is in the other queue. */
static void say_ignored(struct record *record, const struct kueue_workload *workload)
{
        struct record_queue *queue = &record->queue;

        if (strcmp(queue->ignored, queue->label) == 0)
                return;
        (void) text_copy(queue->ignored, sizeof(queue->ignored), queue->label);
        write_event(record, true, "QueueChangeIgnored",
                    "its label " LABELS_QUEUE " says '%.100s' now: it stays in queue '%.100s', %s",
                    queue->label, workload->queue,
                    workload->reserved ? "which admitted it; suspend it first" : "which it waits in");
}

/* What its spec has to say otherwise now. A new reference, or NULL. */
static json_t *spec_patch(struct record *record, const struct kueue_workload *workload)
{
        const char *label = record->queue.label;
        json_t *sets;

        if (record->job.suspend && !workload->inactive)
                return json_pack("{s:{s:{s:s}}, s:{s:b}}", "metadata", "annotations",
                                 KUEUE_ANNOTATION_SUSPENDED, "true", "spec", "active", 0);
        if (!record->job.suspend && workload->suspended)
                return json_pack("{s:{s:{s:n}}, s:{s:b}}", "metadata", "annotations",
                                 KUEUE_ANNOTATION_SUSPENDED, "spec", "active", 1);
        if (strcmp(label, workload->queue) != 0 && (workload->reserved || label[0] == '\0'))
                say_ignored(record, workload);
        else if (strcmp(label, workload->queue) != 0)
                return json_pack("{s:{s:s}}", "spec", "queueName", label);
        if (workload->reserved || !has_changed(record, workload))
                return NULL;
        sets = kueue_workload_pod_sets(&record->job, controller_ledger(record->controller), workload, NULL);
        return sets == NULL ? NULL : json_pack("{s:{s:o}}", "spec", "podSets", sets);
}

/* What its status has to say otherwise now. A new reference, or NULL. */
static json_t *status_patch(struct record *record, const struct kueue_workload *workload)
{
        uint64_t now = controller_now(record->controller);
        bool runs = record->state.phase == JOB_RUNNING;

        if (workload->reserved && is_at_rest(record) &&
            (workload->evicted || (workload->admitted && has_changed(record, workload))))
                return kueue_workload_status_release(
                        workload, workload->evicted ? workload->message : "the job has changed", now);
        if (workload->ready != runs && workload->admitted)
                return kueue_workload_status_condition(workload, "PodsReady", runs,
                                                       runs ? "PodsReady" : "PodsNotReady",
                                                       runs ? "the job runs" : "the job does not run", now);
        return NULL;
}

static bool may_write(struct record *record)
{
        return is_on(record) && !record->queue.writing &&
               controller_monotonic(record->controller) >= record->queue.retry_usec;
}

void kueue_step(struct record *record)
{
        const struct kueue_workload *workload = workload_of(record);
        json_t *patch;

        if (!may_write(record) || !record->controller->kueue.workloads_synced || !are_shown(record))
                return;
        if (workload == NULL) {
                if (record->queue.label[0] != '\0' && !record->job.suspend && is_at_rest(record))
                        create(record);
                return;
        }
        if (workload->finished)
                return;
        patch = status_patch(record, workload);
        if (patch == NULL)
                patch = spec_patch(record, workload);
        if (patch != NULL)
                write_workload(record, workload->name, patch);
}

void kueue_end(struct record *record)
{
        const struct kueue_workload *workload = workload_of(record);
        bool good = record->state.phase == JOB_SUCCEEDED;

        if (workload != NULL && !workload->finished && !record_uses_chips(record) && may_write(record))
                write_workload(record, workload->name,
                               kueue_workload_status_condition(
                                       workload, "Finished", true, good ? "Succeeded" : "Failed",
                                       record->state.message, controller_now(record->controller)));
}

void kueue_written(struct record *record, int result, const char *sentence)
{
        struct record_queue *queue = &record->queue;
        bool refused = result < 0 && result != -ESTALE && result != -ENOENT;

        queue->writing = false;
        queue->retry_usec = controller_monotonic(record->controller) + (refused ? REFUSED_USEC : AGAIN_USEC);
        (void) text_format(queue->refused, sizeof(queue->refused), "%.200s%s", refused ? sentence : "",
                           result == -EEXIST ? "; if that is none of this job's, delete it" : "");
}
