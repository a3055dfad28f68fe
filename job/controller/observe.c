/* Objects of the store turned into records: what a TrainingJob asks for, and what is known of its pods. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json_table.h"
#include "base/text.h"
#include "job/controller/record.h"
#include "job/plan/job_status.h"
#include "job/spec/job_yaml.h"

struct job_pod *record_find_pod(struct job_record *record, const char *name)
{
        struct job_pod *pod = record->pods;

        while (pod != NULL && strcmp(pod->name, name) != 0)
                pod = pod->next;
        return pod;
}

void record_drop_pod(struct job_record *record, struct job_pod *pod)
{
        struct job_pod **place = &record->pods;

        while (*place != pod)
                place = &(*place)->next;
        *place = pod->next;
        free(pod);
}

void record_set_keys(struct job_record *record, char *keys)
{
        if (record->keys != NULL)
                explicit_bzero(record->keys, strlen(record->keys));
        free(record->keys);
        record->keys = keys;
}

void record_free(struct job_record *record)
{
        progress_close(record);
        while (record->pods != NULL)
                record_drop_pod(record, record->pods);
        json_decref(record->finalizers);
        job_free(&record->job);
        job_state_free(&record->state);
        record_set_keys(record, NULL);
        free(record->key);
        free(record);
}

static struct job_record *record_new(struct controller *c, const char *key)
{
        struct job_record *record = calloc(1, sizeof(*record));
        const char *slash = strchr(key, '/');

        if (record == NULL || slash == NULL || (record->key = strdup(key)) == NULL) {
                free(record);
                return NULL;
        }
        record->controller = c;
        record->entry.key = record->key;
        record->first_seen_usec = controller_monotonic(c);
        (void) text_format(record->namespace_, sizeof(record->namespace_), "%.*s", (int) (slash - key), key);
        (void) text_copy(record->name, sizeof(record->name), slash + 1);
        job_init(&record->job);
        if (name_map_insert(&c->records, &record->entry) < 0) {
                record_free(record);
                return NULL;
        }
        return record;
}

/* Another object of the same name: nothing that was known of the old one holds for it. */
static void start_again(struct job_record *record, const char *uid)
{
        record_release_lease(record);
        progress_close(record);
        job_state_free(&record->state);
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (strcmp(pod->owner, uid) != 0)
                        record_drop_pod(record, pod);
        }
        (void) text_copy(record->uid, sizeof(record->uid), uid);
        /* pods may be listed before their job: their keys are its own then */
        if (strcmp(record->keys_uid, uid) != 0) {
                record_set_keys(record, NULL);
                record->secret_made = false;
                for (struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                        pod->secret[0] = '\0';
        }
        record->dirty = record->secret_asked = record->pods_counted = false;
        record->gone = false;
        record->retry_usec = record->accepted_usec = 0;
        record->first_seen_usec = controller_monotonic(record->controller);
}

/* Of the object's metadata, what a controller acts on. */
struct job_metadata {
        char uid[64], version[64], cancel[8];
        uint64_t generation, created_usec;
        char *deleted;
        json_t *finalizers;
};

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_metadata, member)
static const struct json_table_row annotation_rows[] = {
        { JOB_ANNOTATION_CANCEL, JSON_TABLE_CHARS, AT(cancel) },
        { .name = NULL },
};
static const struct json_table annotation_table = { .rows = annotation_rows, .size_bytes = sizeof(struct job_metadata), .lenient = true, .literal = true };
static const struct json_table_row metadata_rows[] = {
        { "uid",               JSON_TABLE_CHARS,  AT(uid) },
        { "resourceVersion",   JSON_TABLE_CHARS,  AT(version) },
        { "generation",        JSON_TABLE_UINT,   AT(generation) },
        { "creationTimestamp", JSON_TABLE_TIME,   AT(created_usec) },
        { "deletionTimestamp", JSON_TABLE_STRING, AT(deleted) },
        { "finalizers",        JSON_TABLE_VALUE,  AT(finalizers) },
        { "annotations",       JSON_TABLE_OBJECT, .size_bytes = sizeof(struct job_metadata), .table = &annotation_table },
        { .name = NULL },
};
static const struct json_table metadata_table = { .rows = metadata_rows, .size_bytes = sizeof(struct job_metadata), .lenient = true };
#undef AT
/* clang-format on */

static void take_metadata(struct job_record *record, struct job_metadata *metadata)
{
        struct controller *c = record->controller;

        record->generation = metadata->generation;
        record->created_usec = metadata->created_usec;
        record->deleting = metadata->deleted != NULL;
        record->cancel = strcmp(metadata->cancel, "true") == 0;
        memcpy(record->version, metadata->version, sizeof(record->version));
        json_decref(record->finalizers);
        record->finalizers = metadata->finalizers;
        metadata->finalizers = NULL;
        record->has_finalizer = false;
        for (size_t i = 0; i < json_array_size(record->finalizers); i++) {
                const char *name = json_string_value(json_array_get(record->finalizers, i));

                record->has_finalizer =
                        record->has_finalizer || (name != NULL && strcmp(name, JOB_FINALIZER) == 0);
        }
        record->emergency = record->valid && record->job.urgency == JOB_URGENCY_EMERGENCY &&
                            c->options.emergency_allowed != NULL &&
                            c->options.emergency_allowed(c->options.userdata, record->namespace_);
}

static void take_spec(struct job_record *record, const json_t *object)
{
        struct err err = { 0 };

        job_free(&record->job);
        record->valid = job_decode(object, &record->job, &err) == 0;
        (void) text_copy(record->why, sizeof(record->why), record->valid ? "" : err.msg);
}

/* Nothing is started, moved or deleted by a plan that is not ours: the job ends, and says why. */
static void take_status(struct job_record *record, const json_t *status)
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

static void take_job(struct job_record *record, struct job_metadata *metadata, const json_t *object)
{
        bool is_new = strcmp(record->uid, metadata->uid) != 0;

        if (is_new)
                start_again(record, metadata->uid);
        record->gone = false;
        take_spec(record, object);
        take_metadata(record, metadata);
        if (is_new ||
            !record->controller->leading) { /* a leader's own decisions are newer than the store's */
                job_state_free(&record->state);
                take_status(record, json_object_get(object, "status"));
                record->yielding = false;
        }
}

void observe_job(struct controller *c, const char *key, const json_t *object)
{
        struct job_metadata metadata = { .uid = "" };
        struct job_record *record = controller_find(c, key);

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
        controller_queue(record);
}

/* What an earlier controller made is used on. */
static void take_keys(struct job_record *record, struct job_pod *pod, const char *keys)
{
        job_keys_secret(keys, pod->secret);
        if (pod->secret[0] == '\0' || record->keys != NULL)
                return;
        record_set_keys(record, strdup(keys));
        record->secret_made = record->keys != NULL;
        (void) text_copy(record->keys_uid, sizeof(record->keys_uid), pod->owner);
}

static struct job_pod *pod_new(struct job_record *record, const char *name)
{
        struct job_pod *pod = calloc(1, sizeof(*pod));

        if (pod == NULL)
                return NULL;
        (void) text_copy(pod->name, sizeof(pod->name), name);
        pod->next = record->pods;
        record->pods = pod;
        return pod;
}

/* A pod is gone: its key does not say of which job it was. */
static void drop_pod(struct controller *c, const char *key)
{
        const char *slash = strchr(key, '/');

        for (struct name_entry *e = name_map_first(&c->records); e != NULL && slash != NULL;
             e = name_map_next(&c->records, e)) {
                struct job_record *record = (struct job_record *) e;
                struct job_pod *pod;

                if (strlen(record->namespace_) != (size_t) (slash - key) ||
                    strncmp(record->namespace_, key, (size_t) (slash - key)) != 0 ||
                    (pod = record_find_pod(record, slash + 1)) == NULL || pod->asked)
                        continue;
                record_drop_pod(record, pod);
                controller_queue(record);
        }
}

void observe_pod(struct controller *c, const char *key, const json_t *object)
{
        const char *slash = strchr(key, '/'), *keys;
        struct job_record *record;
        struct job_pod *pod, seen;
        char job_key[512];

        if (object == NULL) {
                drop_pod(c, key);
                return;
        }
        job_pod_decode(object, &seen, &keys);
        if (seen.job[0] == '\0' || slash == NULL || seen.owner[0] == '\0' ||
            !text_format(job_key, sizeof(job_key), "%.*s/%s", (int) (slash - key), key, seen.job))
                return;
        record = controller_find(c, job_key);
        if (record == NULL) /* the job's own object may be listed later */
                record = record_new(c, job_key);
        if (record == NULL || (record->uid[0] != '\0' && strcmp(seen.owner, record->uid) != 0))
                return; /* of a job of this name that was there before: the garbage collector's */
        pod = record_find_pod(record, slash + 1);
        if (pod == NULL)
                pod = pod_new(record, slash + 1);
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
        for (struct name_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                struct job_record *record = (struct job_record *) e;

                for (const struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                        if (strcmp(pod->node, node) == 0) {
                                controller_queue(record);
                                break;
                        }
        }
}
