/* The job controller inside the extender: what it is given, and when it may act. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/state.h"

static bool emergency_allowed(void *userdata, const char *namespace_)
{
        const struct extender *x = userdata;

        return cluster_allows_emergency(x->cluster, namespace_);
}

static bool leads(void *userdata)
{
        struct extender *x = userdata;

        return extender_refuses(x) == NULL && extender_is_leader(x);
}

static void evict(void *userdata, const struct ledger_pod *pod)
{
        reserve_evict(userdata, pod);
}

static void log_line(void *userdata, int priority, const char *event, const char *text)
{
        extender_log(userdata, priority, event, "%s", text);
}

static void leading_changed(void *userdata, bool leading)
{
        struct extender *x = userdata;

        (void) leading;
        controller_lead(x->jobs);
}

int jobs_open(struct extender *x, struct err *err)
{
        const struct extender_options *o = x->options;
        bool wanted = strcmp(o->jobs, "on") == 0 ||
                      (strcmp(o->jobs, "auto") == 0 && text_starts_with(o->store, "kubernetes"));
        struct controller_options options = {
                .cluster = x->cluster,
                .pods = { .launcher_image = o->launcher_image,
                          .job_image = o->job_image,
                          .scheduler_name = o->scheduler_name,
                          .programs = o->programs != NULL ? &x->settings.programs : NULL,
                          .grace_sec = o->eviction_grace_sec > 0 ? o->eviction_grace_sec : 1 },
                .keep_pods_sec = o->keep_pods_sec,
                .leads = leads,
                .emergency_allowed = emergency_allowed,
                .evict = o->no_evict ? NULL : evict,
                .log = log_line,
                .userdata = x,
        };

        int r = wanted ? controller_new(x->loop, &options, &x->jobs, err) : 0;

        if (r == 0 && wanted)
                r = extender_watch_leader(x, leading_changed, x);
        return r;
}
