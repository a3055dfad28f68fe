/* The job's own command, the program table, the nodes' word: the first that speaks of a runtime. */
#include "scheduler-extender/ledger/ledger_speeds.h"

#include <string.h>

const struct ledger_program *ledger_speeds_program_of(const struct ledger_program *programs, size_t count,
                                                      uint32_t runtime)
{
        for (size_t i = 0; i < count; i++)
                if (programs[i].runtime == runtime)
                        return &programs[i];
        return NULL;
}

/* What one node says counts, unless another says something else. */
static void note_reported(struct ledger_speeds_programs *programs, const struct ledger_node *node)
{
        for (uint32_t i = 0; i < node->program_count; i++) {
                const struct ledger_program *said = &node->programs[i];
                size_t k = 0;

                while (k < programs->reported_count && programs->reported[k].runtime != said->runtime)
                        k++;
                if (k == programs->reported_count && k < LEDGER_SPEEDS_PROGRAMS_MAX)
                        programs->reported[programs->reported_count++] = *said;
                else if (k < programs->reported_count &&
                         (strcmp(programs->reported[k].sha256, said->sha256) != 0 ||
                          strcmp(programs->reported[k].speed_name, said->speed_name) != 0))
                        programs->reported[k].sha256[0] = '\0';
        }
}

static const char *namespace_of(const struct job *job)
{
        return job->namespace_[0] != '\0' ? job->namespace_ : "default";
}

static const char *name_of(const struct ledger_program *row)
{
        return row->speed_name[0] != '\0' ? row->speed_name : row->sha256;
}

static void add_arguments(struct ledger_speeds_programs *programs, const struct job *job)
{
        const struct speed_table_words arguments = { job->args, job->arg_count };

        for (size_t i = 0; i < job->program_count; i++)
                speed_table_own(namespace_of(job), job->programs[i].image,
                                (struct speed_table_words){ job->programs[i].command,
                                                            job->programs[i].command_count },
                                arguments, programs->own[i]);
        speed_table_own(namespace_of(job), "", (struct speed_table_words){ 0 }, arguments,
                        programs->own[JOB_PROGRAMS_MAX]);
        for (size_t i = 0; i < programs->table_count && job->arg_count > 0; i++)
                speed_table_program(name_of(&programs->table[i]), job->args, job->arg_count,
                                    programs->with_arguments[i]);
        for (size_t i = 0; i < programs->reported_count && job->arg_count > 0; i++)
                speed_table_program(name_of(&programs->reported[i]), job->args, job->arg_count,
                                    programs->reported[i].speed_name);
}

void ledger_speeds_collect(struct ledger_speeds_programs *programs)
{
        const struct ledger *ledger = programs->ledger;
        const struct job *job = programs->job;

        programs->reported_count = 0;
        for (uint32_t i = 0; i < ledger->node_count && (programs->learning || ledger->speeds.count > 0); i++)
                note_reported(programs, ledger->nodes[i]);
        if (job != NULL)
                add_arguments(programs, job);
}

/* The job's own program of a runtime; program_count = it has none. */
static size_t own_program(const struct ledger_speeds_programs *programs, const char *runtime)
{
        size_t i = 0;

        while (i < programs->job->program_count && strcmp(programs->job->programs[i].runtime, runtime) != 0)
                i++;
        return i;
}

/* Who vouches for a runtime's program; NULL = nobody, or it is a file of the job's own image. */
static const struct ledger_program *vouched(const struct ledger_speeds_programs *programs,
                                            const char *runtime)
{
        uint32_t symbol = symbols_find(&programs->ledger->symbols, runtime, strlen(runtime));
        size_t own = programs->job == NULL ? 0 : own_program(programs, runtime);
        const struct ledger_program *row = NULL;

        if (symbol == 0 || (programs->job != NULL && own < programs->job->program_count &&
                            programs->job->programs[own].command_count > 0))
                return NULL;
        row = ledger_speeds_program_of(programs->table, programs->table_count, symbol);
        if (row == NULL)
                row = ledger_speeds_program_of(programs->reported, programs->reported_count, symbol);
        return row == NULL || row->sha256[0] == '\0' ? NULL : row;
}

const char *ledger_speeds_vouched(const struct ledger_speeds_programs *programs, const char *runtime)
{
        const struct ledger_program *row = vouched(programs, runtime);

        return row == NULL ? "" : row->sha256;
}

const char *ledger_speeds_program(const struct ledger_speeds_programs *programs, const char *runtime)
{
        const struct ledger_program *row = vouched(programs, runtime);
        size_t own;

        if (row != NULL && programs->job != NULL && programs->job->arg_count > 0 && row >= programs->table &&
            row < programs->table + programs->table_count)
                return programs->with_arguments[row - programs->table];
        if (row != NULL)
                return name_of(row);
        own = programs->job == NULL ? 0 : own_program(programs, runtime);
        return programs->job == NULL                ? ""
               : own < programs->job->program_count ? programs->own[own]
                                                    : programs->own[JOB_PROGRAMS_MAX];
}

void ledger_speeds_put(json_t *group, const struct chip_speed_figures *figures)
{
        static const char *const peaks[CHIP_SPEED_PEAKS] = { "tflopsBf16", "tflopsFp16", "tflopsFp32" };

        for (size_t p = 0; p < CHIP_SPEED_PEAKS; p++)
                if (figures->tflops[p] > 0)
                        (void) json_object_set_new(group, peaks[p], json_real(figures->tflops[p]));
        if (figures->estimated)
                (void) json_object_set_new(group, "estimated", json_true());
        if (figures->kernel_gflops > 0)
                (void) json_object_set_new(group, "measured",
                                           json_pack("{s:s, s:f}", "precision",
                                                     chip_speed_precision_names[figures->kernel_precision],
                                                     "gflops", figures->kernel_gflops));
}

const char *ledger_speeds_device(const struct symbols *symbols, const struct ledger_group *group)
{
        return symbols_name(symbols, group->model != 0 ? group->model : group->vendor);
}

struct chip_speed_member ledger_speeds_member(const struct ledger_speeds_programs *programs,
                                              const char *runtime, const struct ledger_group *group)
{
        return (struct chip_speed_member){
                .program = ledger_speeds_program(programs, runtime),
                .device = ledger_speeds_device(&programs->ledger->symbols, group),
                .figures = group->figures,
        };
}
