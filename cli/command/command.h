/* Command: a row of the table of `remuda`'s commands. One file a command; the table is command_table.c. */
#pragma once

struct command {
        const char *name;    /* "devices", "plan" */
        const char *summary; /* one line for `remuda --help` */
        int (*run)(int argc,
                   char **argv); /* argv[0] is the command's name. Return: an exit code of exit_code.h */
};

extern const struct command commands[]; /* ends with name == NULL */
