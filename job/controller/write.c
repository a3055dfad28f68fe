/* Everything that the controller writes. Each write may be repeated; none is made unless this process leads.
 */
#include "job/controller/write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/tls/tls_keys.h"
#include "job/controller/controller_internal.h"
#include "job/controller/expire.h"
#include "job/controller/job_keys.h"
#include "job/controller/kueue/kueue.h"
#include "job/plan/job_status.h"

#define RETRY_USEC     1000000u
#define RETRY_MAX_USEC 30000000u
#define AWAITED_USEC   UINT64_C(2000000) /* between two looks at who depends on one that has ended */

#define UNANSWERED_USEC 30000000u /* so long nobody answers, and it is as if it were refused */
#define UNSIGNED_USEC   5000000u  /* who is refused the finalizer is planned again after */

/* A write under way: the record stays while it counts, pods are found again by their names. */
struct write {
        struct record *record;
        char uid[64]; /* of the record when it was asked: the object may have been replaced meanwhile */
        char name[256];
        bool present; /* of the finalizer */
};

static struct store *store_of(const struct record *record)
{
        return cluster_store(record->controller->options.cluster);
}

static struct write *begin(struct record *record, const char *name)
{
        struct write *write = controller_leads(record->controller) ? calloc(1, sizeof(*write)) : NULL;

        if (write == NULL)
                return NULL;
        write->record = record;
        (void) text_copy(write->uid, sizeof(write->uid), record->uid);
        (void) text_copy(write->name, sizeof(write->name), name);
        record->calls++;
        return write;
}

/* Return: the record if it is still the one that asked, else NULL. Frees the write. */
static struct record *end(struct write *write, const char *what, int result, const char *sentence)
{
        struct record *record = write->record;
        bool same = strcmp(record->uid, write->uid) == 0;

        record->calls--;
        controller_queue(record);
        if (result < 0 && result != -ECANCELED && result != -EEXIST && result != -ENOENT)
                controller_log(record->controller, LOG_WARNING, "job-write-failed",
                               "job=%s what=\"%s %s\" error=\"%s\"", record->key, what, write->name,
                               sentence);
        free(write);
        return same && result != -ECANCELED ? record : NULL;
}

struct job_pods_owner write_owner(const struct record *record)
{
        return (struct job_pods_owner){ .namespace_ = record->namespace_,
                                        .name = record->name,
                                        .uid = record->uid };
}

static void on_status(void *userdata, int result, const char *sentence)
{
        struct write *write = userdata;
        struct record *record = write->record;

        if (strcmp(record->uid, write->uid) == 0)
                record->writing = false;
        record = end(write, "status", result, sentence);
        if (record != NULL && result < 0 && result != -ENOENT) {
                record->dirty = true;
                record->retry_usec = controller_monotonic(record->controller) + RETRY_USEC;
        }
        FAILPOINT("job.status_written");
        if (record != NULL && result == 0)
                controller_want_plan(record->controller); /* children wait for what is written */
}

void write_status(struct record *record)
{
        struct write *write;
        json_t *object, *status;

        if (!record->dirty || record->writing ||
            controller_monotonic(record->controller) < record->retry_usec)
                return;
        write = begin(record, "");
        if (write == NULL)
                return;
        record->state.observed_generation = record->generation;
        status = job_status_encode(record->valid ? &record->job : NULL, record->name, &record->state);
        object = json_pack("{s:{s:s}, s:o}", "metadata", "uid", record->uid, "status", status);
        record->dirty = false;
        record->writing = true;
        FAILPOINT("job.status");
        store_put(store_of(record), STORE_TRAINING_JOB, record->namespace_, record->name, object, on_status,
                  write);
        json_decref(object);
}

/* What an administrator forgot is said with the line that mends it. */
static const char *remedy_for(const char *sentence)
{
        if (strstr(sentence, "\"resourceclaims") != NULL)
                return "; admit the namespace to planned claims (manifests/planned-claims): kubectl create "
                       "rolebinding "
                       "remuda-controller-claims -n NAMESPACE --clusterrole=remuda-job-claims "
                       "--serviceaccount=remuda-system:remuda-controller";
        return strstr(sentence, "cannot create resource") != NULL ||
                               strstr(sentence, "cannot delete resource") != NULL
                       ? "; admit the namespace to jobs: kubectl create rolebinding remuda-controller -n "
                         "NAMESPACE "
                         "--clusterrole=remuda-job-namespace --serviceaccount=remuda-system:remuda-controller"
                       : "";
}

/* A pod or the Secret could not be made: said in status and event, tried again after a second, and ever more
 * rarely, up to half a minute, as long as it is refused. */
static void say_refused(struct record *record, const char *sentence)
{
        struct controller *c = record->controller;
        struct job_state *state = &record->state;
        uint64_t now = controller_monotonic(c), pause;
        char said[JOB_MESSAGE_BYTES];

        c->metrics.pods_refused++;
        if (state->group_count == 0)
                return; /* it was given up meanwhile */
        if (record->refused_usec == 0) {
                record->refused_usec = now;
                controller_want_plan(c); /* the next job's pods are made meanwhile */
        }
        pause = (now - record->refused_usec) / 2;
        record->retry_usec = now + (pause < RETRY_USEC       ? RETRY_USEC
                                    : pause > RETRY_MAX_USEC ? RETRY_MAX_USEC
                                                             : pause);
        (void) text_format(said, sizeof(said), "%.300s%s", sentence, remedy_for(sentence));
        if (strcmp(state->message, said) == 0 && strcmp(state->reason, "PodNotCreated") == 0)
                return;
        job_state_set_condition(state, JOB_CONDITION_PODS_CREATED, false, controller_now(c), "PodNotCreated",
                                said);
        job_state_set(state, state->phase, controller_now(c), "PodNotCreated", "%s", said);
        record->dirty = true;
        write_event(record, true, "PodNotCreated", "%s", said);
}

/* Does it say nothing of what was to be made: no answer, or that of a server that is not well (5xx, 429), or
 * no memory here? */
static bool is_unanswered(int result)
{
        static const int codes[] = {
                ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH, EPIPE, EPROTO, EIO, EBUSY, ENOMEM
        };

        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (result == -codes[i])
                        return true;
        return false;
}

/* A pod or the Secret was not made. Who was slow to answer, or is away, has refused nothing: the job keeps
 * its place and its chips, and asks again, as long as that may still be a moment. */
void write_not_made(struct record *record, int result, const char *sentence)
{
        uint64_t now = controller_monotonic(record->controller);

        if (!is_unanswered(result))
                record->unanswered_usec = 0;
        else if (record->unanswered_usec == 0)
                record->unanswered_usec = now;
        if (!controller_leads(record->controller) ||
            (record->unanswered_usec != 0 && now - record->unanswered_usec < UNANSWERED_USEC))
                record->retry_usec = now + RETRY_USEC;
        else
                say_refused(record, sentence);
}

/* Without a finalizer nothing is made: the plan is dropped, its chips with it, and the next one has its turn.
 * Who was slow to answer, or is away, has refused nothing; and what runs goes on. */
static void not_signed(struct record *record, int result, const char *sentence)
{
        uint64_t now = controller_monotonic(record->controller);

        if (result == -ESTALE || is_unanswered(result) || !controller_leads(record->controller) ||
            record->state.group_count == 0 || record->pods != NULL) {
                record->retry_usec = now + RETRY_USEC;
                return;
        }
        record->plan_after_usec = now + UNSIGNED_USEC;
        write_event(record, true, "FinalizerRefused", "%s", sentence);
        record_drop_plan(record, "FinalizerRefused", sentence);
}

static void on_finalizer(void *userdata, int result, const char *sentence)
{
        struct write *write = userdata;
        bool present = write->present;
        struct record *record;

        write->record->finalizing = false;
        record = end(write, "finalizer", result, sentence);
        if (record == NULL)
                return;
        if (result == 0)
                record->has_finalizer = present; /* the watch shows it in a moment */
        else if (present)
                not_signed(record, result, sentence);
        else if (result != -ESTALE || !record->deleting)
                /* what was written meanwhile is seen in a moment: a job that is to go is not kept for it */
                record->retry_usec = controller_monotonic(record->controller) + RETRY_USEC;
}

/* The whole list is written: the resourceVersion makes sure that it is still the one that was read. */
void write_finalizer(struct record *record, bool present)
{
        json_t *list, *patch;
        struct write *write;

        if (record->finalizing || record->has_finalizer == present ||
            controller_monotonic(record->controller) < record->retry_usec)
                return;
        write = begin(record, "");
        list = write == NULL ? NULL : json_array();
        if (write == NULL)
                return;
        for (size_t i = 0; i < json_array_size(record->finalizers); i++) {
                json_t *name = json_array_get(record->finalizers, i);

                if (json_is_string(name) && strcmp(json_string_value(name), JOB_FINALIZER) != 0)
                        (void) json_array_append(list, name);
        }
        if (present)
                (void) json_array_append_new(list, json_string(JOB_FINALIZER));
        patch = json_pack("{s:{s:s, s:s, s:o}}", "metadata", "uid", record->uid, "resourceVersion",
                          record->version, "finalizers", list);
        if (record->version[0] == '\0')
                (void) json_object_del(json_object_get(patch, "metadata"), "resourceVersion");
        write->present = present;
        record->finalizing = true;
        FAILPOINT("job.finalizer");
        store_patch(store_of(record), STORE_TRAINING_JOB, record->namespace_, record->name, patch,
                    on_finalizer, write);
        json_decref(patch);
}

static void on_secret(void *userdata, int result, const char *sentence)
{
        struct record *record = end(userdata, "secret", result, sentence);

        if (record == NULL || !record->secret_asked) /* its keys were another's meanwhile */
                return;
        record->secret_asked = false;
        record->secret_made =
                result == 0 || result == -EEXIST; /* of its name there is no other: a lost reply */
        if (!record->secret_made)
                write_not_made(record, result, sentence);
        else
                record->unanswered_usec = 0;
}

bool write_token(char token[49])
{
        static const char digits[] = "0123456789abcdef";
        unsigned char bytes[24];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return false;
        for (size_t i = 0; i < sizeof(bytes); i++) {
                token[2 * i] = digits[bytes[i] >> 4];
                token[2 * i + 1] = digits[bytes[i] & 15];
        }
        token[48] = '\0';
        return true;
}

/* Keys and token of the job's rendezvous. The Secret's name is of its own, so that it is never somebody
 * else's; pods say which one they mount, and by which CA the manager is known: nobody has to read it. */
static json_t *make_secret(struct record *record)
{
        /* the manager calls itself, too: by mpirun's start agents */
        static const struct tls_keys_purpose purposes[TLS_KEYS_PAIRS] = {
                { { JOB_TLS_NAME, JOB_TLS_STATUS_NAME }, true, true },
                { { JOB_TLS_GROUP_NAME }, false, true },
        };
        const struct job_pods_options *options = &record->controller->options.pods;
        char token[49], suffix[49], name[JOB_POD_NAME_BYTES];
        struct job_pods_owner owner = write_owner(record);
        struct job_pods_secrets secrets = { .token = token };
        struct job_keys said = { .secret = "" };
        struct tls_keys keys;
        struct err err = { 0 };
        json_t *secret = NULL;

        if (!write_token(token) || !write_token(suffix))
                return NULL;
        if (tls_keys_make(purposes, TLS_KEYS_ALWAYS, &keys, &err) < 0) {
                controller_log(record->controller, LOG_ERR, "job", "job=%s error=\"%s\"", record->key,
                               err.msg);
                tls_keys_free(&keys);
                return NULL;
        }
        (void) text_format(name, sizeof(name), "%s-%.8s", record->name, suffix);
        secrets.keys = &keys;
        said.ca = keys.ca;
        (void) text_copy(said.secret, sizeof(said.secret), name);
        record_set_keys(record, job_keys_write(&said));
        (void) text_copy(record->keys_uid, sizeof(record->keys_uid), record->uid);
        if (record->keys != NULL)
                secret = job_pods_secret(&record->job, &owner, options, name, &secrets);
        tls_keys_free(&keys);
        explicit_bzero(token, sizeof(token));
        return secret;
}

bool write_secret(struct record *record)
{
        struct write *write;
        json_t *secret;

        if (record->secret_asked || record->secret_made)
                return record->secret_made;
        write = begin(record, record->name);
        if (write == NULL)
                return false;
        secret = make_secret(record);
        if (secret == NULL) {
                record->retry_usec = controller_monotonic(record->controller) + RETRY_USEC;
                (void) end(write, "secret", -ENOMEM, "the job's keys cannot be made");
                return false;
        }
        FAILPOINT("job.secret");
        record->secret_asked = true;
        store_create(store_of(record), STORE_SECRET, record->namespace_, secret, on_secret, write);
        json_decref(secret);
        return false;
}

/* "There is one of that name" is most often a reply that was lost, and the watch shows the pod in a moment.
 * Said of the same name again, with the pod still not shown, it is somebody else's: nothing is to be had by
 * asking in a circle.  Return: is it? */
static bool is_anothers(struct record *record, const char *name)
{
        const struct job_pod *first = record_find_pod(record, record->taken);

        if (strcmp(record->taken, name) == 0)
                return true;
        if (record->taken[0] == '\0' || (first != NULL && !first->asked))
                (void) text_copy(record->taken, sizeof(record->taken), name);
        return false;
}

static void on_pod(void *userdata, int result, const char *sentence)
{
        struct write *write = userdata;
        struct controller *c = write->record->controller;
        struct job_pod *pod = record_find_pod(write->record, write->name);
        char said[JOB_MESSAGE_BYTES];
        struct record *record;

        if (result == 0) {
                FAILPOINT("job.pod_written");
                c->metrics.pods_created++;
                if (strcmp(write->record->taken, write->name) == 0)
                        write->record->taken[0] = '\0';
        }
        if (result == -EEXIST) {
                c->metrics.pods_existed++;
                if (pod == NULL || !pod->asked || !is_anothers(write->record, write->name)) {
                        result = 0;
                } else {
                        (void) text_format(said, sizeof(said),
                                           "pod %s/%s is there and is not this job's: delete it, or give the "
                                           "job another name",
                                           write->record->namespace_, write->name);
                        sentence = said;
                }
        }
        if (result < 0 && pod != NULL && pod->asked)
                record_drop_pod(write->record, pod);
        else if (pod != NULL && pod->asked)
                pod->asked_usec = controller_monotonic(c); /* from now on it should be seen soon */
        record = end(write, "pod", result, sentence);
        if (record == NULL)
                return;
        if (result < 0)
                write_not_made(record, result, sentence);
        else
                record->unanswered_usec = 0;
}

void write_pod(struct record *record, const char *name, const char *subtask, json_t *object)
{
        struct write *write = object == NULL ? NULL : begin(record, name);
        struct job_pod *pod = write == NULL ? NULL : calloc(1, sizeof(*pod));

        if (pod == NULL) {
                if (write != NULL)
                        (void) end(write, "pod", -ENOMEM, "no memory");
                json_decref(object);
                return;
        }
        (void) text_copy(pod->name, sizeof(pod->name), name);
        (void) text_copy(pod->subtask, sizeof(pod->subtask), subtask);
        (void) text_copy(pod->owner, sizeof(pod->owner), record->uid);
        pod->asked = true;
        pod->asked_usec = UINT64_MAX; /* until the answer is there */
        pod->exit_code = -1;
        pod->next = record->pods;
        record->pods = pod;
        FAILPOINT("job.pod");
        store_create(store_of(record), STORE_POD, record->namespace_, object, on_pod, write);
        json_decref(object);
}

/* The pod of a write that has ended, or NULL: it is gone. What was refused is not asked for in a circle. */
static struct job_pod *written_pod(const struct write *write, int result)
{
        struct job_pod *pod = record_find_pod(write->record, write->name);

        if (pod != NULL && result < 0)
                pod->retry_usec = controller_monotonic(write->record->controller) + RETRY_USEC;
        return pod;
}

static bool may_write(const struct record *record, const struct job_pod *pod)
{
        return controller_monotonic(record->controller) >= pod->retry_usec;
}

static void on_published(void *userdata, int result, const char *sentence)
{
        struct write *write = userdata;
        struct job_pod *pod = written_pod(write, result);

        if (pod != NULL)
                pod->publishing = false;
        (void) end(write, "annotation", result, sentence);
}

bool write_annotation(struct record *record, struct job_pod *pod, const char *annotation, const char *value)
{
        struct write *write;
        json_t *patch;

        if (pod->publishing || !may_write(record, pod) || (write = begin(record, pod->name)) == NULL)
                return false;
        patch = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "uid", pod->uid, "annotations", annotation,
                          value);
        pod->publishing = true;
        FAILPOINT("job.manager");
        store_patch(store_of(record), STORE_POD, record->namespace_, pod->name, patch, on_published, write);
        json_decref(patch);
        return true;
}

static void on_deleted(void *userdata, int result, const char *sentence)
{
        struct write *write = userdata;
        struct job_pod *pod = written_pod(write, result);

        FAILPOINT("job.deleted");
        if (pod != NULL && result < 0)
                pod->delete_asked = pod->force_asked = false;
        (void) end(write, "delete", result == -ENOENT ? 0 : result, sentence);
}

/* One that is on its way out may be hurried where a node will not answer, but not asked twice. */
static bool is_under_way(const struct job_pod *pod, unsigned grace_sec)
{
        if (grace_sec > 0 || pod->node[0] == '\0')
                return pod->delete_asked || (pod->deleting && grace_sec > 0);
        return pod->force_asked;
}

void write_delete(struct record *record, struct job_pod *pod, unsigned grace_sec)
{
        struct write *write;

        if (pod->asked || is_under_way(pod, grace_sec) || !may_write(record, pod) ||
            (write = begin(record, pod->name)) == NULL)
                return;
        pod->delete_asked = true;
        pod->force_asked = grace_sec == 0;
        FAILPOINT("job.delete");
        store_delete(store_of(record), STORE_POD, record->namespace_, pod->name, pod->uid, grace_sec,
                     on_deleted, write);
}

static void on_removed(void *userdata, int result, const char *sentence)
{
        struct record *record = end(userdata, "removal", result, sentence);
        char said[sizeof(record->removal_refused)];

        if (record == NULL || result == 0 || result == -ENOENT || result == -ESTALE) /* the watch shows it */
                return;
        (void) text_copy(said, sizeof(said), sentence);
        if (strcmp(record->removal_refused, said) != 0) /* the same is no news */
                write_event(record, true, "NotDeleted", "spec.ttlSecondsAfterFinished: %.400s%s", sentence,
                            remedy_for(sentence));
        (void) text_copy(record->removal_refused, sizeof(record->removal_refused), said);
}

void write_removal(struct record *record)
{
        struct write *write;

        record->removal_usec = controller_monotonic(record->controller) + AWAITED_USEC;
        if (expire_is_awaited(record) || (write = begin(record, "")) == NULL)
                return;
        record->removal_usec = controller_monotonic(record->controller) + RETRY_MAX_USEC;
        controller_log(record->controller, LOG_INFO, "job", "job=%s reason=Expired \"%llu s after its end\"",
                       record->key, (unsigned long long) record->job.ttl_seconds);
        FAILPOINT("job.removal");
        store_delete(store_of(record), STORE_TRAINING_JOB, record->namespace_, record->name, record->uid, 0,
                     on_removed, write);
}

static void on_workload(void *userdata, int result, const char *sentence)
{
        struct record *record = end(userdata, "workload", result, sentence);

        if (record != NULL)
                kueue_written(record, result, sentence);
}

void write_workload(struct record *record, const char *name, json_t *object)
{
        struct write *write = begin(record, name == NULL ? "" : name);

        if (write != NULL) {
                record->queue.writing = true;
                if (name == NULL)
                        store_create(store_of(record), STORE_KUEUE_WORKLOAD, record->namespace_, object,
                                     on_workload, write);
                else
                        store_patch(store_of(record), STORE_KUEUE_WORKLOAD, record->namespace_, name, object,
                                    on_workload, write);
        }
        json_decref(object);
}

void write_event(struct record *record, bool warning, const char *reason, const char *fmt, ...)
{
        char message[600];
        struct store_event event = { .object_kind = "TrainingJob",
                                     .namespace_ = record->namespace_,
                                     .name = record->name,
                                     .uid = record->uid,
                                     .type = warning ? "Warning" : "Normal",
                                     .reason = reason,
                                     .message = message };
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, values); /* cut to its field */
        va_end(values);
        controller_log(record->controller, warning ? LOG_WARNING : LOG_INFO, "job", "job=%s reason=%s \"%s\"",
                       record->key, reason, message);
        if (controller_leads(record->controller))
                store_event(store_of(record), &event);
}
