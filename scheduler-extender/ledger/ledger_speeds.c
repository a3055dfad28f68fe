/* The ledger's speeds: a row for each (program, job model, device model). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "planner/speeds/speed_table.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

static bool is_same(const struct ledger_speed *a, const struct ledger_speed *b)
{
        return a->device == b->device && strcmp(a->job_model, b->job_model) == 0 &&
               strcmp(a->program, b->program) == 0;
}

int ledger_speeds_keep(struct ledger *ledger, const struct ledger_speed *speed)
{
        struct ledger_speed *grown;
        size_t i = 0;

        while (i < ledger->speed_count && !is_same(&ledger->speeds[i], speed))
                i++;
        if (i < ledger->speed_count) { /* it goes to the end: the one seen last stands there */
                memmove(&ledger->speeds[i], &ledger->speeds[i + 1],
                        (ledger->speed_count - i - 1) * sizeof(*speed));
                ledger->speeds[ledger->speed_count - 1] = *speed;
                return 0;
        }
        if (ledger->speed_count >= LEDGER_SPEEDS_MAX)
                return 0;
        grown = realloc(ledger->speeds, (ledger->speed_count + 1) * sizeof(*grown));
        if (grown == NULL)
                return -ENOMEM;
        ledger->speeds = grown;
        ledger->speeds[ledger->speed_count++] = *speed;
        return 0;
}

int ledger_speeds_add(struct ledger *ledger, const struct speed_table *table)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < table->count; i++) {
                const struct speed_table_row *row = &table->rows[i];
                struct ledger_speed speed = { .alpha_ms = row->alpha_ms,
                                              .beta_ms = row->beta_ms,
                                              .device = symbols_add(&ledger->symbols, row->device) };

                (void) text_copy(speed.job_model, sizeof(speed.job_model), row->model);
                (void) text_copy(speed.program, sizeof(speed.program),
                                 strcmp(row->program, "-") == 0 ? "" : row->program);
                r = ledger_speeds_keep(ledger, &speed);
        }
        return r;
}

const struct ledger_speed *ledger_speeds_find(const struct ledger *ledger, const char *program,
                                              const char *job_model, uint32_t device)
{
        enum speed_table_speaks best = SPEED_TABLE_NOT, speaks;
        const struct ledger_speed *ret = NULL;

        for (size_t i = device == 0 ? 0 : ledger->speed_count; i > 0 && best < SPEED_TABLE_SURELY; i--) {
                const struct ledger_speed *speed = &ledger->speeds[i - 1];

                if (speed->device != device || strcmp(speed->job_model, job_model) != 0)
                        continue;
                speaks = speed_table_speaks_of(speed->program, program);
                if (speaks > best) {
                        best = speaks;
                        ret = speed;
                }
        }
        return ret;
}

const char *ledger_speeds_program(const struct ledger *ledger, const struct job *job,
                                  const struct ledger_program *table, size_t count, const char *runtime)
{
        uint32_t symbol = symbols_find(&ledger->symbols, runtime, strlen(runtime));

        for (size_t i = 0; job != NULL && i < job->program_count; i++)
                if (job->programs[i].command_count > 0 && strcmp(job->programs[i].runtime, runtime) == 0)
                        return ""; /* a file of the job's own image */
        for (size_t i = 0; symbol != 0 && i < count; i++)
                if (table[i].runtime == symbol)
                        return table[i].sha256;
        return "";
}
