/* Objects of the store turned into records: what a TrainingJob asks for, and what is known of its pods. */
#include "job/controller/observe.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json_table.h"
#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/job_keys.h"
#include "job/controller/kueue/kueue.h"
#include "job/controller/launchers/progress.h"
#include "job/controller/profile/profile_read.h"
#include "job/controller/spec_change.h"
#include "job/controller/write.h"
#include "job/plan/job_status.h"
#include "job/spec/job_yaml.h"
#include "job/spec/labels.h"

/* Of the object's metadata, what a controller acts on. */
struct job_metadata {
        char uid[64], version[64], cancel[8];
        uint64_t generation, created_usec;
        char *deleted;
        json_t *finalizers;
        char queue[KUEUE_NAME_BYTES];
};

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_metadata, member)
static const struct json_table_row annotation_rows[] = {
        { JOB_ANNOTATION_CANCEL, JSON_TABLE_CHARS, AT(cancel) },
        { .name = NULL },
};
static const struct json_table annotation_table = { .rows = annotation_rows, .size_bytes = sizeof(struct job_metadata), .lenient = true, .literal = true };
static const struct json_table_row label_rows[] = {
        { LABELS_QUEUE, JSON_TABLE_CHARS, AT(queue) },
        { .name = NULL },
};
static const struct json_table label_table = { .rows = label_rows, .size_bytes = sizeof(struct job_metadata), .lenient = true, .literal = true };
static const struct json_table_row metadata_rows[] = {
        { "uid",               JSON_TABLE_CHARS,  AT(uid) },
        { "resourceVersion",   JSON_TABLE_CHARS,  AT(version) },
        { "generation",        JSON_TABLE_UINT,   AT(generation) },
        { "creationTimestamp", JSON_TABLE_TIME,   AT(created_usec) },
        { "deletionTimestamp", JSON_TABLE_STRING, AT(deleted) },
        { "finalizers",        JSON_TABLE_VALUE,  AT(finalizers) },
        { "labels",            JSON_TABLE_OBJECT, .size_bytes = sizeof(struct job_metadata), .table = &label_table },
        { "annotations",       JSON_TABLE_OBJECT, .size_bytes = sizeof(struct job_metadata), .table = &annotation_table },
        { .name = NULL },
};
static const struct json_table metadata_table = { .rows = metadata_rows, .size_bytes = sizeof(struct job_metadata), .lenient = true };
#undef AT
/* clang-format on */

static void take_metadata(struct record *record, struct job_metadata *metadata)
{
        record->generation = metadata->generation;
        record->created_usec = metadata->created_usec;
        record->deleting = metadata->deleted != NULL;
        record->cancel = strcmp(metadata->cancel, "true") == 0;
        memcpy(record->version, metadata->version, sizeof(record->version));
        memcpy(record->queue.label, metadata->queue, sizeof(record->queue.label));
        json_decref(record->finalizers);
        record->finalizers = metadata->finalizers;
        metadata->finalizers = NULL;
        record->has_finalizer = false;
        for (size_t i = 0; i < json_array_size(record->finalizers); i++) {
                const char *name = json_string_value(json_array_get(record->finalizers, i));

                record->has_finalizer =
                        record->has_finalizer || (name != NULL && strcmp(name, JOB_FINALIZER) == 0);
        }
        record->emergency = record->valid && cluster_is_emergency(record->controller->options.cluster,
                                                                  record->namespace_, &record->job);
}

/* Once for each such spec. */
static void say_ignored(struct record *record, json_t *fixed, const char *field)
{
        if (record->ignored != NULL && json_equal(record->ignored, fixed))
                return;
        json_decref(record->ignored);
        record->ignored = json_incref(fixed);
        write_event(
                record, true, "ChangeIgnored",
                "spec.%.60s was changed and the job has a plan: it goes on as planned; delete it and apply "
                "it anew (suspend, priority, disruption, restart.max and ttlSecondsAfterFinished may change)",
                field);
}

/* A plan was made from the spec of then, and holds for no other. */
static void take_spec(struct record *record, const json_t *object, bool is_new)
{
        bool planned = !is_new && record->controller->leading && record->valid &&
                       record->state.group_count > 0 && !job_phase_ended(record->state.phase);
        json_t *fixed = spec_change_fixed(json_object_get(object, "spec"));
        const char *field = planned ? spec_change_field(record->fixed, fixed) : NULL;
        struct err err = { 0 };
        struct job job;

        record->valid = job_yaml_decode(object, &job, &err) == 0;
        (void) text_copy(record->why, sizeof(record->why), record->valid ? "" : err.msg);
        if (field != NULL && record->valid) {
                spec_change_take(&record->job, &job);
                job_free(&job);
                say_ignored(record, fixed, field);
                json_decref(fixed);
                return;
        }
        if (!is_new)
                profile_read_carry(&record->job, &job);
        job_free(&record->job);
        record->job = job;
        record->queue.admitted = false;
        record->queue.compared_usec = 0;
        json_decref(record->fixed);
        record->fixed = fixed;
        json_decref(record->ignored);
        record->ignored = NULL;
}

/* Nothing is started, moved or deleted by a plan that is not ours: the job ends, and says why. */
static void take_status(struct record *record, const json_t *status)
{
        struct err err = { 0 };

        record->bad_status[0] = '\0';
        if (job_status_decode(status, &record->state) == 0 && record->valid &&
            job_status_check(status, &record->job, &record->state, &err) < 0)
                (void) text_format(
                        record->bad_status, sizeof(record->bad_status),
                        "%.250s; the status was not written by this controller: delete the job and apply "
                        "it again",
                        err.msg);
}

/* Since when its pods are refused is the status's to say: chips are not kept longer for every controller that
 * begins. By clocks that differ they are given back sooner at worst, and nothing runs on them. */
static void take_refusal(struct record *record)
{
        const struct job_state_condition *made = &record->state.conditions[JOB_CONDITION_PODS_CREATED];
        uint64_t now = controller_monotonic(record->controller), real = controller_now(record->controller);
        uint64_t for_usec = real > made->since_usec ? real - made->since_usec : 0;

        if (record->state.group_count > 0 && job_state_is_refused(&record->state))
                record->refused_usec = for_usec < now ? now - for_usec : 1;
}

static void take_job(struct record *record, struct job_metadata *metadata, const json_t *object)
{
        bool is_new = strcmp(record->uid, metadata->uid) != 0;

        if (is_new) {
                progress_close(record);
                record_start_again(record, metadata->uid);
        }
        record->gone = false;
        take_spec(record, object, is_new);
        take_metadata(record, metadata);
        if (is_new ||
            !record->controller->leading) { /* a leader's own decisions are newer than the store's */
                job_state_free(&record->state);
                take_status(record, json_object_get(object, "status"));
                take_refusal(record);
                record->yielding = false;
                if (!job_phase_ended(record->state.phase)) /* an end that was never written is none */
                        record->ended_usec = record->end_age_usec = 0;
        }
        /* another generation of the spec is judged: a status that says so is there already */
        if (record->state.observed_generation != 0 && record->state.observed_generation != record->generation)
                record->dirty = true;
        kueue_look(record);
}

void observe_job(struct controller *c, const char *key, const json_t *object)
{
        struct job_metadata metadata = { .uid = "" };
        struct record *record = controller_find(c, key);

        if (object == NULL && record == NULL)
                return;
        if (record == NULL && (record = record_new(c, key)) == NULL)
                return;
        if (object == NULL) {
                record->gone = true;
                controller_want_plan(c); /* its children, and whoever waits for its chips */
        } else {
                (void) json_table_decode(&metadata_table, json_object_get(object, "metadata"), &metadata,
                                         NULL);
                take_job(record, &metadata, object);
                json_table_free(&metadata_table, &metadata);
        }
        record_lease(record);
        controller_queue(record);
}

/* What an earlier controller made is used on; so is what another makes while this one does not lead: keys
 * that it was stopped with before its Secret was there are nobody's. */
static void take_keys(struct record *record, struct job_pod *pod, const char *keys)
{
        job_keys_secret(keys, pod->secret);
        if (pod->secret[0] == '\0' || (record->keys != NULL && controller_leads(record->controller)))
                return;
        record->secret_asked = false;
        record_set_keys(record, strdup(keys));
        record->secret_made = record->keys != NULL;
        (void) text_copy(record->keys_uid, sizeof(record->keys_uid), pod->owner);
}

/* A pod is gone: its key does not say of which job it was. */
static void drop_pod(struct controller *c, const char *key)
{
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);

        for (struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                struct record *record = (struct record *) e;
                struct job_pod *pod;

                if (strcmp(record->namespace_, namespace_) != 0 ||
                    (pod = record_find_pod(record, name)) == NULL || pod->asked)
                        continue;
                record_drop_pod(record, pod);
                controller_queue(record);
        }
}

void observe_pod(struct controller *c, const char *key, const json_t *object)
{
        char namespace_[256], job_key[512];
        const char *name = store_key_split(key, namespace_), *keys;
        struct record *record;
        struct job_pod *pod, seen;

        if (object == NULL) {
                drop_pod(c, key);
                return;
        }
        job_pod_decode(object, &seen, &keys);
        if (seen.job[0] == '\0' || seen.owner[0] == '\0')
                return;
        (void) text_format(job_key, sizeof(job_key), "%s/%s", namespace_, seen.job);
        record = controller_find(c, job_key);
        if (record == NULL) /* the job's own object may be listed later */
                record = record_new(c, job_key);
        if (record == NULL || (record->uid[0] != '\0' && strcmp(seen.owner, record->uid) != 0))
                return; /* of a job of this name that was there before: the garbage collector's */
        pod = record_find_pod(record, name);
        if (pod == NULL)
                pod = record_add_pod(record, name);
        if (pod == NULL)
                return;
        job_pod_update(pod, &seen);
        if (pod->node[0] != '\0' && pod->bound_usec == 0)
                pod->bound_usec = controller_monotonic(c);
        if (pod->secret[0] == '\0')
                take_keys(record, pod, keys);
        controller_queue(record);
}

/* A chip may be sick, or the node lost: jobs that are there look at it. */
void observe_node(struct controller *c, const char *node)
{
        for (struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                struct record *record = (struct record *) e;

                for (const struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                        if (strcmp(pod->node, node) == 0) {
                                controller_queue(record);
                                break;
                        }
        }
}
