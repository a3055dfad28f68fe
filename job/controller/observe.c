/* Objects of the store turned into records: what a TrainingJob asks for, and what is known of its pods. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "job/controller/record.h"
#include "job/plan/job_status.h"
#include "job/spec/job_yaml.h"

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));

        return text == NULL ? "" : text;
}

/* --- records
 * ---------------------------------------------------------------------------------------------------- */

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

/* --- jobs
 * ------------------------------------------------------------------------------------------------------- */

static void take_metadata(struct job_record *record, const json_t *metadata)
{
        const json_t *finalizers = json_object_get(metadata, "finalizers");
        const char *cancel = text_of(json_object_get(metadata, "annotations"), JOB_ANNOTATION_CANCEL);
        struct controller *c = record->controller;

        record->generation = (uint64_t) json_integer_value(json_object_get(metadata, "generation"));
        record->created_usec = 0;
        (void) timestamp_parse(text_of(metadata, "creationTimestamp"), &record->created_usec);
        record->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
        record->cancel = strcmp(cancel, "true") == 0;
        (void) text_copy(record->version, sizeof(record->version), text_of(metadata, "resourceVersion"));
        json_decref(record->finalizers);
        record->finalizers = json_deep_copy(finalizers);
        record->has_finalizer = false;
        for (size_t i = 0; i < json_array_size(finalizers); i++) {
                const char *name = json_string_value(json_array_get(finalizers, i));

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

void observe_job(struct controller *c, const char *key, const json_t *object)
{
        const json_t *metadata = json_object_get(object, "metadata");
        struct job_record *record = controller_find(c, key);
        bool is_new;

        if (object == NULL && record == NULL)
                return;
        if (record == NULL && (record = record_new(c, key)) == NULL)
                return;
        if (object == NULL) {
                record->gone = true;
                controller_queue(record);
                controller_want_plan(c); /* its children, and whoever waits for its chips */
                return;
        }
        is_new = strcmp(record->uid, text_of(metadata, "uid")) != 0;
        if (is_new)
                start_again(record, text_of(metadata, "uid"));
        record->gone = false;
        take_spec(record, object);
        take_metadata(record, metadata);
        if (is_new || !c->leading) { /* a leader's own decisions are newer than what the store shows */
                job_state_free(&record->state);
                take_status(record, json_object_get(object, "status"));
                record->yielding = false;
        }
        controller_queue(record);
}

/* --- pods
 * ------------------------------------------------------------------------------------------------------- */

/* The uid of the TrainingJob that owns it; "" = none does, and it is not ours. */
static const char *owner_of(const json_t *metadata)
{
        const json_t *owners = json_object_get(metadata, "ownerReferences");

        for (size_t i = 0; i < json_array_size(owners); i++) {
                const json_t *owner = json_array_get(owners, i);

                if (strcmp(text_of(owner, "kind"), "TrainingJob") == 0)
                        return text_of(owner, "uid");
        }
        return "";
}

/* A device that the kubelet gave to the container and that is unhealthy by now (ResourceHealthStatus). */
static bool has_sick_device(const json_t *container)
{
        const json_t *resources = json_object_get(container, "allocatedResourcesStatus");

        for (size_t i = 0; i < json_array_size(resources); i++) {
                const json_t *devices = json_object_get(json_array_get(resources, i), "resources");

                for (size_t k = 0; k < json_array_size(devices); k++)
                        if (strcmp(text_of(json_array_get(devices, k), "health"), "Unhealthy") == 0)
                                return true;
        }
        return false;
}

static void take_container(struct job_pod *pod, const json_t *container)
{
        const json_t *state = json_object_get(container, "state");
        const json_t *ended = json_object_get(state, "terminated"),
                     *waits = json_object_get(state, "waiting");

        pod->started = json_object_get(state, "running") != NULL || ended != NULL;
        pod->sick = has_sick_device(container);
        if (ended != NULL) {
                pod->exit_code = (int) json_integer_value(json_object_get(ended, "exitCode"));
                (void) text_copy(pod->reason, sizeof(pod->reason), text_of(ended, "reason"));
                (void) text_copy(pod->message, sizeof(pod->message), text_of(ended, "message"));
        } else if (waits != NULL) {
                (void) text_copy(pod->reason, sizeof(pod->reason), text_of(waits, "reason"));
                (void) text_copy(pod->message, sizeof(pod->message), text_of(waits, "message"));
        }
}

static enum pod_phase phase_of(const char *phase)
{
        return strcmp(phase, "Running") == 0     ? POD_RUNNING
               : strcmp(phase, "Succeeded") == 0 ? POD_SUCCEEDED
               : strcmp(phase, "Failed") == 0    ? POD_FAILED
                                                 : POD_PENDING;
}

static void take_plan(struct job_pod *pod, const char *text)
{
        json_t *plan = pod->manager ? json_loads(text, 0, NULL) : NULL;
        const json_t *max = json_object_get(json_object_get(plan, "restart"), "max");

        pod->restart_max = json_is_integer(max) ? json_integer_value(max) : -1;
        (void) text_copy(pod->status_token, sizeof(pod->status_token), text_of(plan, "status_token"));
        json_decref(plan);
}

/* What an earlier controller made is used on. */
static void take_keys(struct job_record *record, struct job_pod *pod, const char *owner, const char *keys)
{
        job_keys_secret(keys, pod->secret);
        if (pod->secret[0] == '\0' || record->keys != NULL)
                return;
        record_set_keys(record, strdup(keys));
        record->secret_made = record->keys != NULL;
        (void) text_copy(record->keys_uid, sizeof(record->keys_uid), owner);
}

static void take_pod(struct job_pod *pod, const json_t *object)
{
        const json_t *metadata = json_object_get(object, "metadata"),
                     *status = json_object_get(object, "status");
        const json_t *containers = json_object_get(status, "containerStatuses");
        const json_t *labels = json_object_get(metadata, "labels");

        (void) text_copy(pod->uid, sizeof(pod->uid), text_of(metadata, "uid"));
        (void) text_copy(pod->subtask, sizeof(pod->subtask), text_of(labels, JOB_LABEL_SUBTASK));
        pod->manager = strcmp(text_of(labels, JOB_LABEL_ROLE), "manager") == 0;
        (void) text_copy(pod->told, sizeof(pod->told),
                         text_of(json_object_get(metadata, "annotations"), JOB_ANNOTATION_MANAGER));
        take_plan(pod, text_of(json_object_get(metadata, "annotations"), JOB_ANNOTATION_PLAN));
        pod->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
        (void) text_copy(pod->node, sizeof(pod->node), text_of(json_object_get(object, "spec"), "nodeName"));
        (void) text_copy(pod->ip, sizeof(pod->ip), text_of(status, "podIP"));
        pod->phase = phase_of(text_of(status, "phase"));
        pod->asked = pod->started = pod->sick = false;
        pod->exit_code = -1;
        (void) text_copy(pod->reason, sizeof(pod->reason), text_of(status, "reason"));
        (void) text_copy(pod->message, sizeof(pod->message), text_of(status, "message"));
        for (size_t i = 0; i < json_array_size(containers); i++)
                if (strcmp(text_of(json_array_get(containers, i), "name"), "main") == 0)
                        take_container(pod, json_array_get(containers, i));
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
        const json_t *metadata = json_object_get(object, "metadata");
        const char *job = text_of(json_object_get(metadata, "labels"), "remuda.dev/job");
        const char *slash = strchr(key, '/');
        struct job_record *record;
        struct job_pod *pod;
        char job_key[512];

        if (object == NULL) {
                drop_pod(c, key);
                return;
        }
        if (job[0] == '\0' || slash == NULL || owner_of(metadata)[0] == '\0' ||
            !text_format(job_key, sizeof(job_key), "%.*s/%s", (int) (slash - key), key, job))
                return;
        record = controller_find(c, job_key);
        if (record == NULL) /* the job's own object may be listed later */
                record = record_new(c, job_key);
        if (record == NULL || (record->uid[0] != '\0' && strcmp(owner_of(metadata), record->uid) != 0))
                return; /* of a job of this name that was there before: the garbage collector's */
        pod = record_find_pod(record, slash + 1);
        if (pod == NULL)
                pod = pod_new(record, slash + 1);
        if (pod == NULL)
                return;
        if (strcmp(pod->uid, text_of(metadata, "uid")) != 0)
                pod->bound_usec = 0; /* another pod of this name */
        take_pod(pod, object);
        if (pod->node[0] != '\0' && pod->bound_usec == 0)
                pod->bound_usec = controller_monotonic(c);
        if (pod->secret[0] == '\0')
                take_keys(record, pod, owner_of(metadata),
                          text_of(json_object_get(metadata, "annotations"), JOB_ANNOTATION_KEYS));
        (void) text_copy(pod->owner, sizeof(pod->owner), owner_of(metadata));
        controller_queue(record);
}

/* --- nodes
 * ------------------------------------------------------------------------------------------------------ */

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
