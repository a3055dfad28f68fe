/* Ledger, its speeds: how long a step takes of a program that trains a model of a job on a device model.
 *
 * A row for each (program, job model, device model); the one seen last stands at the end. Pure but for the
 * heap. A look-up costs O(rows). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

struct speed_table; /* planner/speeds/speed_table.h */

#define LEDGER_SPEEDS_MAX 4096

/* A step of b samples takes alpha + beta b ms. */
struct ledger_speed {
        char program[65]; /* SHA-256 of its file; "" = not known */
        char job_model[64];
        uint32_t device; /* symbol of the device model */
        double alpha_ms, beta_ms;
};

/* ledger_speeds_keep() - a new row, or what its key has from now on; past LEDGER_SPEEDS_MAX it is dropped.
 * ledger_speeds_add() - all rows of a SpeedTable. Return: 0 or -ENOMEM. */
int ledger_speeds_keep(struct ledger *ledger, const struct ledger_speed *speed);
int ledger_speeds_add(struct ledger *ledger, const struct speed_table *table);

/* ledger_speeds_find() - the row that speaks of this program (speed_table_speaks_of()). NULL = none. */
const struct ledger_speed *ledger_speeds_find(const struct ledger *ledger, const char *program,
                                              const char *job_model, uint32_t device);

/* ledger_speeds_program() - of the program that a job starts for a runtime: "" = not known (a command of the
 * job's own image, a row that pins none, no row), else the table's. */
const char *ledger_speeds_program(const struct ledger *ledger, const struct job *job,
                                  const struct ledger_program *table, size_t count, const char *runtime);
