/* `remuda jobs --watch`: the jobs of a store are kept as it tells them, those of a folder of `remuda run` are
 * read anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/name_map.h"
#include "cli/command/commands.h"
#include "cli/command/watching.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/kubernetes/kube_reach.h"
#include "store/store.h"

#define PATIENCE_USEC UINT64_C(20000000) /* for the first list */

struct jobs_watch {
        struct jobs_options *options;
        struct watching watching;
        struct store *store;
        struct name_map objects; /* of struct watched */
        sd_event_source *patience;
        bool synced;
        unsigned troubles; /* before the first list */
};

struct watched {
        struct name_map_entry entry; /* first: name_map.h */
        json_t *object;
};

static void forget(struct jobs_watch *w, struct watched *watched)
{
        name_map_remove(&w->objects, &watched->entry);
        json_decref(watched->object);
        free(watched);
}

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct jobs_watch *w = userdata;
        struct watched *watched = (struct watched *) name_map_find(&w->objects, key);

        (void) kind;
        if (object == NULL && watched != NULL) {
                forget(w, watched);
        } else if (object != NULL) {
                watched = (struct watched *) name_map_make(&w->objects, key, sizeof(*watched));
                if (watched == NULL) {
                        watching_end(&w->watching, -ENOMEM, "no memory for another job");
                        return;
                }
                json_decref(watched->object);
                watched->object = json_deep_copy(object);
        }
        if (w->synced)
                watching_changed(&w->watching);
}

static void synced(void *userdata, enum store_kind kind)
{
        struct jobs_watch *w = userdata;

        (void) kind;
        w->synced = true;
        w->patience = sd_event_source_disable_unref(w->patience);
        watching_changed(&w->watching);
}

/* Before the first list a second failure is the answer, as where jobs are listed once. */
static void trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct jobs_watch *w = userdata;
        int refusal = kube_reach_refusal(sentence);
        char says[256];

        (void) kind;
        (void) text_format(says, sizeof(says), "the API server: %.230s", sentence);
        if (!kube_reach_is_lost(sentence))
                (void) fprintf(stderr, "remuda jobs: %s\n", sentence);
        else if (w->synced)
                watching_trouble(&w->watching, says);
        else if (refusal < 0 || ++w->troubles >= 2)
                watching_end(&w->watching, refusal < 0 ? refusal : -EHOSTUNREACH, says);
}

static void on_impatience(void *userdata)
{
        struct jobs_watch *w = userdata;

        watching_end(&w->watching, -ETIMEDOUT, "the store has not told its jobs within 20 s");
}

static int read_store(const struct jobs_watch *w, struct job_view_list *views, struct err *err)
{
        const char *path = store_directory(w->options->store);
        int r;

        for (struct name_map_entry *e = name_map_first(&w->objects); e != NULL;
             e = name_map_next(&w->objects, e))
                jobs_store_add(w->options, NULL, ((const struct watched *) e)->object, views);
        if (jobs_place(w->options) == JOBS_KUBERNETES)
                return 0;
        r = jobs_folder_read(path, NULL, views, err); /* it may be the work folder of `remuda run`, too */
        return r == -ENOENT ? 0 : r;
}

static int look(void *userdata, struct err *err)
{
        struct jobs_watch *w = userdata;
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        int r = w->store != NULL ? read_store(w, &views, err) : jobs_read(w->options, NULL, &views, err);

        if (r < 0)
                return r;
        jobs_sort(&views);
        r = jobs_print_changed(w->options, &views);
        return r < 0 ? err_set(err, r, "no memory for the list") : 0;
}

static int open_store(struct jobs_watch *w, struct err *err)
{
        const struct store_options options = { .spec = w->options->store,
                                               .kubeconfig = w->options->kubeconfig,
                                               .kinds = 1u << STORE_TRAINING_JOB,
                                               .changed = changed,
                                               .synced = synced,
                                               .trouble = trouble,
                                               .userdata = w };
        int r = jobs_place(w->options) == JOBS_KUBERNETES ? kube_reach(w->options->kubeconfig, err) : 0;

        if (r == 0)
                r = loop_new(&w->watching.loop, err);
        if (r == 0)
                r = store_open(w->watching.loop, &options, &w->store, err);
        if (r == 0)
                r = loop_after(w->watching.loop, PATIENCE_USEC, on_impatience, w, &w->patience);
        return r;
}

static void close_store(struct jobs_watch *w)
{
        sd_event_source_disable_unref(w->patience);
        store_close(w->store);
        for (struct name_map_entry *e = name_map_first(&w->objects), *next; e != NULL; e = next) {
                next = name_map_next(&w->objects, e);
                forget(w, (struct watched *) e);
        }
        name_map_free(&w->objects);
        if (jobs_place(w->options) != JOBS_FOLDER)
                sd_event_unref(w->watching.loop);
}

int jobs_watch(struct jobs_options *options)
{
        static const char *const keys[] = { "NAMESPACE", "JOB", "namespace", "job", NULL };
        static const char *const ageing[] = {
                "TIME", "LEFT", "elapsed_seconds", "left_seconds", "seconds", "seconds_left", NULL
        };
        struct listing_watch rows = { .keys = keys, .ageing = ageing };
        bool polls = jobs_place(options) != JOBS_KUBERNETES; /* a folder of `remuda run` tells nobody */
        struct jobs_watch w = { .options = options,
                                .watching = { .program = &command_jobs_options,
                                              .listing = &options->listing,
                                              .look = look,
                                              .userdata = &w,
                                              .period_usec = polls ? WATCHING_PERIOD_USEC : 0,
                                              .waits = jobs_place(options) != JOBS_FOLDER,
                                              .rows = &rows } };
        struct err err = { 0 };
        int r = jobs_place(options) == JOBS_FOLDER ? 0 : open_store(&w, &err);

        r = r < 0 ? jobs_refuse("", r, &err) : watching_run(&w.watching);
        close_store(&w);
        return r;
}
