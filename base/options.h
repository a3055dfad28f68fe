/* Options: one table owns the name, type, default, bounds and help of everything a program takes on its
 * command line. The parser, `--help` and tools/check-docs read the same rows.
 *
 * Pure: strings are borrowed from argv, the environment or the table, nothing is allocated. A row describes a
 * member of the program's own options struct, which the parser fills with the defaults first, then the
 * environment (where the program has a prefix), then the command line. `--name VALUE` and `--name=VALUE` are
 * the same, `--` ends the options, options and operands may be mixed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"

enum option_type {
        OPTION_STRING,   /* const char *; NULL when not given and without a default */
        OPTION_OPTIONAL, /* const char *; NULL when not given; --name alone is the default, or --name=VALUE */
        OPTION_CHOICE,   /* const char *; one of the words of `value`: "table|wide|json" */
        OPTION_BOOL,     /* bool: --name, --name=true, --name=false */
        OPTION_UNSIGNED, /* unsigned, min..max */
        OPTION_UINT64,   /* uint64_t, min..max */
        OPTION_DOUBLE,   /* double, min..max (as whole numbers); max == 0: any */
        OPTION_LIST,     /* struct option_list; may be given again and again */
};

#define OPTION_LIST_MAX 1024

struct option_list {
        const char *items[OPTION_LIST_MAX];
        size_t count;
};

struct option_spec {
        const char *name; /* "listen" is --listen; the table ends with name == NULL */
        char letter;      /* 'o' is -o; 0 = none */
        enum option_type type;
        size_t offset;             /* of the member in the program's options struct */
        const char *value;         /* what the value is called in --help: "ADDR:PORT"; NULL for bool */
        const char *default_;      /* as it would be typed; NULL = none */
        uint64_t minimum, maximum; /* of numbers; maximum 0 = the type's */
        const char *help;          /* at most a line */
};

struct option_program {
        const char *name;     /* "remuda-agent", "remuda devices" */
        const char *operands; /* "JOB.yaml", "[ID...]"; NULL = takes none */
        unsigned operands_min, operands_max;
        const char *summary; /* a sentence: what it does */
        const char
                *environment_prefix; /* "REMUDA_AGENT_": REMUDA_AGENT_LISTEN is --listen; NULL = not read */
        char ***environment;         /* &environ, beside a prefix: for options_start() */
        const char *after;           /* lines after the options: examples, `man` page; NULL */
        const struct option_spec *specs; /* ends with name == NULL */
};

enum { OPTIONS_E_HELP = 1, OPTIONS_E_VERSION };

/* options_parse() - fill *ret_options.
 * @argv: its operands are moved to the front: argv[1] .. argv[*ret_operands]
 * @environment: "NAME=value" strings ending with NULL, or NULL
 * Return: 0; OPTIONS_E_HELP or OPTIONS_E_VERSION when that was asked; -EINVAL with a sentence. */
int options_parse(const struct option_program *program, int argc, char **argv, char **environment,
                  void *ret_options, size_t *ret_operands, struct err *err);

/* options_find(), options_find_letter() - the row of --name or -letter, or NULL. */
const struct option_spec *options_find(const struct option_program *program, const char *name,
                                       size_t name_bytes);
const struct option_spec *options_find_letter(const struct option_program *program, char letter);

/* options_default() - every member as when nothing is given. */
void options_default(const struct option_program *program, void *ret_options);

/* options_called() - @name as who runs it has called it: "kubectl NAME" for a program that runs as
 * kubectl-NAME, kubectl's plugin. */
#define OPTIONS_CALLED_BYTES 80
void options_called(const char *name, char ret[OPTIONS_CALLED_BYTES]);

void options_help(const struct option_program *program, struct text *out);

/* options_start() - the usual beginning of a program or a command: parse what is given and what the
 * environment says, answer --help and --version on `out`, a mistake on `errors`.
 * @version: "0.1.0 (abc)"
 * Return: -1 = go on; otherwise the exit code to leave with (0, or EXIT_USAGE). */
int options_start(const struct option_program *program, const char *version, int argc, char **argv,
                  void *ret_options, size_t *ret_operands, FILE *out, FILE *errors);

/* options_end() - the usual end of a command: what went wrong on `errors`, "NAME: sentence".
 * Return: the exit code that goes with @r (base/exit_code.h). */
int options_end(const struct option_program *program, int r, const struct err *err, FILE *errors);
