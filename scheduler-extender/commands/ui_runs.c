/* Folders that are another than at the last look. */
#include "scheduler-extender/commands/ui_runs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/name_map.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/show/job_view.h"
#include "job/show/jobs.h"
#include "job/show/view_object.h"

#define LOOK_USEC UINT64_C(1000000)

struct run {
        struct name_map_entry entry;        /* key of the object; first: name_map.h */
        bool told, ended;                   /* as it was told last */
        struct jobs_folder_written written; /* when it was told of */
        bool of_store;                      /* whose object goes before */
        bool there;                         /* its folder, at this look */
};

struct ui_runs {
        const char *directory;
        void (*tell)(void *userdata, const char *key, const json_t *object);
        void *userdata;
        struct name_map runs;
        sd_event_source *every;
};

/* Return: is it told? One that is being written is, at the next look. */
static bool tell_run(struct ui_runs *runs, struct run *run, const char *name)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        json_t *object;

        if (jobs_folder_read(runs->directory, name, &views, &(struct err){ 0 }) < 0 || views.count != 1 ||
            (object = view_object_make(&views.items[0])) == NULL)
                return false;
        runs->tell(runs->userdata, run->entry.key, object);
        run->told = true;
        run->ended = job_view_ended(&views.items[0]);
        json_decref(object);
        return true;
}

static struct run *run_of(struct ui_runs *runs, const char *name)
{
        char key[300];

        return text_format(key, sizeof(key), JOBS_FOLDER_NAMESPACE "/%s", name)
                       ? (struct run *) name_map_make(&runs->runs, key, sizeof(struct run))
                       : NULL;
}

/* The lock is made anew at each start, and let go at the end. */
static void look_at(struct ui_runs *runs, const char *name)
{
        bool running = false;
        int r = jobs_folder_running(runs->directory, name, &running);
        struct jobs_folder_written now;
        struct run *run;

        if (r == -ENOENT || r == -ENOTDIR || (run = run_of(runs, name)) == NULL)
                return;
        run->there = true;
        if (run->of_store || r < 0)
                return;
        now = jobs_folder_written(runs->directory, name);
        if (run->told && running != run->ended && memcmp(&now, &run->written, sizeof(now)) == 0)
                return;
        if (tell_run(runs, run, name))
                run->written = now;
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
