/* Views of folders, turned into objects. */
#include "scheduler-extender/commands/ui_runs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/name_map.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/loop.h"
#include "job/show/job_view.h"
#include "job/show/jobs.h"

#define LOOK_USEC     UINT64_C(1000000)
#define KEY_NAMESPACE "default/"
#define EVENTS_MAX    64 /* the last of a job */
#define ENDED_MAX_SEC 1e12

struct run {
        struct name_map_entry entry; /* key of the object; first: name_map.h */
        bool told, ended;            /* as it was told last */
        struct ui_runs_written {     /* when that was written which it was told of */
                struct timespec lock, state, events;
        } written;
        bool of_store; /* whose object goes before */
        bool there;    /* its folder, at this look */
};

struct ui_runs {
        const char *directory;
        void (*tell)(void *userdata, const char *key, const json_t *object);
        void *userdata;
        struct name_map runs;
        sd_event_source *every;
};

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

        for (size_t i = view->event_count > EVENTS_MAX ? view->event_count - EVENTS_MAX : 0;
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
        if (job_view_ended(view) && strcmp(job_view_word(view->reason), "Killed") != 0 &&
            view->seconds >= 0 && view->seconds < ENDED_MAX_SEC &&
            timestamp_parse(job_view_word(view->started), &usec) == 0)
                set_word(status, "completionTime",
                         timestamp_format(usec + (uint64_t) (view->seconds * 1e6), ended));
}

static json_t *object_of(const struct job_view *view)
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

/* One that is being written is told of at the next look. */
static void tell_run(struct ui_runs *runs, struct run *run, const char *name)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        json_t *object = NULL;

        if (jobs_folder_read(runs->directory, name, &views, &(struct err){ 0 }) < 0 || views.count != 1)
                return;
        object = object_of(&views.items[0]);
        if (object == NULL)
                return;
        runs->tell(runs->userdata, run->entry.key, object);
        run->told = true;
        run->ended = job_view_ended(&views.items[0]);
        json_decref(object);
}

static struct run *run_of(struct ui_runs *runs, const char *name)
{
        char key[300];

        return text_format(key, sizeof(key), KEY_NAMESPACE "%s", name)
                       ? (struct run *) name_map_make(&runs->runs, key, sizeof(struct run))
                       : NULL;
}

static struct timespec written(const struct ui_runs *runs, const char *name, const char *file)
{
        struct stat st = { .st_mtim = { 0 } };
        char path[PATH_MAX];

        if (text_format(path, sizeof(path), "%s/%s/%s", runs->directory, name, file))
                (void) lstat(path, &st);
        return st.st_mtim;
}

static struct ui_runs_written written_of(const struct ui_runs *runs, const char *name)
{
        struct ui_runs_written w;

        memset(&w, 0, sizeof(w)); /* it is compared as bytes */
        w.lock = written(runs, name, "lock");
        w.state = written(runs, name, "state.json");
        w.events = written(runs, name, "events.jsonl");
        return w;
}

/* The lock is made anew at each start, and let go at the end. */
static void look_at(struct ui_runs *runs, const char *name)
{
        bool running = false;
        int r = jobs_folder_running(runs->directory, name, &running);
        struct ui_runs_written now;
        struct run *run;

        if (r == -ENOENT || r == -ENOTDIR || (run = run_of(runs, name)) == NULL)
                return;
        run->there = true;
        if (run->of_store || r < 0)
                return;
        now = written_of(runs, name);
        if (run->told && running != run->ended && memcmp(&now, &run->written, sizeof(now)) == 0)
                return;
        run->written = now;
        tell_run(runs, run, name);
}

static void forget_gone(struct ui_runs *runs)
{
        struct name_map_entry *e = name_map_first(&runs->runs), *next;

        for (; e != NULL; e = next) {
                struct run *run = (struct run *) e;

                next = name_map_next(&runs->runs, e);
                if (run->there || run->of_store) {
                        run->there = false;
                        continue;
                }
                if (run->told)
                        runs->tell(runs->userdata, e->key, NULL);
                name_map_remove(&runs->runs, e);
                free(e);
        }
}

static void look(void *userdata)
{
        struct ui_runs *runs = userdata;
        DIR *folder = opendir(runs->directory);
        const struct dirent *entry;

        if (folder == NULL && errno != ENOENT)
                return; /* it cannot be read now */
        while (folder != NULL && (entry = readdir(folder)) != NULL)
                look_at(runs, entry->d_name);
        if (folder != NULL)
                (void) closedir(folder);
        forget_gone(runs);
}

void ui_runs_observed(struct ui_runs *runs, const char *key, const json_t *object)
{
        struct run *run = runs == NULL ? NULL : (struct run *) name_map_find(&runs->runs, key);

        if (run == NULL && runs != NULL && object != NULL)
                run = (struct run *) name_map_make(&runs->runs, key, sizeof(*run));
        if (run == NULL)
                return;
        run->of_store = object != NULL;
        run->told = false;
}

int ui_runs_new(sd_event *loop, const char *directory,
                void (*tell)(void *userdata, const char *key, const json_t *object), void *userdata,
                struct ui_runs **ret)
{
        struct ui_runs *runs = calloc(1, sizeof(*runs));
        int r;

        if (runs == NULL)
                return -ENOMEM;
        runs->directory = directory;
        runs->tell = tell;
        runs->userdata = userdata;
        r = loop_every(loop, 0, LOOK_USEC, look, runs, &runs->every);
        if (r < 0) {
                ui_runs_free(runs);
                return r;
        }
        *ret = runs;
        return 0;
}

void ui_runs_free(struct ui_runs *runs)
{
        struct name_map_entry *e;

        if (runs == NULL)
                return;
        sd_event_source_disable_unref(runs->every);
        while ((e = name_map_first(&runs->runs)) != NULL) {
                name_map_remove(&runs->runs, e);
                free(e);
        }
        name_map_free(&runs->runs);
        free(runs);
}
