/* Extender host: the extender's options from the agent's, and its lines in the agent's log. */
#include "agent/extender_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/extender.h"

struct extender_host {
        struct log *log;
        struct extender_options options;
        struct extender *extender;
};

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        struct extender_host *h = userdata;

        if (strcmp(event, "listening") != 0) /* said below, in words that are not those of --listen */
                log_line(h->log, priority, "extender", "what=%s %s", event, text);
}

int extender_host_new(sd_event *loop, struct log *log, const struct agent_options *o,
                      struct extender_host **ret, struct err *err)
{
        struct extender_host *h;
        int r;

        if (o->extender == NULL)
                return 0;
        if (strcmp(o->store, "none") == 0)
                return err_set(err, -EINVAL,
                               "--extender needs a store to read: give --store dir:PATH or kubernetes");
        h = calloc(1, sizeof(*h));
        if (h == NULL)
                return err_set(err, -ENOMEM, "no memory for the extender");
        h->log = log;
        extender_options_default(&h->options);
        h->options.server.store = o->store;
        h->options.server.listen = o->extender;
        h->options.server.kubeconfig = o->kubeconfig;
        h->options.server.config = o->extender_config;
        h->options.server.log = on_log;
        h->options.server.log_userdata = h;
        r = extender_new(loop, &h->options, &h->extender, err);
        if (r < 0) {
                extender_host_free(h);
                return err_wrap(err, r, "--extender %s", o->extender);
        }
        log_line(log, LOG_INFO, "extender", "extender address=%s", extender_address(h->extender));
        *ret = h;
        return 0;
}

void extender_host_free(struct extender_host *h)
{
        if (h == NULL)
                return;
        extender_free(h->extender);
        free(h);
}
