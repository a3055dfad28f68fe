/* Server main: a program that serves on one loop until it is told to end: its log, its exit codes, --check.
 */
#pragma once

#include <systemd/sd-event.h>

#include "scheduler-extender/server/server_options.h"

/* What is served. @options: the program's own, whose first member is its struct server_options. */
struct server_main_kind {
        int (*open)(sd_event *loop, const void *options, void **ret, struct err *err);
        void (*close)(void *server); /* accepts NULL */
};

/* server_main() - the whole of main(). @options: room for the program's options. Return: the exit code. */
int server_main(const struct option_program *program, const char *version, int argc, char **argv,
                struct server_options *options, const struct server_main_kind *kind);
