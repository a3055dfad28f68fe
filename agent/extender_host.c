#include "agent/extender_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "scheduler-extender/extender.h"

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        struct agent *a = userdata;

        if (strcmp(event, "listening") != 0) /* said below, in words that are not those of --listen */
                log_line(&a->log, priority, "extender", "what=%s %s", event, text);
}

int extender_host_open(struct agent *a, struct err *err)
{
        const struct agent_options *o = a->options;
        int r;

        if (o->extender == NULL)
                return 0;
        if (strcmp(o->store, "none") == 0)
                return err_set(err, -EINVAL,
                               "--extender needs a store to read: give --store dir:PATH or kubernetes");
        a->extender_options = calloc(1, sizeof(*a->extender_options));
        if (a->extender_options == NULL)
                return err_set(err, -ENOMEM, "no memory for the extender");
        extender_options_default(a->extender_options);
        a->extender_options->store = o->store;
        a->extender_options->listen = o->extender;
        a->extender_options->kubeconfig = o->kubeconfig;
        a->extender_options->config = o->extender_config;
        a->extender_options->log = on_log;
        a->extender_options->log_userdata = a;
        r = extender_new(a->loop, a->extender_options, &a->extender, err);
        if (r < 0)
                return err_wrap(err, r, "--extender %s", o->extender);
        log_line(&a->log, LOG_INFO, "extender", "extender address=%s", extender_address(a->extender));
        return 0;
}

void extender_host_close(struct agent *a)
{
        extender_free(a->extender);
        free(a->extender_options);
        a->extender = NULL;
        a->extender_options = NULL;
}
