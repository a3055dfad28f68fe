/* Program table: which executable an administrator gives to each runtime.
 *
 * YAML (or JSON): `programs: {RUNTIME: {path, args: [], environment: [NAME...], inherit, sha256}}`. The path
 * is absolute, `args` come before the job's own, `environment` is an allow-list of variable names, which
 * `inherit: true` does without, `sha256` pins the file's content. Strict: an unknown field is an error, so
 * that a misspelt `sha256` cannot be silently ignored.
 *
 * In memory only; reading the file and checking a program on disk is agent/launch/program_file.h. The table
 * owns everything in it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sha256.h"
#include "job/spec/job_role.h"

#define PROGRAM_TABLE_PATH      "/etc/remuda/programs.yaml" /* unless another is named */
#define PROGRAM_TABLE_MAX_BYTES ((size_t) 1 << 20)
#define PROGRAM_TABLE_MAX       64 /* runtimes */
#define PROGRAM_ARGS_MAX        256
#define PROGRAM_ENVIRONMENT_MAX 256
#define PROGRAM_PATH_MAX_BYTES  4096

struct program_table_row {
        char runtime[JOB_RUNTIME_BYTES]; /* [a-z0-9-]+, "cuda" */
        char *path;                      /* absolute */
        char **args;                     /* arg_count strings and a NULL */
        size_t arg_count;
        char **environment; /* environment_count names and a NULL */
        size_t environment_count;
        bool inherits; /* every variable: who made the image that it lies in has also set them */
        char sha256[SHA256_HEX_BYTES]; /* lower case; "" = any content */
};

struct program_table {
        struct program_table_row *programs;
        size_t count;
};

/* program_table_decode() - read a table from the JSON value that yaml_parse() gives.
 * @ret: initialised by the call, released with program_table_free(); empty unless 0 is returned
 * Return: 0; -EINVAL and *err with field, value and remedy; -ENOMEM. */
int program_table_decode(const json_t *value, struct program_table *ret, struct err *err);

/* program_table_encode() - a table as it is read; a new reference, NULL when out of memory. */
json_t *program_table_encode(const struct program_table *table);

/* program_table_steers() - is this a variable of the dynamic loader or libc, by which other code comes into
 * any program: LD_*, GLIBC_*, GCONV_PATH? */
bool program_table_steers(const char *name);

/* program_table_loads() - is it one of them, or one by which a library that a program may have (OpenMP,
 * OpenCL, MPI's transports, a vendor's: vendor_loads()) loads a library of that name? */
bool program_table_loads(const char *name);

/* program_table_passes() - may a variable of this name reach the program from whoever starts it: is it
 * listed, or are all of them inherited? */
bool program_table_passes(const struct program_table_row *program, const char *name);

void program_table_free(struct program_table *table); /* accepts NULL */

/* program_table_find() - the program of a runtime, owned by the table; NULL if there is none. */
const struct program_table_row *program_table_find(const struct program_table *table, const char *runtime);
