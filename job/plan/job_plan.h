/* Job plan: the groups of a TrainingJob's state, from the assignment of its roles (assignment.h)
 * and the cut of its batch (batch_cut.h, both of scheduler-extender/decide/), and how they change while it
 * runs. The first level of a job's subtasks. Pure but for the heap. */
#pragma once

#include "job/plan/job_state.h"
#include "scheduler-extender/decide/assignment.h"

/* job_plan() - place the whole job: fills @state's groups and notes; nothing else of it changes.
 * Return: 0; -EBUSY and *err, what is missing (it may fit later); -ENOMEM; -E2BIG (more device groups than a
 * manager takes); -ERANGE (the batch cannot be cut so). */
int job_plan(const struct open_groups_claim *claim, struct job_state *state, struct err *err);

/* job_plan_move() - put one group of a planned job on other chips: of its own model if there are some, since
 * that is what the plan was made for. Fills in the group; shares are cut anew if its model changed.
 * Return: 0; -EBUSY (there is no spare chip); -ENOMEM. */
int job_plan_move(const struct open_groups_claim *claim, struct job_state *state, size_t index,
                  struct err *err);

/* job_plan_may_leave() - may the job go on without this group? Its entry then still has minChips. */
bool job_plan_may_leave(const struct job *job, const struct job_state *state, size_t index);

/* job_plan_leave_out() - go on without a group: it is removed and the shares are cut anew. 0 or -ENOMEM. */
int job_plan_leave_out(const struct open_groups_claim *claim, struct job_state *state, size_t index,
                       struct err *err);

/* job_plan_networks() - take from the ledger what the groups' nodes say of their networks. */
void job_plan_networks(const struct ledger *ledger, struct job_state *state);

/* job_plan_split() - what the layers of a split are planned with, into state->split, by what the ledger has
 * now; nothing where they are not planned. 0, -ENOMEM; -ERANGE (as job_plan_share()). */
int job_plan_split(const struct batch_cut_job *job, struct job_state *state, struct err *err);

/* job_plan_share() - cut the batch over the groups by the speeds that the ledger has now. 0, -ERANGE (the
 * batch cannot be cut so), -ENOMEM. */
int job_plan_share(const struct batch_cut_job *job, struct job_state *state, struct err *err);
