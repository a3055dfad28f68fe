/* Ledger, whose speeds: which program a job starts on the chips of a runtime, as the SpeedTable knows it.
 *
 * In order: the row of the program table, what the nodes report; a command of the job's own, and what neither
 * vouches for, is known by the job's namespace, image and command (ADR 0093). The arguments of the row and of
 * the job are part of it (ADR 0099). Pure; collecting costs O(nodes), an answer O(programs). */
#pragma once

#include "job/spec/job.h"
#include "job/spec/program_table.h"
#include "scheduler-extender/ledger/ledger.h"

#define LEDGER_SPEEDS_PROGRAMS_MAX 16 /* runtimes of which nodes report a program's hash */

struct ledger_speeds_programs {
        const struct ledger *ledger;
        const struct job *job;              /* NULL = none */
        const struct ledger_program *table; /* the program table; borrowed */
        size_t table_count;
        struct ledger_program reported[LEDGER_SPEEDS_PROGRAMS_MAX]; /* by nodes; "" where they differ */
        size_t reported_count;
        /* rows of the table, with the job's arguments, where it has some */
        char with_arguments[PROGRAM_TABLE_MAX][SHA256_HEX_BYTES];
        bool learning; /* what nodes report is asked for even where no speed is known yet */
        char own[JOB_PROGRAMS_MAX + 1][SHA256_HEX_BYTES]; /* of each of the job's, then of the others */
};

/* ledger_speeds_collect() - the other members are set: fill in what the nodes report, and own names. */
void ledger_speeds_collect(struct ledger_speeds_programs *programs);

/* ledger_speeds_program() - the name of the program for a runtime: speed_table_program() where somebody
 * vouches for it, else "own:..."; "" = it is no job's. ledger_speeds_vouched() - its SHA-256; "" = nobody
 * vouches. */
const char *ledger_speeds_vouched(const struct ledger_speeds_programs *programs, const char *runtime);
const char *ledger_speeds_program(const struct ledger_speeds_programs *programs, const char *runtime);

/* ledger_speeds_program_of() - the row of a runtime (symbol), or NULL. */
const struct ledger_program *ledger_speeds_program_of(const struct ledger_program *programs, size_t count,
                                                      uint32_t runtime);

/* ledger_speeds_device() - the name of the group's chips in the SpeedTable: the model, without one the
 * vendor.
 */
const char *ledger_speeds_device(const struct symbols *symbols, const struct ledger_group *group);

/* ledger_speeds_put() - a chip's figures, as an inventory says them of a group. */
void ledger_speeds_put(json_t *group, const struct chip_speed_figures *figures);

/* ledger_speeds_member() - a chip of the group, with a program of this runtime on it. */
struct chip_speed_member ledger_speeds_member(const struct ledger_speeds_programs *programs,
                                              const char *runtime, const struct ledger_group *group);
