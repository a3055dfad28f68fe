/* Job plan: on which device groups of which nodes a TrainingJob runs, and how much of each batch every group
 * takes. The first level of a job's subtasks.
 *
 *      job + ledger -> groups that fit (scheduler-extender/decide/rules.h judges) -> placement -> speeds ->
 * shares
 *
 * Where an entry of workers leaves room (minChips < chips), the least is placed first and chips beyond it are
 * added only if a step gets shorter. All of a job is placed, or nothing. Speeds are measured ones of the
 * job's program and model (ledger_find_speed()) when every chip has one, else the device table's, else all
 * chips are taken to be alike; the shares are exact for them (planner/shards/shards.h). Pure but for the
 * heap. O(entries x groups log groups + ranks log (ranks batch)). */
#pragma once

#include "job/plan/job_state.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger.h"

struct job_plan_question {
        const struct ledger *ledger;
        const struct rules *rules;
        const struct job *job;
        const struct ledger_job
                *ledger_job; /* its lease and pods do not count as taken; NULL = it has none */
        bool emergency;      /* urgency: emergency, and its namespace may say so */
        bool take_back;      /* chips that borrowers of the reserve hold count as free (emergencies) */
        uint64_t now_usec;   /* CLOCK_REALTIME */
        const struct ledger_program *programs; /* the program table: whose speeds count; may be NULL */
        size_t program_count;
};

/* job_plan() - place the whole job: fills @state's groups and notes; nothing else of it changes.
 * Return: 0; -EBUSY and *err, what is missing (it may fit later); -ENOMEM; -E2BIG (more device groups than a
 * manager takes). */
int job_plan(const struct job_plan_question *question, struct job_state *state, struct err *err);

/* job_plan_move() - put one group of a planned job on other chips: of its own model if there are some, since
 * that is what the plan was made for. Fills in the group; shares are cut anew if its speed changed.
 * Return: 0; -EBUSY (there is no spare chip); -ENOMEM. */
int job_plan_move(const struct job_plan_question *question, struct job_state *state, size_t group,
                  struct err *err);

/* job_plan_may_leave() - may the job go on without this group? Its entry then still has minChips. */
bool job_plan_may_leave(const struct job *job, const struct job_state *state, size_t group);

/* job_plan_leave_out() - go on without a group: it is removed and the shares are cut anew. 0 or -ENOMEM. */
int job_plan_leave_out(const struct job_plan_question *question, struct job_state *state, size_t group,
                       struct err *err);

/* job_plan_share() - cut the batch over the groups by the speeds that the ledger has now. 0, -ERANGE (the
 * batch cannot be cut so), -ENOMEM. */
int job_plan_share(const struct job_plan_question *question, struct job_state *state, struct err *err);

/* job_role_takes() - does a device group of the ledger match every selector of a role? */
bool job_role_takes(const struct job_role *role, const struct symbols *symbols,
                    const struct ledger_group *group);
