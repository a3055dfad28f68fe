/* A TrainingJob's spec and status as the page's words. */
#include "scheduler-extender/page/page_jobs.h"

#include <math.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "job/plan/job_group.h"
#include "scheduler-extender/page/page_fleet.h"

#define RANKS_SHOWN 1024

static uint64_t number(const struct json_field *in, const char *name)
{
        int64_t value = 0;

        (void) json_field_int64(in, name, 0, INT64_MAX, &value, NULL);
        return (uint64_t) value;
}

static bool has_number(const struct json_field *in, const char *name)
{
        struct json_field field = json_field_get(in, name);

        return json_is_number(field.value);
}

static double real(const struct json_field *in, const char *name)
{
        double value = NAN;

        (void) json_field_double(in, name, -1e18, 1e18, &value, NULL);
        return value;
}

static void copy_word(struct json_writer *w, const char *key, const struct json_field *in, const char *name)
{
        json_writer_word(w, key, json_field_word(in, name));
}

static void copy_real(struct json_writer *w, const char *key, const struct json_field *in, const char *name)
{
        double value = real(in, name);

        if (isfinite(value))
                json_writer_double(w, key, value);
}

static void copy_positive(struct json_writer *w, const char *key, const struct json_field *in,
                          const char *name)
{
        if (real(in, name) > 0)
                json_writer_double(w, key, real(in, name));
}

static uint64_t time_of(const struct json_field *in, const char *name)
{
        uint64_t usec = 0;

        return timestamp_parse(json_field_word(in, name), &usec) == 0 ? usec : 0;
}

/* "0:5": of the n-th rank of its subtask. */
static void write_layers(struct json_writer *w, const struct json_field *subtask, uint64_t n)
{
        uint32_t first, last;
        char word[32];

        if (job_group_rank_layers(json_field_word(subtask, "layers"), n, &first, &last) &&
            text_format(word, sizeof(word), "%u:%u", first, last))
                json_writer_string(w, "layers", word);
}

static struct json_field subtask_of(const struct json_field *status, const char *name)
{
        static const struct json_field none = { .value = NULL };
        struct json_field subtasks = json_field_get(status, "subtasks");

        for (size_t i = 0; i < json_field_count(&subtasks); i++) {
                struct json_field subtask = json_field_at(&subtasks, i);

                if (strcmp(json_field_word(&subtask, "name"), name) == 0)
                        return (struct json_field){ .value = subtask.value };
        }
        return none;
}

/* Of the last moment of its history: the first 16 ranks alone. */
static void write_busy(struct json_writer *w, const struct json_field *status, uint64_t rank)
{
        struct json_field history = json_field_get(status, "history"), last, busy, percent;
        int64_t value = 0;

        if (json_field_count(&history) == 0)
                return;
        last = json_field_at(&history, json_field_count(&history) - 1);
        busy = json_field_get(&last, "busy");
        percent = json_field_at(&busy, (size_t) rank);
        if (rank < json_field_count(&busy) && json_field_as_int64(&percent, 0, 100, &value, NULL) == 0)
                json_writer_uint64(w, "busyPermille", (uint64_t) value * 10);
}

static void write_rank(struct json_writer *w, const struct json_field *status, const struct json_field *rank)
{
        uint64_t number_of = number(rank, "rank");
        struct json_field subtask = subtask_of(status, json_field_word(rank, "subtask"));

        json_writer_open(w, NULL, '{');
        json_writer_uint64(w, "rank", number_of);
        copy_word(w, "role", rank, "role");
        copy_word(w, "pod", rank, "pod");
        copy_word(w, "node", rank, "node");
        copy_word(w, "group", &subtask, "group");
        copy_word(w, "model", rank, "device");
        copy_word(w, "runtime", rank, "runtime");
        copy_word(w, "phase", &subtask, "state");
        copy_real(w, "weight", rank, "weight");
        copy_word(w, "weightSource", &subtask, "speedSource");
        copy_positive(w, "samplesPerSec", rank, "samplesPerSecond");
        if (has_number(rank, "stepsBehind"))
                json_writer_uint64(w, "stepsBehind", number(rank, "stepsBehind"));
        write_busy(w, status, number_of);
        if (number_of >= number(&subtask, "firstRank"))
                write_layers(w, &subtask, number_of - number(&subtask, "firstRank"));
        json_writer_close(w, '}');
}

static void write_ranks(struct json_writer *w, const struct json_field *status)
{
        struct json_field ranks = json_field_get(status, "ranks");
        size_t count = json_field_count(&ranks);

        if (count == 0)
                return;
        json_writer_open(w, "ranks", '[');
        for (size_t i = 0; i < count && i < RANKS_SHOWN; i++) {
                struct json_field rank = json_field_at(&ranks, i);

                write_rank(w, status, &rank);
        }
        json_writer_close(w, ']');
}

/* What was seen to be done of late; else what the status says, which is of no known time. */
static void write_rate(struct json_writer *w, const struct json_field *status,
                       const struct page_jobs_seen *seen)
{
        double rate = real(status, "samplesPerSecond");
        bool of_late = seen != NULL && seen->samples_per_sec > 0;

        if (!of_late && !(rate > 0))
                return;
        json_writer_open(w, "rate", '{');
        json_writer_double(w, "samplesPerSec", of_late ? seen->samples_per_sec : rate);
        if (of_late)
                json_writer_uint64(w, "windowSec", JOB_RATE_USEC / 1000000);
        json_writer_close(w, '}');
}

static void write_progress(struct json_writer *w, const struct json_field *status,
                           const struct page_jobs_seen *seen)
{
        struct json_field progress = json_field_get(status, "progress");
        double left = real(&progress, "secondsLeft"), least = real(&progress, "secondsLeftLeast"),
               most = real(&progress, "secondsLeftMost"), behind = real(&progress, "stepsBehindMean");

        if (has_number(&progress, "step")) { /* the last that was done, counted from 0 */
                json_writer_open(w, "steps", '{');
                json_writer_uint64(w, "done", number(&progress, "step") + 1);
                json_writer_close(w, '}');
        }
        if (has_number(&progress, "samples")) {
                json_writer_open(w, "samples", '{');
                json_writer_uint64(w, "done", number(&progress, "samples"));
                if (number(&progress, "samplesTotal") > 0)
                        json_writer_uint64(w, "of", number(&progress, "samplesTotal"));
                json_writer_close(w, '}');
        }
        write_rate(w, status, seen);
        if (left >= 0) {
                json_writer_open(w, "left", '{');
                json_writer_uint64(w, "sec", (uint64_t) left);
                if (least >= 0 && most >= least) {
                        json_writer_uint64(w, "fromSec", (uint64_t) least);
                        json_writer_uint64(w, "toSec", (uint64_t) ceil(most));
                }
                json_writer_close(w, '}');
        }
        if (behind >= 0) {
                json_writer_open(w, "stepsBehind", '{');
                json_writer_double(w, "mean", behind);
                json_writer_uint64(w, "max", number(&progress, "stepsBehindMax"));
                json_writer_close(w, '}');
        }
        copy_real(w, "loss", &progress, "loss");
}

static void write_event(struct json_writer *w, uint64_t usec, const char *kind, const char *message)
{
        json_writer_open(w, NULL, '{');
        page_fleet_write_time(w, "at", usec);
        json_writer_string(w, "kind", kind);
        json_writer_string(w, "message", message);
        json_writer_close(w, '}');
}

/* Conditions that hold are what has come to pass, with their times. */
static void write_conditions(struct json_writer *w, const struct json_field *status)
{
        struct json_field conditions = json_field_get(status, "conditions");

        for (size_t i = 0; i < json_field_count(&conditions); i++) {
                struct json_field condition = json_field_at(&conditions, i);
                char message[600];

                if (strcmp(json_field_word(&condition, "status"), "True") != 0)
                        continue;
                (void) text_format(message, sizeof(message), "%s: %s", json_field_word(&condition, "type"),
                                   json_field_word(&condition, "message"));
                write_event(w, time_of(&condition, "lastTransitionTime"), "condition", message);
        }
}

static void write_events(struct json_writer *w, const struct json_field *status,
                         const struct page_jobs_seen *seen)
{
        json_writer_open(w, "events", '[');
        write_conditions(w, status);
        for (size_t i = 0; seen != NULL && i < seen->count; i++)
                write_event(w, seen->events[i].usec, seen->events[i].kind, seen->events[i].message);
        json_writer_close(w, ']');
}

void page_jobs_write(struct json_writer *w, const char *key, const json_t *object,
                     const struct page_jobs_seen *seen)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          spec = json_field_get(&root, "spec"), status = json_field_get(&root, "status");
        const char *strategy = json_field_word(&spec, "strategy"), *phase = json_field_word(&status, "phase");

        json_writer_open(w, NULL, '{');
        json_writer_string(w, "job", key);
        json_writer_string(w, "phase", phase[0] != '\0' ? phase : "Pending");
        copy_word(w, "reason", &status, "reason");
        copy_word(w, "message", &status, "message");
        page_fleet_write_time(w, "created", time_of(&metadata, "creationTimestamp"));
        page_fleet_write_time(w, "started", time_of(&status, "startTime"));
        page_fleet_write_time(w, "ended", time_of(&status, "completionTime"));
        json_writer_string(w, "strategy", strategy[0] != '\0' ? strategy : "allreduce");
        write_progress(w, &status, seen);
        write_ranks(w, &status);
        write_events(w, &status, seen);
        json_writer_close(w, '}');
}

static void add_event(struct page_jobs_seen *seen, uint64_t now_usec, const char *kind, const char *message)
{
        if (seen->count == PAGE_JOBS_EVENTS_MAX)
                memmove(&seen->events[0], &seen->events[1], --seen->count * sizeof(seen->events[0]));
        seen->events[seen->count].usec = now_usec;
        seen->events[seen->count].kind = kind;
        (void) text_copy(seen->events[seen->count++].message, PAGE_JOBS_EVENT_BYTES, message);
}

static void note_count(struct page_jobs_seen *seen, uint64_t *count, uint64_t now, uint64_t now_usec,
                       const char *kind, const char *what, const char *why)
{
        char message[PAGE_JOBS_EVENT_BYTES];

        if (seen->begun && now > *count) {
                (void) text_format(message, sizeof(message), "%s%s%s", what, why[0] != '\0' ? ": " : "", why);
                add_event(seen, now_usec, kind, message);
        }
        *count = now;
}

static void note_rate(struct page_jobs_seen *seen, const struct json_field *status, uint64_t now_usec)
{
        struct json_field progress = json_field_get(status, "progress");
        double samples = 0, step = 0;

        if (!has_number(&progress, "samples"))
                return;
        job_rate_add(&seen->rate, (struct job_rate_point){ .usec = now_usec,
                                                           .samples = number(&progress, "samples"),
                                                           .steps = number(&progress, "step") });
        seen->samples_per_sec = job_rate_of(&seen->rate, now_usec, &samples, &step) ? samples : 0;
}

void page_jobs_see(struct page_jobs_seen *seen, const json_t *object, uint64_t now_usec)
{
        struct json_field root = json_field_root(object), status = json_field_get(&root, "status");
        const char *phase = json_field_word(&status, "phase"), *why = json_field_word(&status, "message");
        char message[PAGE_JOBS_EVENT_BYTES];

        if (seen->begun && strcmp(phase, seen->phase) != 0 && phase[0] != '\0') {
                (void) text_format(message, sizeof(message), "%s%s%s", phase, why[0] != '\0' ? ": " : "",
                                   why);
                add_event(seen, now_usec, "phase", message);
        }
        (void) text_copy(seen->phase, sizeof(seen->phase), phase);
        note_count(seen, &seen->restarts, number(&status, "restarts"), now_usec, "repair",
                   "a fault was repaired", why);
        note_count(seen, &seen->reshards, number(&status, "reshards"), now_usec, "plan",
                   "the shares were cut anew for a new world", "");
        note_count(seen, &seen->recuts, number(&status, "recuts"), now_usec, "plan",
                   "the shares were cut anew while it runs", "");
        note_rate(seen, &status, now_usec);
        seen->begun = true;
}
