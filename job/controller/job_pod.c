/* The rows of a pod's object, as far as a job's controller reads it. */
#include "job/controller/job_pod.h"

#include <string.h>

#include "base/json/json_read.h"
#include "base/json/json_table.h"
#include "base/json/pb_json.h"
#include "base/text.h"
#include "job/controller/job_pods.h"
#include "job/plan/subtask.pb-c.h"
#include "job/world/hint.h"
#include "scheduler-extender/wire/pod_json.h"

#define PLAN_ARENA_BYTES ((size_t) 16 << 20)

static const char *text_at(const struct json_field *in, const char *name)
{
        const char *text = json_string_value(json_field_get(in, name).value);

        return text == NULL ? "" : text;
}

static int decode_owner(const struct json_field *at, void *field, struct err *err)
{
        (void) err;
        for (size_t i = 0; i < json_field_count(at); i++) {
                struct json_field owner = json_field_at(at, i);

                if (strcmp(text_at(&owner, "kind"), "TrainingJob") == 0) {
                        /* one that is cut is nobody's */
                        (void) text_copy(field, sizeof(((struct job_pod *) NULL)->owner),
                                         text_at(&owner, "uid"));
                        return 0;
                }
        }
        return 0;
}

static int decode_role(const struct json_field *at, void *field, struct err *err)
{
        const char *role = NULL;
        int r = json_field_as_string(at, &role, err);

        *(bool *) field = r == 0 && strcmp(role, "manager") == 0;
        return r;
}

/* Of the plan that a manager's pod carries. */
static int decode_plan(const struct json_field *at, void *field, struct err *err)
{
        json_t *value =
                json_loads(json_string_value(at->value) == NULL ? "" : json_string_value(at->value), 0, NULL);
        struct job_pod *pod = field;
        struct pb_arena arena;
        const Subtask__Plan *plan;

        pb_arena_init(&arena, PLAN_ARENA_BYTES);
        plan = value == NULL ? NULL : pb_json_decode(value, &subtask__plan__descriptor, &arena, err);
        if (plan != NULL && plan->restart != NULL && plan->restart->has_max)
                pod->restart_max = plan->restart->max;
        if (plan != NULL && plan->has_restarts && plan->restarts < INT64_MAX)
                pod->restarts = (int64_t) plan->restarts;
        if (plan != NULL)
                (void) text_copy(pod->status_token, sizeof(pod->status_token), plan->status_token);
        pb_arena_free(&arena);
        json_decref(value);
        return 0;
}

/* A device that the kubelet gave to the container and that is unhealthy by now (ResourceHealthStatus). */
static bool has_sick_device(const struct json_field *resources)
{
        for (size_t i = 0; i < json_field_count(resources); i++) {
                struct json_field resource = json_field_at(resources, i),
                                  devices = json_field_get(&resource, "resources");

                for (size_t k = 0; k < json_field_count(&devices); k++) {
                        struct json_field device = json_field_at(&devices, k);

                        if (strcmp(text_at(&device, "health"), "Unhealthy") == 0)
                                return true;
                }
        }
        return false;
}

static int decode_sick(const struct json_field *at, void *field, struct err *err)
{
        (void) err;
        *(bool *) field = has_sick_device(at);
        return 0;
}

/* Why no scheduler has found a node. */
static int decode_conditions(const struct json_field *at, void *field, struct err *err)
{
        struct job_pod *pod = field;

        (void) err;
        for (size_t i = 0; i < json_field_count(at); i++) {
                struct json_field condition = json_field_at(at, i);

                if (strcmp(text_at(&condition, "type"), "PodScheduled") != 0 ||
                    strcmp(text_at(&condition, "status"), "False") != 0)
                        continue;
                (void) text_copy(pod->message, sizeof(pod->message), text_at(&condition, "message"));
        }
        return 0;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_pod, member)
#define GIVEN(member) .given = offsetof(struct job_pod, member)
#define WHOLE .offset = 0, .size_bytes = sizeof(struct job_pod)
#define TABLE(of, ...) { .rows = of, .size_bytes = sizeof(struct job_pod), .lenient = true, __VA_ARGS__ }
static const struct json_table_row container_rows[] = {
        { "state.running",             JSON_TABLE_UNREAD, GIVEN(started) },
        { "state.waiting.reason",      JSON_TABLE_CHARS,  AT(reason) },
        { "state.waiting.message",     JSON_TABLE_CHARS,  AT(message) },
        { "state.terminated.exitCode", JSON_TABLE_INT,    AT(exit_code), .min = INT32_MIN, .max = INT32_MAX },
        { "state.terminated.reason",   JSON_TABLE_CHARS,  AT(reason) },
        { "state.terminated.message",  JSON_TABLE_CHARS,  AT(message) },
        { "allocatedResourcesStatus",  JSON_TABLE_CUSTOM, AT(sick), .decode = decode_sick },
        { .name = NULL },
};
static const struct json_table container_table = TABLE(container_rows);

/* A launcher that logs JSON has its last sentence in an object: {"program":"remuda-launch",...,
 * "message":"GROUP: why"}. It is said as one that logs text has it. */
static void take_last_words(struct job_pod *pod)
{
        const char *line = "", *said;
        size_t bytes = hint_words(pod->message, &line);
        json_t *object = bytes > 0 && line[0] == '{' ? json_loadb(line, bytes, 0, NULL) : NULL;

        said = json_read_word(object, "message");
        if (strcmp(json_read_word(object, "program"), "remuda-launch") == 0 && said[0] != '\0')
                (void) text_format(pod->message, sizeof(pod->message), "remuda-launch: %s", said);
        json_decref(object);
}

static int decode_containers(const struct json_field *at, void *field, struct err *err)
{
        struct job_pod *pod = field;
        int r = 0;

        for (size_t i = 0; i < json_field_count(at); i++) {
                struct json_field container = json_field_at(at, i), state = json_field_get(&container, "state");

                if (strcmp(text_at(&container, "name"), "main") != 0)
                        continue;
                if (json_is_object(json_field_get(&state, "terminated").value))
                        pod->exit_code = 0;
                r = json_table_decode_at(&container_table, &container, pod, err);
                pod->started = pod->started || pod->exit_code >= 0;
                if (pod->exit_code >= 0)
                        take_last_words(pod);
        }
        return r;
}

static const struct json_table_row label_rows[] = {
        { POD_LABEL_JOB,     JSON_TABLE_CHARS,  AT(job) },
        { JOB_LABEL_SUBTASK, JSON_TABLE_CHARS,  AT(subtask) },
        { JOB_LABEL_ROLE,    JSON_TABLE_CUSTOM, AT(manager), .decode = decode_role },
        { .name = NULL },
};
static const struct json_table_row annotation_rows[] = {
        { JOB_ANNOTATION_MANAGER, JSON_TABLE_CHARS,  AT(published) },
        { JOB_ANNOTATION_PLAN,    JSON_TABLE_CUSTOM, WHOLE, .decode = decode_plan },
        { .name = NULL },
};
static const struct json_table label_table = TABLE(label_rows, .literal = true),
                               annotation_table = TABLE(annotation_rows, .literal = true);
static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed", NULL };
static const struct json_table_row rows[] = {
        { "metadata.uid",               JSON_TABLE_CHARS,  AT(uid) },
        { "metadata.labels",            JSON_TABLE_OBJECT, WHOLE, .table = &label_table },
        { "metadata.annotations",       JSON_TABLE_OBJECT, WHOLE, .table = &annotation_table },
        { "metadata.ownerReferences",   JSON_TABLE_CUSTOM, AT(owner), .decode = decode_owner },
        { "metadata.deletionTimestamp", JSON_TABLE_UNREAD, GIVEN(deleting) },
        { "spec.nodeName",              JSON_TABLE_CHARS,  AT(node) },
        { "status.podIP",               JSON_TABLE_CHARS,  AT(ip) },
        { "status.phase",               JSON_TABLE_CHOICE, AT(phase), .names = phases },
        { "status.conditions",          JSON_TABLE_CUSTOM, WHOLE, .decode = decode_conditions },
        { "status.reason",              JSON_TABLE_CHARS,  AT(reason) },
        { "status.message",             JSON_TABLE_CHARS,  AT(message) },
        { "status.containerStatuses",   JSON_TABLE_CUSTOM, WHOLE, .decode = decode_containers },
        { .name = NULL },
};
static const struct json_table table = TABLE(rows);
/* clang-format on */

void job_pod_decode(const json_t *object, struct job_pod *ret, const char **ret_keys)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          annotations = json_field_get(&metadata, "annotations");

        *ret = (struct job_pod){ .exit_code = -1, .restart_max = -1, .restarts = -1 };
        (void) json_table_decode(&table, object, ret, NULL);
        if (!ret->manager)
                ret->restart_max = -1;
        *ret_keys = text_at(&annotations, JOB_ANNOTATION_KEYS);
}

void job_pod_update(struct job_pod *pod, const struct job_pod *seen)
{
        const struct job_pod before = *pod;

        *pod = *seen;
        pod->next = before.next;
        memcpy(pod->name, before.name, sizeof(pod->name));
        memcpy(pod->secret, before.secret, sizeof(pod->secret));
        pod->delete_asked = before.delete_asked;
        pod->force_asked = before.force_asked;
        pod->publishing = before.publishing;
        pod->asked_usec = before.asked_usec;
        pod->retry_usec = before.retry_usec;
        if (strcmp(before.uid, seen->uid) != 0)
                return; /* another of this name */
        pod->bound_usec = before.bound_usec;
        pod->told_usec = before.told_usec;
        pod->told_times = before.told_times;
}

bool job_pod_has_ended(const struct job_pod *pod)
{
        return pod->phase == JOB_POD_SUCCEEDED || pod->phase == JOB_POD_FAILED;
}
