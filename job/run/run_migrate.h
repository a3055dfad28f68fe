/* Migrate: the health of the ranks' chips, and other chips for those that cannot be used any more. */
#pragma once

#include "job/run/run.h"

/* run_migrate_look() - a fact for every rank whose chip was lost or is there again. An inventory that cannot
 * be asked is no verdict. @spares: look for a stand-in for each that is lost, too; each spare chip is offered
 * once */
void run_migrate_look(struct run *run, bool spares);

/* run_migrate_fact() - @trouble: why the rank's chip cannot be used; NULL = it can. Pure. */
void run_migrate_fact(struct world *world, size_t rank, const char *trouble, uint64_t now_usec);

/* run_migrate_move() - the rank takes the chip that was offered; the others keep theirs. */
void run_migrate_move(struct run *run, size_t index);

/* run_migrate_leave_out() - the job goes on without a rank: its samples are counted, the ranks after it move
 * up. */
void run_migrate_leave_out(struct run *run, size_t rank);

/* run_migrate_do_without() - the plan has nothing for a rank: where its role is a range it is not added. */
bool run_migrate_do_without(struct run *run, size_t rank);
