/* Command: a row of the table of `remuda`'s commands. One file a command; the table is command_table.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

/* A command below another: `shards` of `plan`. */
struct command_below {
        const char *name, *summary;
        const struct option_program *options;
};

struct command {
        const char *name;    /* "devices", "plan" */
        const char *summary; /* one line for `remuda --help` */
        int (*run)(int argc,
                   char **argv); /* argv[0] is the command's name. Return: an exit code of exit_code.h */
        const struct option_program *options;               /* what it takes; NULL: commands below it */
        bool (*below)(size_t i, struct command_below *ret); /* false: there are no i + 1; NULL = none */
};

extern const struct command commands[]; /* ends with name == NULL */
