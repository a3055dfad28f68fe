/* remuda-agent: serve, check the configuration, look once, or ask a vendor's library as its own child. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/agent.h"
#include "agent/agent_options.h"
#include "agent/probe/probe_child.h"
#include "base/exit_code.h"
#include "base/version.h"
#include "io/loop.h"

/* A root, a file or a word that the caller chose wrongly is a matter of usage. */
static int code_of(int error)
{
        return error == -ENOENT || error == -ENOTDIR ? EXIT_USAGE : exit_code_of(error);
}

static int serve(const struct agent_options *options, struct err *err)
{
        struct agent *agent = NULL;
        sd_event *loop = NULL;
        int r = loop_new(&loop, err);

        if (r == 0)
                r = agent_new(loop, options, &agent, err);
        if (r == 0) {
                (void) sd_notify(0, "READY=1");
                r = loop_run(loop);
                (void) sd_notify(0, "STOPPING=1");
        }
        agent_free(agent);
        (void) sd_event_unref(loop);
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
