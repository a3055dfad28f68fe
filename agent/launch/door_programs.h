/* Door programs: the program table as the launch door knows it: what it may answer with, the hash of each
 * program's file, and the counts of what was asked and came of it. Owned by the door. */
#pragma once

#include <sys/stat.h>
#include <time.h>

#include "agent/inventory/device.h"
#include "base/text.h"
#include "io/log.h"
#include "job/spec/program_table.h"

enum door_result { DOOR_ANSWERED, DOOR_REFUSED, DOOR_STARTED, DOOR_FINISHED, DOOR_FAILED, DOOR_RESULT_COUNT };

struct door_programs {
        struct program_table table;
        struct known { /* what is counted and hashed of one runtime's program */
                char runtime[PROGRAM_RUNTIME_BYTES];
                char sha256[SHA256_HEX_BYTES]; /* of its file on this node; "" = not read, or not good */
                dev_t dev;
                ino_t ino;
                struct timespec mtime;
                uint64_t results[DOOR_RESULT_COUNT];
        } known[PROGRAM_TABLE_MAX + 1]; /* the last is for runtimes without a program */
        size_t known_count;
};

/* door_programs_load() - read the table (again) and hash what it names. A table with a mistake leaves the one
 * before.
 * @path: NULL or one that is not there = no programs, unless @required */
void door_programs_load(struct door_programs *programs, const char *path, bool required, struct log *log);
void door_programs_free(struct door_programs *programs);

/* door_programs_find() - the row of a runtime; NULL and an error's sentence when there is none. Borrowed. */
const struct program *door_programs_find(const struct door_programs *programs, const char *runtime,
                                         struct err *err);

/* door_programs_check() - is the program here, and what the table says? Its file is read again only when it
 * is another one. Return: 0 or the errors of program_file_check(). */
int door_programs_check(struct door_programs *programs, const struct program *program, struct err *err);

/* door_programs_sha256() - of the file that was checked; "" when there is none. Borrowed. */
const char *door_programs_sha256(struct door_programs *programs, const char *runtime);

void door_programs_count(struct door_programs *programs, const char *runtime, enum door_result result);

/* door_programs_fill() - tell the programs that this node can start. */
void door_programs_fill(const struct door_programs *programs, struct inventory *inventory);

void door_programs_metrics(const struct door_programs *programs, struct text *page); /* NULL = no door */
