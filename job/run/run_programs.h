/* Programs of a run: those of the program table, and the names that the SpeedTable knows them by.
 *
 * A run on this machine's own chips alone counts a script by its content, wherever it lies. With --store it
 * answers as the cluster does whose store it is, where nobody can read a script that lies in an image: there
 * the words count (ADR 0099). */
#pragma once

#include "job/run/run.h"

struct ledger;
struct ledger_program;

/* run_programs_words() - arguments as they count. @ret: to be freed, whatever became of it */
void run_programs_words(const struct run *run, char *const *words, size_t count, struct arguments *ret);

/* run_programs_say() - a copy of the run's job has its arguments as they count; borrowed. */
void run_programs_say(const struct run *run, struct job *copy);

/* run_programs_read() - each row of the table with its hash: the one it is pinned to, else what the file has;
 * "" where it cannot be read. To be freed; NULL = no memory. */
struct ledger_program *run_programs_read(const struct run *run, struct ledger *ledger);

/* run_programs_find() - what each rank starts, and its names.
 * Return: 0; -ENOENT, -EACCES, -EKEYREJECTED... with the row of the table and the remedy; -ENOMEM. */
int run_programs_find(struct run *run, struct err *err);
