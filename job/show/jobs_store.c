/* Jobs of a store: TrainingJobs with the status that the controller writes
 * (manifests/crds/trainingjobs.yaml). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/command/cluster_options.h"
#include "io/clock.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/store.h"

#define LOAD_USEC (20 * UINT64_C(1000000))

struct loading {
        sd_event *loop;
        const struct jobs_options *options;
        const char *name; /* or NULL */
        json_t *views;
        bool synced;
        int error; /* an API server that will not answer, now or later */
        unsigned troubles;
        char trouble[256];
};

static json_t *or_null(const json_t *value)
{
        return value == NULL ? json_null() : json_incref((json_t *) value);
}

static void copy_as(json_t *into, const char *as, const json_t *from, const char *name)
{
        (void) json_object_set_new(into, as, or_null(json_object_get(from, name)));
}

static json_t *text_or(const json_t *from, const char *name, const char *otherwise)
{
        const json_t *value = json_object_get(from, name);

        return json_is_string(value) ? json_incref((json_t *) value) : json_string(otherwise);
}

/* One of the status' second level, with what only its subtask knows. */
static json_t *rank_view(const json_t *status, const json_t *rank)
{
        static const char *const names[][2] = { { "rank", "rank" },         { "role", "role" },
                                                { "runtime", "runtime" },   { "device", "device" },
                                                { "node", "node" },         { "pod", "pod" },
                                                { "batch", "batch" },       { "weight", "weight" },
                                                { "shard", "shard" },       { "samples", "samples" },
                                                { "restarts", "restarts" }, { "exit_code", "exitCode" } };
        json_t *view = json_object(), *subtask;
        size_t i;

        for (i = 0; i < ARRAY_SIZE(names); i++)
                copy_as(view, names[i][0], rank, names[i][1]);
        json_array_foreach(json_object_get(status, "subtasks"), i, subtask)
        {
                if (strcmp(view_text(subtask, "name"), view_text(rank, "subtask")) != 0)
                        continue;
                copy_as(view, "speed_source", subtask, "speedSource");
                copy_as(view, "state", subtask, "state");
                copy_as(view, "group", subtask, "group");
        }
        return view;
}

static double seconds_between(const char *from, const char *to)
{
        uint64_t begin = 0, end = 0;

        if (from[0] == '\0' || timestamp_parse(from, &begin) < 0)
                return NAN;
        if (to[0] == '\0' || timestamp_parse(to, &end) < 0)
                end = clock_realtime_usec();
        return end < begin ? 0 : (double) (end - begin) / 1e6;
}

/* The conditions are what is known of its life without the cluster's events. */
static json_t *events_of(const json_t *status)
{
        json_t *events = json_array(), *condition;
        size_t i;

        json_array_foreach(json_object_get(status, "conditions"), i, condition)
        {
                struct text message = { .max_bytes = 2000 };

                text_printf(&message, "%s is %s%s%s", view_text(condition, "type"),
                            view_text(condition, "status"),
                            view_text(condition, "message")[0] == '\0' ? "" : ": ",
                            view_text(condition, "message"));
                (void) json_array_append_new(events,
                                             json_pack("{s:s, s:s, s:s}", "time",
                                                       view_text(condition, "lastTransitionTime"), "reason",
                                                       view_text(condition, "reason"), "message",
                                                       message.data == NULL ? "" : message.data));
                text_free(&message);
        }
        return events;
}

static json_t *view_of(const json_t *object, bool kubernetes)
{
        const json_t *metadata = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec"),
                     *status = json_object_get(object, "status"),
                     *progress = json_object_get(status, "progress"), *rank;
        double seconds = seconds_between(view_text(status, "startTime"), view_text(status, "completionTime"));
        json_t *view = json_object(), *ranks = json_array();
        size_t i;

        copy_as(view, "job", metadata, "name");
        copy_as(view, "uid", metadata, "uid");
        (void) json_object_set_new(view, "namespace", text_or(metadata, "namespace", "default"));
        (void) json_object_set_new(view, "source", json_string(kubernetes ? "kubernetes" : "dir"));
        (void) json_object_set_new(view, "phase", text_or(status, "phase", "Pending"));
        (void) json_object_set_new(view, "reason", text_or(status, "reason", ""));
        (void) json_object_set_new(view, "message", text_or(status, "message", ""));
        copy_as(view, "created", metadata, "creationTimestamp");
        copy_as(view, "started", status, "startTime");
        (void) json_object_set_new(view, "seconds", isfinite(seconds) ? json_real(seconds) : json_null());
        (void) json_object_set_new(view, "model", text_or(spec, "model", "mlp"));
        (void) json_object_set_new(view, "strategy", text_or(spec, "strategy", "allreduce"));
        (void) json_object_set_new(view, "shards", text_or(spec, "shards", "weighted"));
        copy_as(view, "global_batch", spec, "globalBatch");
        copy_as(view, "epochs", spec, "epochs");
        copy_as(view, "workers", status, "workers");
        copy_as(view, "epoch", progress, "epoch");
        copy_as(view, "step", progress, "step");
        copy_as(view, "samples", json_object_get(progress, "samples") == NULL ? status : progress,
                json_object_get(progress, "samples") == NULL ? "samplesDone" : "samples");
        copy_as(view, "samples_total", progress, "samplesTotal");
        copy_as(view, "samples_per_s", status, "samplesPerSecond");
        copy_as(view, "seconds_left", progress, "secondsLeft");
        copy_as(view, "loss", progress, "loss");
        copy_as(view, "accuracy", progress, "accuracy");
        copy_as(view, "restarts", status, "restarts");
        json_array_foreach(json_object_get(status, "ranks"), i, rank)
        {
                (void) json_array_append_new(ranks, rank_view(status, rank));
        }
        (void) json_object_set_new(view, "ranks", ranks);
        (void) json_object_set_new(view, "notes",
                                   or_null(json_object_get(json_object_get(status, "plan"), "notes")));
        (void) json_object_set_new(view, "history", or_null(json_object_get(status, "history")));
        (void) json_object_set_new(view, "events", events_of(status));
        return view;
}

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        const struct loading *l = userdata;
        json_t *view;

        (void) kind;
        (void) key;
        if (object == NULL)
                return;
        view = view_of(object, jobs_place(l->options) == JOBS_KUBERNETES);
        if ((l->name == NULL || strcmp(view_text(view, "job"), l->name) == 0) &&
            (l->options->all_namespaces || strcmp(view_text(view, "namespace"), l->options->namespace_) == 0))
                (void) json_array_append(l->views, view);
        json_decref(view);
}

static void synced(void *userdata, enum store_kind kind)
{
        struct loading *l = userdata;

        (void) kind;
        l->synced = true;
        (void) sd_event_exit(l->loop, 0);
}

/* Of a directory it is one file of several. Of a cluster there is one list, and a second failure is its
 * answer. */
static void trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct loading *l = userdata;

        (void) kind;
        (void) text_copy(l->trouble, sizeof(l->trouble), sentence);
        if (jobs_place(l->options) != JOBS_KUBERNETES || strstr(sentence, "knows no") != NULL) {
                (void) fprintf(stderr, "remuda jobs: %s\n", sentence);
                return;
        }
        if (strstr(sentence, ": 401") != NULL || strstr(sentence, ": 403") != NULL)
                l->error = -EPERM;
        else if (++l->troubles >= 2)
                l->error = -EHOSTUNREACH;
        if (l->error < 0)
                (void) sd_event_exit(l->loop, 0);
}

static void too_late(void *userdata)
{
        (void) sd_event_exit(((struct loading *) userdata)->loop, 0);
}

int jobs_store_read(const struct jobs_options *options, const char *name, json_t *views, struct err *err)
{
        struct loading l = { .options = options, .name = name, .views = views };
        struct store_options store_options = { .spec = options->store,
                                               .kubeconfig = options->kubeconfig,
                                               .kinds = 1u << STORE_TRAINING_JOB,
                                               .changed = changed,
                                               .synced = synced,
                                               .trouble = trouble,
                                               .userdata = &l };
        struct store *store = NULL;
        sd_event_source *timer = NULL;
        int r = sd_event_new(&l.loop);

        if (r < 0)
                return err_set(err, r, "make a loop: %s", strerror(-r));
        r = store_open(l.loop, &store_options, &store, err);
        if (r == 0)
                r = loop_after(l.loop, LOAD_USEC, too_late, &l, &timer);
        if (r >= 0)
                r = sd_event_loop(l.loop);
        if (r >= 0 && !l.synced && l.error < 0)
                r = err_set(err, l.error, "the API server: %s", l.trouble);
        else if (r >= 0 && !l.synced)
                r = err_set(err, -ETIMEDOUT, "the TrainingJobs did not come within 20 s%s%s",
                            l.trouble[0] == '\0' ? "" : ": ", l.trouble);
        sd_event_source_disable_unref(timer);
        store_close(store);
        sd_event_unref(l.loop);
        return r < 0 ? r : 0;
}
