/* Launch: from what was asked to a program that may be started: its table, its content, its environment. */
#pragma once

#include "base/err.h"
#include "io/log.h"
#include "job/launcher/environment.h"
#include "job/launcher/rank_file.h"
#include "job/spec/program_table.h"

struct launch_options {
        const struct log *log;
        const char *programs, *runtime, *socket, *rank_file;
        bool die_with_parent, dry_run;
        unsigned grace_seconds;
};

struct launch {
        struct program_table table;
        const struct program_table_row *program; /* in the table */
        char sha256[SHA256_HEX_BYTES];           /* "" when the table pins none */
        char **argv;                             /* path, the table's args, the caller's; borrowed strings */
        struct environment environment;
        struct rank_file_entry rank;
};

/* launch_prepare() - everything up to the start; logs what was not to be had (the agent).
 * @args: arg_count strings after `--`, borrowed
 * @found: the environment, as `environ`
 * Return: 0; or a negative errno, *err, and the exit code in *ret_exit_code. */
int launch_prepare(const struct launch_options *options, char *const *args, size_t arg_count,
                   char *const *found, struct launch *ret, int *ret_exit_code, struct err *err);
void launch_free(struct launch *launch);

/* launch_progress_fd() - the descriptor that REMUDA_PROGRESS names, or -1 (a path, or nothing). */
int launch_progress_fd(const struct launch *launch);
