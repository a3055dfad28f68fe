/* Options, one server on one loop, signals. */
#include "scheduler-extender/server/server_main.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_memory.h"
#include "io/log.h"
#include "io/loop.h"
#include "scheduler-extender/server/check.h"

static void write_log(void *userdata, int priority, const char *event, const char *text)
{
        log_write(userdata, priority, event, text);
}

static int run(const struct server_options *options, const struct server_main_kind *kind, struct err *err)
{
        sd_event *loop = NULL;
        void *server = NULL;
        int r = loop_new(&loop, err);

        if (r == 0)
                r = kind->open(loop, options, &server, err);
        if (r == 0) {
                (void) sd_notify(0, "READY=1");
                r = loop_run(loop);
                (void) sd_notify(0, "STOPPING=1");
                if (r < 0)
                        (void) err_set(err, r, "the event loop failed");
        }
        kind->close(server);
        sd_event_unref(loop);
        return r;
}

/* Requests and replies of megabytes come again and again: memory that went back to the kernel after each
 * would cost a page fault every 4 KiB. What is kept is little, and counted: the next request uses it. So do
 * objects of the store, of small blocks. */
static void keep_freed_memory(void)
{
        (void) mallopt(M_MMAP_THRESHOLD, 32 << 20);
        (void) mallopt(M_TRIM_THRESHOLD, 16 << 20);
        json_memory_keep();
}

int server_main(const struct option_program *program, const char *version, int argc, char **argv,
                struct server_options *options, const struct server_main_kind *kind)
{
        struct err err = { 0 };
        struct log log;
        size_t operands;
        int r;

        options_default(program, options);
        r = options_start(program, version, argc, argv, options, &operands, stdout, stderr);
        if (r >= 0)
                return r;
        log_init(&log, program->name, options->log_format, options->log_level);
        options->log = write_log;
        options->log_userdata = &log;
        keep_freed_memory();
        r = options->check != NULL ? check_running(options, &err) : run(options, kind, &err);
        json_memory_release();
        if (r < 0) {
                log_end(&log, err.msg);
                return exit_code_of(r);
        }
        return r;
}
