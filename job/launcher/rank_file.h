/* Rank file: what `remuda run` (or the manager of a group) has decided for every rank of one MPI world, as
 * JSON.
 *
 *      {"ranks":[{"runtime":"cpu","environment":{"REMUDA_ROLE":"worker",...},
 *                 "stdout":PATH,"stderr":PATH,"report":PATH}, ...]}
 *
 * mpirun starts the same line for all ranks of a runtime; each launcher takes the entry of its rank. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/launcher/environment.h"

struct rank_file_entry {
        json_t *file; /* owned; the strings below are borrowed from it */
        const json_t *environment;
        const char *stdout_path, *stderr_path, *report_path; /* NULL = none */
};

/* rank_file_load() - the entry of a rank. @ret released with rank_file_free().
 * Return: 0; -ENOENT, -EACCES... (no such file); -EINVAL (not a rank file, or no such rank). */
int rank_file_load(const char *path, const char *rank, struct rank_file_entry *ret, struct err *err);
void rank_file_free(struct rank_file_entry *entry);

/* rank_file_apply() - add its variables to the environment of this program.
 * Return: 0; -EPERM: one that brings other code into a program (program_table_loads()), which the table does
 * not let through; -EINVAL, -E2BIG, -ENOMEM. */
int rank_file_apply(const struct rank_file_entry *entry, const struct program_table_row *program,
                    struct environment *environment, struct err *err);
