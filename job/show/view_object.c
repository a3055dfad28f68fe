/* A status, member by member. */
#include "job/show/view_object.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "job/show/jobs.h"

#define ENDED_MAX_SEC 1e12

static void set_word(json_t *object, const char *key, const char *word)
{
        if (word != NULL && word[0] != '\0')
                (void) json_object_set_new(object, key, json_string(word));
}

static void set_real(json_t *object, const char *key, double value)
{
        if (isfinite(value))
                (void) json_object_set_new(object, key, json_real(value));
}

static void set_integer(json_t *object, const char *key, double value)
{
        if (isfinite(value) && value >= 0 && value < 1e15)
                (void) json_object_set_new(object, key, json_integer((json_int_t) value));
}

/* A subtask of one rank has what an object tells by subtask. */
static json_t *subtask_of(const struct job_view_rank *rank, size_t number, const char *name)
{
        json_t *subtask = json_object(), *first = json_array_get(rank->layers, 0),
               *last = json_array_get(rank->layers, 1);
        char layers[32];

        set_word(subtask, "name", name);
        set_integer(subtask, "firstRank", (double) number);
        set_word(subtask, "group", rank->group);
        set_word(subtask, "state", rank->state);
        set_word(subtask, "speedSource", rank->speed_source);
        if (json_is_integer(first) && json_is_integer(last) &&
            text_format(layers, sizeof(layers), "%lld:%lld", json_integer_value(first),
                        json_integer_value(last)))
                set_word(subtask, "layers", layers);
        return subtask;
}

static void add_rank(const struct job_view_rank *view, size_t number, json_t *ranks, json_t *subtasks)
{
        json_t *rank = json_object();
        char name[32];

        (void) text_format(name, sizeof(name), "rank-%zu", number);
        set_integer(rank, "rank", (double) number);
        set_word(rank, "role", view->role);
        set_word(rank, "node", view->node);
        set_word(rank, "device", view->device_model != NULL ? view->device_model : view->device);
        set_word(rank, "runtime", view->runtime);
        set_word(rank, "subtask", name);
        set_real(rank, "weight", view->weight);
        set_real(rank, "samplesPerSecond", view->samples_per_s);
        set_integer(rank, "stepsBehind", view->steps_behind);
        (void) json_array_append_new(ranks, rank);
        (void) json_array_append_new(subtasks, subtask_of(view, number, name));
}

static json_t *progress_of(const struct job_view *view)
{
        json_t *progress = json_object();

        set_integer(progress, "step", view->step);
        set_integer(progress, "samples", view->samples);
        set_integer(progress, "samplesTotal", view->samples_total);
        set_real(progress, "secondsLeft", view->seconds_left);
        set_real(progress, "stepsBehindMean", view->steps_behind_mean);
        set_integer(progress, "stepsBehindMax", view->steps_behind_max);
        set_real(progress, "loss", view->loss);
        return progress;
}

static json_t *conditions_of(const struct job_view *view)
{
        json_t *conditions = json_array();

        for (size_t i = view->event_count > VIEW_OBJECT_EVENTS_MAX
                                ? view->event_count - VIEW_OBJECT_EVENTS_MAX
                                : 0;
             i < view->event_count; i++) {
                json_t *condition = json_object();

                set_word(condition, "type", view->events[i].reason);
                set_word(condition, "status", "True");
                set_word(condition, "lastTransitionTime", view->events[i].time);
                set_word(condition, "message", view->events[i].message);
                (void) json_array_append_new(conditions, condition);
        }
        return conditions;
}

/* When it began and, where that is known, when it ended: who is killed writes nothing. */
static void set_times(const struct job_view *view, json_t *status)
{
        char ended[TIMESTAMP_BYTES];
        uint64_t usec;

        set_word(status, "startTime", view->started);
        if (job_view_ended(view) && strcmp(job_view_word(view->reason), JOBS_FOLDER_KILLED) != 0 &&
            view->seconds >= 0 && view->seconds < ENDED_MAX_SEC &&
            timestamp_parse(job_view_word(view->started), &usec) == 0)
                set_word(status, "completionTime",
                         timestamp_format(usec + (uint64_t) (view->seconds * 1e6), ended));
}

json_t *view_object_make(const struct job_view *view)
{
        json_t *status = json_object(), *spec = json_object(), *ranks = json_array(),
               *subtasks = json_array();

        set_word(spec, "strategy", view->strategy);
        set_word(status, "phase", view->phase);
        set_word(status, "reason", view->reason);
        set_word(status, "message", view->message);
        set_times(view, status);
        set_real(status, "samplesPerSecond", view->samples_per_s);
        for (size_t i = 0; i < view->rank_count; i++)
                add_rank(&view->ranks[i], i, ranks, subtasks);
        (void) json_object_set_new(status, "progress", progress_of(view));
        (void) json_object_set_new(status, "ranks", ranks);
        (void) json_object_set_new(status, "subtasks", subtasks);
        (void) json_object_set_new(status, "conditions", conditions_of(view));
        return json_pack("{s:{s:s}, s:o, s:o}", "metadata", "name", view->job, "spec", spec, "status",
                         status);
}
