/* Jobs of a store: TrainingJobs with the status that the controller writes
 * (manifests/crds/trainingjobs.yaml). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/clock.h"
#include "job/show/jobs.h"
#include "store/kubernetes/kube_reach.h"
#include "store/store_once.h"

struct loading {
        struct store_once once;
        const struct jobs_options *options;
        const char *name; /* or NULL */
        struct job_view_list *views;
        unsigned troubles;
};

void jobs_store_add(const struct jobs_options *options, const char *name, const json_t *object,
                    struct job_view_list *views)
{
        struct job_view *view = job_view_list_add(views);

        if (view == NULL)
                return;
        job_view_read_object(object, view, clock_realtime_usec());
        job_view_set(&view->source, jobs_place(options) == JOBS_KUBERNETES ? "kubernetes" : "dir");
        if ((name != NULL && strcmp(job_view_word(view->job), name) != 0) ||
            (!options->all_namespaces && strcmp(job_view_word(view->namespace_), options->namespace_) != 0))
                job_view_list_drop_last(views);
}

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        const struct loading *l = userdata;

        (void) kind;
        (void) key;
        if (object != NULL)
                jobs_store_add(l->options, l->name, object, l->views);
}

static void synced(void *userdata, enum store_kind kind)
{
        struct loading *l = userdata;

        (void) kind;
        store_once_answered(&l->once, 0, "");
}

/* Of a directory it is one file of several. Of a cluster there is one list, and a second failure is its
 * answer. */
static void trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct loading *l = userdata;
        char says[256];

        (void) kind;
        (void) text_copy(l->once.failure, sizeof(l->once.failure), sentence);
        (void) text_format(says, sizeof(says), "the API server: %.230s", sentence);
        if (jobs_place(l->options) != JOBS_KUBERNETES || strstr(sentence, "knows no") != NULL)
                (void) fprintf(stderr, "remuda jobs: %s\n", sentence);
        else if (kube_reach_refusal(sentence) < 0)
                store_once_answered(&l->once, kube_reach_refusal(sentence), says);
        else if (++l->troubles >= 2)
                store_once_answered(&l->once, -EHOSTUNREACH, says);
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
        int r = store_once_open(&l.once, &store_options, err);

        return r < 0 ? r : store_once_wait(&l.once, err);
}
