/* Launch programs: the program table as the launch API knows it: what it may answer with, the hash of each
 * program's file, and the counts of what was asked and came of it. Owned by the launch API. */
#pragma once

#include <sys/stat.h>
#include <time.h>

#include "agent/inventory/inventory.h"
#include "base/text.h"
#include "io/log.h"
#include "job/spec/program_table.h"

enum launch_programs_result {
        LAUNCH_PROGRAMS_ANSWERED,
        LAUNCH_PROGRAMS_REFUSED,
        LAUNCH_PROGRAMS_STARTED,
        LAUNCH_PROGRAMS_FINISHED,
        LAUNCH_PROGRAMS_FAILED,
        LAUNCH_PROGRAMS_RESULT_COUNT
};

struct launch_programs {
        struct program_table table;
        struct launch_programs_known { /* what is counted and hashed of one runtime's program */
                char runtime[JOB_RUNTIME_BYTES];
                char sha256[SHA256_HEX_BYTES]; /* of its file on this node; "" = not read, or not good */
                dev_t dev;
                ino_t ino;
                struct timespec changed;
                uint64_t results[LAUNCH_PROGRAMS_RESULT_COUNT];
        } known[PROGRAM_TABLE_MAX + 1]; /* the last is for runtimes without a program */
        size_t known_count;
};

/* launch_programs_load() - read the table (again) and hash what it names. A table with a mistake leaves the
 * one before.
 * @path: NULL or one that is not there = no programs, unless @required */
void launch_programs_load(struct launch_programs *programs, const char *path, bool required, struct log *log);
void launch_programs_free(struct launch_programs *programs);

/* launch_programs_find() - the row of a runtime; NULL and an error's sentence when there is none. Borrowed.
 */
const struct program_table_row *launch_programs_find(const struct launch_programs *programs,
                                                     const char *runtime, struct err *err);

/* launch_programs_check() - is the program here, and what the table says? Its file is read again only when it
 * is another one. Return: 0 or the errors of program_file_check(). */
int launch_programs_check(struct launch_programs *programs, const struct program_table_row *program,
                          struct err *err);

/* launch_programs_sha256() - of the file that was checked; "" when there is none. Borrowed. */
const char *launch_programs_sha256(struct launch_programs *programs, const char *runtime);

void launch_programs_count(struct launch_programs *programs, const char *runtime,
                           enum launch_programs_result result);

/* launch_programs_fill() - tell the programs that this node can start. */
void launch_programs_fill(const struct launch_programs *programs, struct inventory *inventory);

void launch_programs_metrics(const struct launch_programs *programs,
                             struct text *page); /* NULL = no launch API */
