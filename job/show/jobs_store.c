/* Jobs of a store: TrainingJobs with the status that the controller writes
 * (manifests/crds/trainingjobs.yaml). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/store.h"

#define LOAD_USEC (20 * UINT64_C(1000000))

struct loading {
        sd_event *loop;
        const struct jobs_options *options;
        const char *name; /* or NULL */
        struct job_view_list *views;
        bool synced;
        int error; /* an API server that will not answer, now or later */
        unsigned troubles;
        char trouble[256];
};

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        const struct loading *l = userdata;
        struct job_view *view = object == NULL ? NULL : job_view_list_add(l->views);

        (void) kind;
        (void) key;
        if (view == NULL)
                return;
        job_view_read_object(object, view, clock_realtime_usec());
        job_view_set(&view->source, jobs_place(l->options) == JOBS_KUBERNETES ? "kubernetes" : "dir");
        if ((l->name != NULL && strcmp(job_view_word(view->job), l->name) != 0) ||
            (!l->options->all_namespaces &&
             strcmp(job_view_word(view->namespace_), l->options->namespace_) != 0))
                job_view_list_drop_last(l->views);
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

int jobs_store_read(const struct jobs_options *options, const char *name, struct job_view_list *views,
                    struct err *err)
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
