/* Finds what each rank starts, and names it for the SpeedTable. */
#include "job/run/run_programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger.h"

void run_programs_words(const struct run *run, char *const *words, size_t count, struct arguments *ret)
{
        char content[SHA256_HEX_BYTES];

        for (size_t i = 0; i < count; i++)
                arguments_add(ret, "%s",
                              run->options->store == NULL && program_file_script(words[i], content)
                                      ? content
                                      : words[i]);
}

void run_programs_say(const struct run *run, struct job *copy)
{
        copy->args = run->speed_args.list;
        copy->arg_count = run->speed_args.count;
}

/* The row's program with the row's arguments. */
static int name_row(const struct run *run, const struct program_table_row *row, const char *content,
                    char ret[SHA256_HEX_BYTES])
{
        struct arguments words = { 0 };

        run_programs_words(run, row->args, row->arg_count, &words);
        if (!words.failed)
                speed_table_program(content, words.list, words.count, ret);
        arguments_free(&words);
        return words.failed ? -ENOMEM : 0;
}

struct ledger_program *run_programs_read(const struct run *run, struct ledger *ledger)
{
        struct ledger_program *programs = calloc(run->table.count + 1, sizeof(*programs));

        for (size_t i = 0; programs != NULL && i < run->table.count; i++) {
                const struct program_table_row *row = &run->table.programs[i];

                programs[i].runtime = symbols_add(&ledger->symbols, row->runtime);
                (void) text_copy(programs[i].sha256, sizeof(programs[i].sha256), row->sha256);
                if (row->sha256[0] == '\0')
                        (void) program_file_check(row, programs[i].sha256, NULL);
                (void) name_row(run, row, programs[i].sha256, programs[i].speed_name);
        }
        return programs;
}

static int find_one(const struct run *run, struct run_rank *rank, struct err *err)
{
        int r = program_file_check(rank->program, rank->sha256, err);

        if (r < 0)
                return r;
        if (name_row(run, rank->program, rank->sha256, rank->speed_name) < 0)
                return err_set(err, -ENOMEM, "no memory for the programs");
        speed_table_program(rank->speed_name, run->speed_args.list, run->speed_args.count, rank->speed_name);
        return 0;
}

int run_programs_find(struct run *run, struct err *err)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];
                int r;

                rank->program = program_table_find(&run->table, rank->runtime);
                if (rank->program == NULL)
                        return err_set(err, -ENOENT,
                                       "the program table '%.200s' has no program for '%s', which rank %zu "
                                       "needs; add it below "
                                       "`programs:`",
                                       run->programs_path, rank->runtime, i);
                if (i > 0 && rank->program == run->ranks[i - 1].program) {
                        memcpy(rank->sha256, rank[-1].sha256, sizeof(rank->sha256));
                        memcpy(rank->speed_name, rank[-1].speed_name, sizeof(rank->speed_name));
                        continue;
                }
                r = find_one(run, rank, err);
                if (r < 0)
                        return r;
        }
        return 0;
}
