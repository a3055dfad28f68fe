/* remuda-agent: serve, check the configuration, look once, or ask a vendor's library as its own child. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/agent.h"
#include "agent/agent_options.h"
#include "agent/leave.h"
#include "agent/probe/probe_child.h"
#include "base/exit_code.h"
#include "base/version.h"
#include "io/loop.h"

/* A root, a file or a word that the caller chose wrongly is a matter of usage. */
static int code_of(int error)
{
        return error == -ENOENT || error == -ENOTDIR ? EXIT_USAGE : exit_code_of(error);
}

struct serving {
        struct agent *agent; /* NULL = it is not there yet */
        sd_event *loop;
        sd_event_source *end; /* it leaves, and this is its end */
};

static void on_end(void *userdata)
{
        struct serving *s = userdata;

        (void) sd_event_exit(s->loop, 0);
}

/* Who asks twice is not kept waiting. */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct serving *s = userdata;

        (void) source;
        (void) info;
        (void) sd_notify(0, "STOPPING=1");
        if (s->agent == NULL || s->end != NULL || !leave_begin(s->agent) ||
            loop_after(s->loop, LEAVE_USEC, on_end, s, &s->end) < 0)
                on_end(s);
        return 0;
}

static int serve(const struct agent_options *options, struct err *err)
{
        struct serving s = { .agent = NULL };
        int r = loop_new_ending(on_signal, &s, &s.loop, err);

        if (r == 0)
                r = agent_new(s.loop, options, &s.agent, err);
        if (r == 0) {
                (void) sd_notify(0, "READY=1");
                r = loop_run(s.loop);
                (void) sd_notify(0, "STOPPING=1");
        }
        sd_event_source_disable_unref(s.end);
        agent_free(s.agent);
        (void) sd_event_unref(s.loop);
        return r;
}

static int run(const struct agent_options *options, struct err *err)
{
        char *json = NULL;
        int r;

        if (options->check_config) {
                r = agent_check_config(options, err);
                if (r == 0)
                        printf("%s: nothing is wrong with it\n",
                               options->config != NULL ? options->config : "no --config");
                return r;
        }
        if (!options->dry_run)
                return serve(options, err);
        r = agent_dry_run(options, &json, err);
        if (r == 0)
                puts(json);
        free(json);
        return r;
}

int main(int argc, char **argv)
{
        struct agent_options options = { 0 };
        struct err err = { 0 };
        struct log log;
        int r;

        if (argc > 1 && strcmp(argv[1], PROBE_CHILD_ARGUMENT) == 0)
                return probe_child_run(argc, argv);
        r = options_start(&agent_options_program, REMUDA_VERSION, argc, argv, &options, NULL, stdout, stderr);
        if (r >= 0)
                return r;
        r = run(&options, &err);
        if (r < 0) {
                log_init(&log, "remuda-agent", options.log_format, options.log_level);
                log_end(&log, err.msg);
                return code_of(r);
        }
        return r;
}
