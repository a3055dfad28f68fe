/* Job view: what people are shown of a job (`remuda jobs`, its report), wherever the job ran.
 *
 * Read once, from the files of `remuda run` or from a TrainingJob, and shown in many ways; job_view_encode()
 * is what `-o json` prints (remuda-jobs(1)). Numbers that are not known are NAN, words that are not known
 * NULL (job_view_word() makes "" of it); both are null in JSON. What does not fit is taken as not known:
 * the files and objects were written by others, maybe by an older program. A view owns its memory. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_view_rank {
        double rank, batch, weight, samples, restarts, exit_code, pid, speed_samples_per_s;
        double samples_per_s, steps_behind; /* while it computes; of a worker that does not go in step */
        char *role, *runtime, *device, *device_model, *node, *group, *pod, *state;
        char *program, *program_sha256, *speed_source, *precision, *subtask;
        json_t *shard, *layers; /* as they were written */
        struct {
                double alpha_ms, beta_ms;
                char *source, *precision;
        } speed;
};

struct job_view_event {
        char *time, *reason, *message;
};

/* How far a cluster's job was at one time. */
struct job_view_moment {
        double seconds, world, step, samples, loss;
        double *busy; /* percent, of the first ranks */
        size_t busy_count;
};

struct job_view {
        char *job, *uid, *namespace_, *source, *folder, *phase, *reason, *message, *created, *started;
        char *model, *strategy, *shards;
        json_t *workers; /* a number, or "3/4" */
        double seconds, global_batch, epochs, epoch, step, samples, samples_total, samples_per_s,
                seconds_left, seconds_left_least, seconds_left_most, /* its spread */
                steps_behind_mean, steps_behind_max, loss, accuracy, restarts,
                cores; /* cores: of the machine that all ranks are on */
        struct job_view_rank *ranks;
        size_t rank_count;
        char **notes;
        size_t note_count;
        struct job_view_moment *history;
        size_t history_count;
        struct job_view_event *events;
        size_t event_count;
};

struct job_view_list {
        struct job_view *items;
        size_t count;
};

/* job_view_list_add() - one more, of which nothing is known. Return: NULL when out of memory. */
struct job_view *job_view_list_add(struct job_view_list *views);
void job_view_list_free(struct job_view_list *views);
void job_view_list_drop_last(struct job_view_list *views);

/* job_view_word() - the word, or "". */
const char *job_view_word(const char *word);

/* job_view_speed() - whose figure the rank's share goes by: "measured", "table fp16", "". */
const char *job_view_speed(const struct job_view_rank *rank, char words[40]);

/* job_view_gain() - how many times as long the computing of a step would take with equal shares, by the
 * speeds that were measured of all its workers; NAN: they were not. Example: 24 + 8 samples at 300 and 100 a
 * second take 80 ms, 16 + 16 would take 160: 2. */
double job_view_gain(const struct job_view *view);

/* job_view_set() - a copy of the word in the place of what was there. NULL = not known. */
void job_view_set(char **word, const char *value);

/* job_view_ended() - has it come to its end? */
bool job_view_ended(const struct job_view *view);

/* Readers; what a document does not say stays as it was. */
void job_view_read_plan(const json_t *plan, struct job_view *view);       /* plan.json */
void job_view_read_summary(const json_t *summary, struct job_view *view); /* summary.json */
void job_view_read_report(const json_t *report,
                          struct job_view_rank *rank);                /* rank-N.report, of its launcher */
void job_view_read_event(const json_t *value, struct job_view *view); /* a line of events.jsonl: one more */
void job_view_read_events(const json_t *list, struct job_view *view); /* an EventList, if it has any */
/* A TrainingJob; the view holds nothing before. @now_usec: realtime, for how long it has run */
void job_view_read_object(const json_t *value, struct job_view *view, uint64_t now_usec);

/* job_view_encode() - a new reference; NULL = no memory. */
json_t *job_view_encode(const struct job_view *view);
