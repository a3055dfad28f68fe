/* The tables of a job's view. The files of `remuda run` have the words that are printed; a TrainingJob has
 * its own and fills the same struct. */
#include "job/show/job_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "job/plan/job_group.h"

#define UNSEEN_SEC 30 /* since it was made */
#define TABLE(rows_, type, initial_)                                                                         \
        {                                                                                                    \
                .rows = (rows_), .size_bytes = sizeof(type), .initial = (initial_), .lenient = true          \
        }
#define SWAP(a, b)                                                                                           \
        do {                                                                                                 \
                __typeof__(a) swapped_ = (a);                                                                \
                (a) = (b);                                                                                   \
                (b) = swapped_;                                                                              \
        } while (false)
#define COUNT(type, member) .count = offsetof(type, member)

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_view_event, member)
static const struct json_table_row event_rows[] = {
        { "time",                JSON_TABLE_STRING, AT(time) },
        { "reason",              JSON_TABLE_STRING, AT(reason) },
        { "message",             JSON_TABLE_STRING, AT(message) },
        { .name = NULL },
};
static const struct json_table event_table = TABLE(event_rows, struct job_view_event, NULL);
#undef AT

#define AT(member) JSON_TABLE_AT(struct job_view_rank, member)
static const struct job_view_rank unknown_rank = {
        .rank = NAN, .batch = NAN, .weight = NAN, .samples = NAN, .restarts = NAN, .exit_code = NAN, .pid = NAN,
        .speed_samples_per_s = NAN, .samples_per_s = NAN, .steps_behind = NAN, .speed = { NAN, NAN, NULL, NULL },
};
static const struct json_table_row rank_rows[] = {
        { "rank",                JSON_TABLE_COUNT,  AT(rank) },
        { "role",                JSON_TABLE_STRING, AT(role) },
        { "runtime",             JSON_TABLE_STRING, AT(runtime) },
        { "device",              JSON_TABLE_STRING, AT(device) },
        { "program",             JSON_TABLE_STRING, AT(program), .omit = true },
        { "program_sha256",      JSON_TABLE_STRING, AT(program_sha256), .omit = true },
        { "batch",               JSON_TABLE_COUNT,  AT(batch) },
        { "weight",              JSON_TABLE_DOUBLE, AT(weight) },
        { "shard",               JSON_TABLE_VALUE,  AT(shard), .omit = true },
        { "layers",              JSON_TABLE_VALUE,  AT(layers), .omit = true },
        { "speed.alpha_ms",      JSON_TABLE_DOUBLE, AT(speed.alpha_ms), .omit = true },
        { "speed.beta_ms",       JSON_TABLE_DOUBLE, AT(speed.beta_ms), .omit = true },
        { "speed.source",        JSON_TABLE_STRING, AT(speed.source), .omit = true },
        { "speed.precision",     JSON_TABLE_STRING, AT(speed.precision), .omit = true },
        { "speed_source",        JSON_TABLE_STRING, AT(speed_source) },
        { "precision",           JSON_TABLE_STRING, AT(precision), .omit = true },
        { "speed_samples_per_s", JSON_TABLE_DOUBLE, AT(speed_samples_per_s), .omit = true },
        { "samples",             JSON_TABLE_COUNT,  AT(samples) },
        { "samples_per_s",       JSON_TABLE_DOUBLE, AT(samples_per_s), .unset = true },
        { "steps_behind",        JSON_TABLE_COUNT,  AT(steps_behind), .unset = true },
        { "restarts",            JSON_TABLE_COUNT,  AT(restarts) },
        { "exit_code",           JSON_TABLE_COUNT,  AT(exit_code) },
        { "pid",                 JSON_TABLE_COUNT,  AT(pid), .omit = true },
        { "node",                JSON_TABLE_STRING, AT(node) },
        { "group",               JSON_TABLE_STRING, AT(group), .omit = true },
        { "device_model",        JSON_TABLE_STRING, AT(device_model), .omit = true },
        { "pod",                 JSON_TABLE_STRING, AT(pod), .omit = true },
        { "state",               JSON_TABLE_STRING, AT(state), .omit = true },
        { "exitCode",            JSON_TABLE_COUNT,  AT(exit_code), .read_only = true }, /* of a TrainingJob */
        { "samplesPerSecond",    JSON_TABLE_DOUBLE, AT(samples_per_s), .read_only = true },
        { "stepsBehind",         JSON_TABLE_COUNT,  AT(steps_behind), .read_only = true },
        { "subtask",             JSON_TABLE_STRING, AT(subtask), .read_only = true },
        { .name = NULL },
};
static const struct json_table rank_table = TABLE(rank_rows, struct job_view_rank, &unknown_rank);
#undef AT

#define AT(member) JSON_TABLE_AT(struct job_view_moment, member)
static const struct job_view_moment unknown_moment = { NAN, NAN, NAN, NAN, NAN, NULL, 0 };
static const struct json_table_row busy_row = { "", JSON_TABLE_COUNT, .size_bytes = sizeof(double) };
static const struct json_table_row moment_rows[] = {
        { "seconds",             JSON_TABLE_DOUBLE, AT(seconds) },
        { "world",               JSON_TABLE_COUNT,  AT(world) },
        { "step",                JSON_TABLE_COUNT,  AT(step) },
        { "samples",             JSON_TABLE_COUNT,  AT(samples) },
        { "loss",                JSON_TABLE_DOUBLE, AT(loss) },
        { "busy",                JSON_TABLE_LIST,   AT(busy), .element = &busy_row, COUNT(struct job_view_moment, busy_count) },
        { .name = NULL },
};
static const struct json_table moment_table = TABLE(moment_rows, struct job_view_moment, &unknown_moment);
#undef AT

#define AT(member)   JSON_TABLE_AT(struct job_view, member)
#define LIST(member) COUNT(struct job_view, member)
static const struct json_table_row note_row = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *) };
static const struct json_table_row view_rows[] = {
        { "job",                 JSON_TABLE_STRING, AT(job) },
        { "uid",                 JSON_TABLE_STRING, AT(uid), .omit = true },
        { "namespace",           JSON_TABLE_STRING, AT(namespace_) },
        { "source",              JSON_TABLE_STRING, AT(source) },
        { "folder",              JSON_TABLE_STRING, AT(folder), .omit = true },
        { "phase",               JSON_TABLE_STRING, AT(phase) },
        { "reason",              JSON_TABLE_STRING, AT(reason) },
        { "message",             JSON_TABLE_STRING, AT(message) },
        { "created",             JSON_TABLE_STRING, AT(created), .omit = true },
        { "started",             JSON_TABLE_STRING, AT(started) },
        { "seconds",             JSON_TABLE_DOUBLE, AT(seconds) },
        { "model",               JSON_TABLE_STRING, AT(model) },
        { "strategy",            JSON_TABLE_STRING, AT(strategy) },
        { "shards",              JSON_TABLE_STRING, AT(shards) },
        { "global_batch",        JSON_TABLE_COUNT,  AT(global_batch) },
        { "epochs",              JSON_TABLE_COUNT,  AT(epochs) },
        { "workers",             JSON_TABLE_VALUE,  AT(workers) },
        { "epoch",               JSON_TABLE_COUNT,  AT(epoch) },
        { "step",                JSON_TABLE_COUNT,  AT(step) },
        { "samples",             JSON_TABLE_COUNT,  AT(samples) },
        { "samples_used",        JSON_TABLE_COUNT,  AT(samples), .read_only = true }, /* of a summary */
        { "samples_total",       JSON_TABLE_COUNT,  AT(samples_total) },
        { "samples_per_s",       JSON_TABLE_DOUBLE, AT(samples_per_s) },
        { "seconds_left",        JSON_TABLE_DOUBLE, AT(seconds_left) },
        { "seconds_left_least",  JSON_TABLE_DOUBLE, AT(seconds_left_least), .unset = true },
        { "seconds_left_most",   JSON_TABLE_DOUBLE, AT(seconds_left_most), .unset = true },
        { "steps_behind_mean",   JSON_TABLE_DOUBLE, AT(steps_behind_mean), .unset = true },
        { "steps_behind_max",    JSON_TABLE_COUNT,  AT(steps_behind_max), .unset = true },
        { "loss",                JSON_TABLE_DOUBLE, AT(loss) },
        { "accuracy",            JSON_TABLE_DOUBLE, AT(accuracy) },
        { "restarts",            JSON_TABLE_COUNT,  AT(restarts) },
        { "cores",               JSON_TABLE_COUNT,  AT(cores), .omit = true },
        { "ranks",               JSON_TABLE_LIST,   AT(ranks), .table = &rank_table, LIST(rank_count) },
        { "notes",               JSON_TABLE_LIST,   AT(notes), .element = &note_row, LIST(note_count), .omit = true },
        { "history",             JSON_TABLE_LIST,   AT(history), .table = &moment_table, LIST(history_count), .omit = true },
        { "events",              JSON_TABLE_LIST,   AT(events), .table = &event_table, LIST(event_count) },
        { .name = NULL },
};
static const struct json_table view_table = TABLE(view_rows, struct job_view, NULL);

#undef AT

/* A TrainingJob (manifests/crds/trainingjobs.yaml). */
struct subtask {
        char *name, *speed_source, *precision, *state, *group;
        char *layers; /* of a split: "0:1,2:3", first and last of each rank */
        double ranks, samples_per_s;
};
#define AT(member) JSON_TABLE_AT(struct subtask, member)
static const struct json_table_row subtask_rows[] = {
        { "name",                JSON_TABLE_STRING, AT(name) },
        { "speedSource",         JSON_TABLE_STRING, AT(speed_source) },
        { "precision",           JSON_TABLE_STRING, AT(precision) },
        { "ranks",               JSON_TABLE_COUNT,  AT(ranks) },
        { "samplesPerSecond",    JSON_TABLE_DOUBLE, AT(samples_per_s) },
        { "state",               JSON_TABLE_STRING, AT(state) },
        { "group",               JSON_TABLE_STRING, AT(group) },
        { "layers",              JSON_TABLE_STRING, AT(layers) },
        { .name = NULL },
};
static const struct json_table subtask_table = TABLE(subtask_rows, struct subtask, NULL);
#undef AT

/* What the API server says happened: an Event of its own, or a condition of the job. */
struct said {
        char *time, *last, *first, *created, *type, *status, *reason, *message;
};
#define AT(member) JSON_TABLE_AT(struct said, member)
static const struct json_table_row said_rows[] = {
        { "eventTime",           JSON_TABLE_STRING, AT(time) },
        { "lastTransitionTime",  JSON_TABLE_STRING, AT(time) },
        { "lastTimestamp",       JSON_TABLE_STRING, AT(last) },
        { "firstTimestamp",      JSON_TABLE_STRING, AT(first) },
        { "metadata.creationTimestamp", JSON_TABLE_STRING, AT(created) },
        { "type",                JSON_TABLE_STRING, AT(type) },
        { "status",              JSON_TABLE_STRING, AT(status) },
        { "reason",              JSON_TABLE_STRING, AT(reason) },
        { "message",             JSON_TABLE_STRING, AT(message) },
        { .name = NULL },
};
static const struct json_table said_table = TABLE(said_rows, struct said, NULL);
#undef AT

struct object {
        struct job_view view;
        char *completed;
        double samples_done;
        struct subtask *subtasks;
        size_t subtask_count;
        struct said *said;
        size_t said_count;
};
#define AT(member) JSON_TABLE_AT(struct object, member)
#undef LIST
#define LIST(member) COUNT(struct object, member)
static const struct json_table_row object_rows[] = {
        { "metadata.name",       JSON_TABLE_STRING, AT(view.job) },
        { "metadata.uid",        JSON_TABLE_STRING, AT(view.uid) },
        { "metadata.namespace",  JSON_TABLE_STRING, AT(view.namespace_) },
        { "metadata.creationTimestamp", JSON_TABLE_STRING, AT(view.created) },
        { "spec.model",          JSON_TABLE_STRING, AT(view.model) },
        { "spec.strategy",       JSON_TABLE_STRING, AT(view.strategy) },
        { "spec.shards",         JSON_TABLE_STRING, AT(view.shards) },
        { "spec.globalBatch",    JSON_TABLE_COUNT,  AT(view.global_batch) },
        { "spec.epochs",         JSON_TABLE_COUNT,  AT(view.epochs) },
        { "status.phase",        JSON_TABLE_STRING, AT(view.phase) },
        { "status.reason",       JSON_TABLE_STRING, AT(view.reason) },
        { "status.message",      JSON_TABLE_STRING, AT(view.message) },
        { "status.startTime",    JSON_TABLE_STRING, AT(view.started) },
        { "status.completionTime", JSON_TABLE_STRING, AT(completed) },
        { "status.workers",      JSON_TABLE_VALUE,  AT(view.workers) },
        { "status.restarts",     JSON_TABLE_COUNT,  AT(view.restarts) },
        { "status.samplesDone",  JSON_TABLE_COUNT,  AT(samples_done) },
        { "status.samplesPerSecond", JSON_TABLE_DOUBLE, AT(view.samples_per_s) },
        { "status.progress.epoch", JSON_TABLE_COUNT, AT(view.epoch) },
        { "status.progress.step", JSON_TABLE_COUNT, AT(view.step) },
        { "status.progress.samples", JSON_TABLE_COUNT, AT(view.samples) },
        { "status.progress.samplesTotal", JSON_TABLE_COUNT, AT(view.samples_total) },
        { "status.progress.secondsLeft", JSON_TABLE_DOUBLE, AT(view.seconds_left) },
        { "status.progress.secondsLeftLeast", JSON_TABLE_DOUBLE, AT(view.seconds_left_least) },
        { "status.progress.secondsLeftMost", JSON_TABLE_DOUBLE, AT(view.seconds_left_most) },
        { "status.progress.stepsBehindMean", JSON_TABLE_DOUBLE, AT(view.steps_behind_mean) },
        { "status.progress.stepsBehindMax", JSON_TABLE_COUNT, AT(view.steps_behind_max) },
        { "status.progress.loss", JSON_TABLE_DOUBLE, AT(view.loss) },
        { "status.progress.accuracy", JSON_TABLE_DOUBLE, AT(view.accuracy) },
        { "status.plan.notes",   JSON_TABLE_LIST,   AT(view.notes), .element = &note_row, LIST(view.note_count) },
        { "status.history",      JSON_TABLE_LIST,   AT(view.history), .table = &moment_table, LIST(view.history_count) },
        { "status.ranks",        JSON_TABLE_LIST,   AT(view.ranks), .table = &rank_table, LIST(view.rank_count) },
        { "status.subtasks",     JSON_TABLE_LIST,   AT(subtasks), .table = &subtask_table, LIST(subtask_count) },
        { "status.conditions",   JSON_TABLE_LIST,   AT(said), .table = &said_table, LIST(said_count) },
        { "items",               JSON_TABLE_LIST,   AT(said), .table = &said_table, LIST(said_count) }, /* of an EventList */
        { .name = NULL },
};
static const struct json_table object_table = TABLE(object_rows, struct object, NULL);
#undef AT
/* clang-format on */

static const struct job_view unknown = {
        .seconds = NAN,
        .global_batch = NAN,
        .epochs = NAN,
        .epoch = NAN,
        .step = NAN,
        .samples = NAN,
        .samples_total = NAN,
        .samples_per_s = NAN,
        .seconds_left = NAN,
        .seconds_left_least = NAN,
        .seconds_left_most = NAN,
        .steps_behind_mean = NAN,
        .steps_behind_max = NAN,
        .loss = NAN,
        .accuracy = NAN,
        .restarts = NAN,
        .cores = NAN,
};

struct job_view *job_view_list_add(struct job_view_list *views)
{
        struct job_view *grown = reallocarray(views->items, views->count + 1, sizeof(*grown));

        if (grown == NULL)
                return NULL;
        views->items = grown;
        grown[views->count] = unknown;
        return &grown[views->count++];
}

void job_view_list_drop_last(struct job_view_list *views)
{
        json_table_free(&view_table, &views->items[--views->count]);
}

void job_view_list_free(struct job_view_list *views)
{
        while (views->count > 0)
                job_view_list_drop_last(views);
        free(views->items);
        views->items = NULL;
}

const char *job_view_speed(const struct job_view_rank *rank, char words[40])
{
        (void) text_format(words, 40, "%.20s%s%.10s", job_view_word(rank->speed_source),
                           job_view_word(rank->precision)[0] != '\0' ? " " : "",
                           job_view_word(rank->precision));
        return words;
}

/* NAN: nobody has measured it. */
static double rank_ms(const struct job_view_rank *rank, double batch)
{
        if (strcmp(job_view_word(rank->speed_source), "measured") != 0)
                return NAN;
        if (rank->speed.beta_ms > 0 && rank->speed.alpha_ms >= 0)
                return batch > 0 ? rank->speed.alpha_ms + rank->speed.beta_ms * batch : 0;
        return rank->speed_samples_per_s > 0 ? 1000 * batch / rank->speed_samples_per_s : NAN;
}

double job_view_gain(const struct job_view *view)
{
        double workers = 0, batch = 0, equal_ms = 0, now_ms = 0, ms;

        for (size_t i = 0; i < view->rank_count; i++) {
                if (strcmp(job_view_word(view->ranks[i].role), "worker") != 0)
                        continue;
                workers++;
                batch += view->ranks[i].batch;
        }
        for (size_t i = 0; i < view->rank_count; i++) {
                const struct job_view_rank *rank = &view->ranks[i];

                if (strcmp(job_view_word(rank->role), "worker") != 0)
                        continue;
                ms = rank_ms(rank, batch / workers) + rank_ms(rank, rank->batch);
                if (!isfinite(ms))
                        return NAN;
                equal_ms = fmax(equal_ms, rank_ms(rank, batch / workers));
                now_ms = fmax(now_ms, rank_ms(rank, rank->batch));
        }
        return workers > 1 && now_ms > 0 ? equal_ms / now_ms : NAN;
}

const char *job_view_word(const char *word)
{
        return word != NULL ? word : "";
}

void job_view_set(char **word, const char *value)
{
        char *copy = value != NULL ? strdup(value) : NULL;

        free(*word);
        *word = copy;
}

bool job_view_ended(const struct job_view *view)
{
        const char *phase = job_view_word(view->phase);

        return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0 ||
               strcmp(phase, "Cancelled") == 0;
}

/* A plan has the words of a view, but its samples are those of one epoch. */
void job_view_read_plan(const json_t *plan, struct job_view *view)
{
        double workers = 0;
        const json_t *assumed;
        size_t at;

        (void) json_table_decode(&view_table, plan, view, NULL);
        json_array_foreach(json_object_get(plan, "assumed"), at, assumed)
        { /* nobody said it of this program */
                const char *name = json_string_value(assumed);

                if (name != NULL && strcmp(name, "model") == 0)
                        job_view_set(&view->model, NULL);
                if (name != NULL && strcmp(name, "epochs") == 0)
                        view->epochs = NAN;
        }
        view->samples_total = view->samples * view->epochs > 0 ? view->samples * view->epochs : NAN;
        view->samples = NAN;
        for (size_t i = 0; i < view->rank_count; i++) {
                struct job_view_rank *rank = &view->ranks[i];

                workers += strcmp(job_view_word(rank->role), "worker") == 0;
                if (rank->speed_source == NULL)
                        job_view_set(&rank->speed_source, rank->speed.source);
                if (rank->precision == NULL)
                        job_view_set(&rank->precision, rank->speed.precision);
        }
        if (view->rank_count > 0)
                view->workers = json_integer((json_int_t) workers);
}

void job_view_read_report(const json_t *report, struct job_view_rank *rank)
{
        struct job_view_rank said = unknown_rank;

        (void) json_table_decode(&rank_table, report, &said, NULL);
        if (!isfinite(said.exit_code)) /* one that has ended is nobody's process */
                rank->pid = said.pid;
        json_table_free(&rank_table, &said);
}

/* A summary has the words of a view, but its epochs are those that are done. A list that it has not is as it
 * was. */
void job_view_read_summary(const json_t *summary, struct job_view *view)
{
        struct job_view before = { .epochs = view->epochs };

        before.ranks = TAKE(view->ranks);
        before.rank_count = view->rank_count;
        before.events = TAKE(view->events);
        before.event_count = view->event_count;
        view->rank_count = view->event_count = 0;
        (void) json_table_decode(&view_table, summary, view, NULL);
        if (view->rank_count == 0) {
                SWAP(view->ranks, before.ranks);
                SWAP(view->rank_count, before.rank_count);
        }
        if (view->event_count == 0) {
                SWAP(view->events, before.events);
                SWAP(view->event_count, before.event_count);
        }
        view->epoch = view->epochs;
        view->epochs = before.epochs;
        view->seconds_left = NAN;
        json_table_free(&view_table, &before);
}

/* Takes the words. */
static void add_event(struct job_view *view, struct job_view_event event)
{
        struct job_view_event *grown = reallocarray(view->events, view->event_count + 1, sizeof(*grown));

        if (grown == NULL) {
                json_table_free(&event_table, &event);
                return;
        }
        view->events = grown;
        grown[view->event_count++] = event;
}

void job_view_read_event(const json_t *value, struct job_view *view)
{
        struct job_view_event event = { 0 };

        if (json_is_object(value) && json_table_decode(&event_table, value, &event, NULL) == 0)
                add_event(view, event);
}

/* Events have one of four times, by who made them; a condition is told by its type. */
static void add_said(struct job_view *view, struct said *said, bool condition)
{
        char **const times[] = { &said->time, &said->last, &said->first, &said->created };
        struct job_view_event event = { .reason = TAKE(said->reason) };
        struct text message = { .max_bytes = 2000 };

        for (size_t i = 0; i < ARRAY_SIZE(times) && job_view_word(event.time)[0] == '\0'; i++) {
                free(event.time);
                event.time = TAKE(*times[i]);
        }
        if (condition)
                text_printf(&message, "%s is %s%s", job_view_word(said->type), job_view_word(said->status),
                            job_view_word(said->message)[0] == '\0' ? "" : ": ");
        text_append(&message, job_view_word(said->message));
        event.message = text_take(&message, NULL);
        add_event(view, event);
}

static int compare_events(const void *a, const void *b)
{
        const struct job_view_event *x = a, *y = b;

        return strcmp(job_view_word(x->time), job_view_word(y->time));
}

void job_view_read_events(const json_t *list, struct job_view *view)
{
        struct object object = { .view = unknown };

        (void) json_table_decode(&object_table, list, &object, NULL);
        for (; object.said_count > 0 && view->event_count > 0; view->event_count--)
                json_table_free(&event_table, &view->events[view->event_count - 1]);
        for (size_t i = 0; i < object.said_count; i++)
                add_said(view, &object.said[i], false);
        if (object.said_count > 0)
                qsort(view->events, view->event_count, sizeof(*view->events), compare_events);
        json_table_free(&object_table, &object);
}

/* Of the n-th rank of its subtask; NULL = there are none. */
static json_t *layers_of_rank(const char *layers, size_t n)
{
        uint32_t first, last;

        return layers == NULL || !job_group_rank_layers(layers, n, &first, &last)
                       ? NULL
                       : json_pack("[I, I]", (json_int_t) first, (json_int_t) last);
}

static size_t before_in_subtask(const struct job_view *view, size_t rank)
{
        const char *subtask = job_view_word(view->ranks[rank].subtask);
        size_t count = 0;

        for (size_t i = 0; i < rank; i++)
                count += strcmp(job_view_word(view->ranks[i].subtask), subtask) == 0;
        return count;
}

/* What only its subtask knows of each rank. */
static void join_subtasks(const struct object *object, struct job_view *view)
{
        for (size_t i = 0; i < view->rank_count; i++) {
                struct job_view_rank *rank = &view->ranks[i];

                for (size_t k = 0; k < object->subtask_count; k++) {
                        const struct subtask *subtask = &object->subtasks[k];

                        if (strcmp(job_view_word(subtask->name), job_view_word(rank->subtask)) != 0)
                                continue;
                        job_view_set(&rank->speed_source, subtask->speed_source);
                        job_view_set(&rank->precision, subtask->precision);
                        job_view_set(&rank->state, subtask->state);
                        if (subtask->ranks >= 1 && subtask->samples_per_s > 0)
                                rank->speed_samples_per_s = subtask->samples_per_s / subtask->ranks;
                        job_view_set(&rank->group, subtask->group);
                        if (rank->layers == NULL)
                                rank->layers = layers_of_rank(subtask->layers, before_in_subtask(view, i));
                }
        }
}

static void set_default(char **word, const char *otherwise)
{
        if (*word == NULL)
                job_view_set(word, otherwise);
}

static double seconds_between(const char *from, const char *to, uint64_t now_usec)
{
        uint64_t begin = 0, end = 0;

        if (from == NULL || from[0] == '\0' || timestamp_parse(from, &begin) < 0)
                return NAN;
        if (to == NULL || to[0] == '\0' || timestamp_parse(to, &end) < 0)
                end = now_usec;
        return end < begin ? 0 : (double) (end - begin) / 1e6;
}

/* What the reference trainer takes where nobody said it; of another program it would be a guess. */
static void set_trainers(const json_t *spec, struct job_view *view)
{
        if (json_object_get(spec, "data") == NULL || json_object_get(spec, "args") != NULL)
                return;
        set_default(&view->model, "mlp");
        if (!isfinite(view->epochs))
                view->epochs = 1;
}

/* A controller says of each job within seconds how it is: of this one none has. */
static void note_unseen(struct job_view *view, uint64_t now_usec)
{
        if (view->phase == NULL && seconds_between(view->created, NULL, now_usec) >= UNSEEN_SEC)
                set_default(&view->message,
                            "no controller has looked at it yet: `remuda doctor --cluster` says whether one "
                            "leads, and works in this namespace");
}

void job_view_read_object(const json_t *value, struct job_view *view, uint64_t now_usec)
{
        struct object object = { .view = unknown, .samples_done = NAN };

        (void) json_table_decode(&object_table, value, &object, NULL);
        *view = object.view;
        object.view = unknown;
        set_default(&view->namespace_, "default");
        note_unseen(view, now_usec);
        set_default(&view->phase, "Pending");
        set_default(&view->reason, "");
        set_default(&view->message, "");
        set_trainers(json_object_get(value, "spec"), view);
        set_default(&view->strategy, "allreduce");
        set_default(&view->shards, "weighted");
        view->seconds = seconds_between(view->started, object.completed, now_usec);
        if (!isfinite(view->samples))
                view->samples = object.samples_done;
        join_subtasks(&object, view);
        for (size_t i = 0; i < object.said_count;
             i++) /* its life, as far as it is known without the events */
                add_said(view, &object.said[i], true);
        json_table_free(&object_table, &object);
}

json_t *job_view_encode(const struct job_view *view)
{
        json_t *value = json_table_encode(&view_table, view);
        double gain = job_view_gain(view);

        if (value != NULL)
                (void) json_object_set_new(value, "gain", isfinite(gain) ? json_real(gain) : json_null());
        return value;
}
