/* Speeds: the SpeedTable of a run, of --store or of the work folder. */
#pragma once

#include "job/run/run.h"

struct ledger;
struct ledger_program;

/* run_speeds_find() - the workers' speeds, as they are known before the job runs (chip_speed.h).
 * Return: were all measured so well that it need not be done again?
 * run_speeds_remark() - an event for what somebody has to know of them.
 * run_speeds_saw() - one's is seen to be alpha + beta b ms. */
bool run_speeds_find(struct run *run);
void run_speeds_remark(struct run *run);
void run_speeds_saw(struct run_rank *rank, double alpha_ms, double beta_ms);

/* run_speeds_refine() - what the workers' steps took since the last call goes into the table.
 * @batches: that a worker has to have computed since: fewer say too little */
#define RUN_SPEEDS_BATCHES      10 /* of which the first ones are slow, too */
#define RUN_SPEEDS_BATCHES_LIVE 3  /* by which new shares are cut */
void run_speeds_refine(struct run *run, uint64_t batches);

/* run_speeds_keep() - so do observations; a table that cannot be written is an event. */
void run_speeds_keep(struct run *run, const struct speed_table_observation *observations, size_t count);

/* run_speeds_place() - what `fastest` goes by: the rows of the table become the ledger's; @ret_programs: the
 * table of programs with its hashes, to be freed; NULL = there are no rows, or no memory. */
void run_speeds_place(const struct run *run, struct ledger *ledger, struct ledger_program **ret_programs);
