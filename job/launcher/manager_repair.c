/* Who fails, hangs or is slow, and what follows: all is stopped, those who are lost may come back or be
 * replaced, and a new world begins from the last checkpoint with the shares cut for those who are there. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/launcher/manager.h"
#include "job/spec/job.h"
#include "planner/shards/shards.h"

#define GAIN_MIN        1.1     /* a new world costs seconds: less than a tenth is not worth them */
#define LAST_WORDS_USEC 1000000 /* of the groups, after mpirun's end */

/* --- the next world
 * ----------------------------------------------------------------------------------------------------- */

static bool is_there(const struct member *member)
{
        return member->join != NULL && !member->leaving;
}

static bool may_stand_in(const struct member *spare, const Subtask__Group *lost)
{
        return is_there(spare) && spare->plan->spare && !spare->plan->used &&
               subtask_is_server(spare->plan) == subtask_is_server(lost) &&
               strcmp(spare->plan->runtime, lost->runtime) == 0 && spare->plan->chips >= lost->chips;
}

/* Who is used: those of the plan that are there, and, with @spares, one for each that is not. Return: how
 * many lack. */
static size_t choose(struct manager *manager, bool spares)
{
        Subtask__Plan *plan = manager->plan;
        size_t lacking = 0;

        for (size_t i = 0; i < plan->n_groups; i++)
                plan->groups[i]->used = !plan->groups[i]->spare && is_there(&manager->members[i]);
        for (size_t i = 0; i < plan->n_groups; i++) {
                size_t spare = spares ? 0 : plan->n_groups;

                if (plan->groups[i]->spare || plan->groups[i]->used)
                        continue;
                while (spare < plan->n_groups && !may_stand_in(&manager->members[spare], plan->groups[i]))
                        spare++;
                lacking += spare == plan->n_groups;
                if (spare < plan->n_groups)
                        plan->groups[spare]->used = true;
        }
        return lacking;
}

static void say_changes(struct manager *manager)
{
        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];

                if (group->used && !manager->members[i].used_before && group->spare)
                        manager_event(manager, "Replaced", "group %s, a spare one, takes part now",
                                      group->name);
                else if (!group->used && manager->members[i].used_before)
                        manager_event(manager, "LeftOut", "the job goes on without group %s", group->name);
        }
}

static bool servers_are_there(const struct manager *manager)
{
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (subtask_is_server(manager->plan->groups[i]) && !manager->plan->groups[i]->spare &&
                    !manager->plan->groups[i]->used)
                        return false;
        return true;
}

static void begin_next_world(struct manager *manager)
{
        size_t lacking;

        lacking = choose(manager, true);
        if (lacking > 0 && (subtask_workers(manager->plan) < manager->plan->restart->min_chips ||
                            !servers_are_there(manager))) {
                manager_end(manager, MANAGER_FAILED, manager->fault.exit_code,
                            manager->fault.reason[0] == '\0' ? "GroupLost" : manager->fault.reason,
                            "%.300s; %zu of its groups are lost and %llu chips are fewer than the job can do "
                            "with",
                            manager->fault.message, lacking,
                            (unsigned long long) subtask_workers(manager->plan));
                return;
        }
        say_changes(manager);
        manager->plan->world++;
        manager_tell_parts(manager);
}

/* All that ran has stopped? Then either all are there, or those who lack are waited for. */
static void advance(struct manager *manager)
{
        uint64_t now = manager_now_usec(), patience = manager->plan->restart->rejoin_seconds * 1000000;

        if (manager->state != MANAGER_RESTARTING || manager->mpirun != 0)
                return;
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (manager->members[i].join != NULL && manager->members[i].stop_order != 0)
                        return;
        if (choose(manager, true) == 0 || now - manager->fault_usec >= patience)
                begin_next_world(manager);
        else
                manager_set_deadline(manager, manager->fault_usec + patience - now);
}

static void stop_all(struct manager *manager)
{
        manager_kill_mpirun(manager);
        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                struct rendezvous_order order = { .kind = ORDER_STOP };

                manager->members[i].ready = false;
                manager->members[i].subtask_order = 0;
                manager->members[i].stop_order =
                        manager->members[i].join == NULL ? 0 : member_order(&manager->members[i], &order);
        }
        manager->stop_due_usec = manager_now_usec() + STOP_SECONDS * 1000000ULL;
        manager_set_deadline(manager, STOP_SECONDS * 1000000ULL);
}

/* manager->fault is filled. */
static void repair(struct manager *manager)
{
        struct manager_fault *fault = &manager->fault;

        manager->evicting = false;
        if (!fault->reshard) {
                if (fault->final || manager->plan->restarts >= manager->plan->restart->max) {
                        manager_end(manager, MANAGER_FAILED, fault->exit_code, fault->reason, "%s%s",
                                    fault->message,
                                    fault->final || manager->plan->restart->max == 0
                                            ? ""
                                            : "; no restart is left");
                        return;
                }
                manager_event(manager, fault->reason, "%s", fault->message);
                manager->plan->restarts++;
                manager_event(manager, "Restarting", "restart %llu of %llu",
                              (unsigned long long) manager->plan->restarts,
                              (unsigned long long) manager->plan->restart->max);
        }
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                manager->members[i].used_before = manager->plan->groups[i]->used;
        manager->state = MANAGER_RESTARTING;
        manager->fault_usec = manager_now_usec();
        stop_all(manager);
        advance(manager);
}

static void fail(struct manager *manager, const char *reason, int exit_code)
{
        (void) text_copy(manager->fault.reason, sizeof(manager->fault.reason), reason);
        manager->fault.exit_code = exit_code;
        repair(manager);
}

/* --- judgement
 * ----------------------------------------------------------------------------------------------------------
 */

static size_t first_failed(const struct manager *manager)
{
        size_t first = manager->rank_count;

        for (size_t i = 0; i < manager->rank_count; i++)
                if (manager->ranks[i].ended && manager->ranks[i].exit_code != 0 &&
                    (first == manager->rank_count ||
                     manager->ranks[i].ended_usec < manager->ranks[first].ended_usec))
                        first = i;
        return first;
}

static void fail_rank(struct manager *manager, size_t index)
{
        const struct manager_rank *rank = &manager->ranks[index];
        struct manager_fault *fault = &manager->fault;

        /* a program that refuses its options or its data will refuse them again */
        fault->final = rank->exit_code == EXIT_USAGE || rank->exit_code == EXIT_NOT_FOUND ||
                       rank->exit_code == EXIT_NO_PERMISSION || rank->exit_code == 126 ||
                       rank->exit_code == 127;
        if (rank->exit_code > 128)
                (void) text_format(fault->message, sizeof(fault->message),
                                   "rank %zu of group %s was killed by signal %d (%s)", index,
                                   rank->member->plan->name, rank->exit_code - 128,
                                   strsignal(rank->exit_code - 128));
        else
                (void) text_format(fault->message, sizeof(fault->message),
                                   "rank %zu of group %s ended with exit code %d; its log says why", index,
                                   rank->member->plan->name, rank->exit_code);
        fail(manager, rank->exit_code > 128 ? "RankKilled" : "RankFailed", rank->exit_code);
}

static void fail_hung(struct manager *manager, size_t index)
{
        const struct manager_rank *rank = &manager->ranks[index];

        if (rank->seen.heard)
                (void) text_format(manager->fault.message, sizeof(manager->fault.message),
                                   "rank %zu of group %s has made no progress since step %llu", index,
                                   rank->member->plan->name, (unsigned long long) rank->seen.step);
        else
                (void) text_format(manager->fault.message, sizeof(manager->fault.message),
                                   "rank %zu of group %s hangs: it has not made one step", index,
                                   rank->member->plan->name);
        fail(manager, "RankHung", EXIT_FAILED);
}

static size_t find_hung(struct manager *manager)
{
        const Subtask__Plan *plan = manager->plan;
        uint64_t now = manager_now_usec();
        uint64_t steps = plan->samples == 0 ? 0
                                            : (plan->samples + plan->global_batch - 1) / plan->global_batch *
                                                      plan->epochs;
        const struct progress_limits limits = { .hang_usec = plan->restart->hang_seconds * 1000000,
                                                .last_step = steps > 1 ? steps - 1 : 0,
                                                .speaks = plan->restart->hang_seconds != JOB_HANG_SECONDS };
        size_t stopped = manager->rank_count, hung;

        for (size_t i = 0; i < manager->rank_count; i++) {
                manager->judged[i] = manager->ranks[i].seen;
                manager->judged[i].idle =
                        subtask_is_server(manager->ranks[i].member->plan) || manager->ranks[i].ended;
                if (stopped == manager->rank_count && manager->ranks[i].stopped)
                        stopped = i;
        }
        if (stopped == manager->rank_count)
                manager->stopped_since_usec = 0;
        else if (manager->stopped_since_usec == 0)
                manager->stopped_since_usec = now;
        else if (now - manager->stopped_since_usec > limits.hang_usec)
                return stopped;
        hung = progress_hung(&manager->progress, manager->judged, manager->rank_count, &limits, now);
        return hung < manager->rank_count && stopped < manager->rank_count ? stopped : hung;
}

/* What each worker's speed was seen to be, samples a millisecond. Return: false if one is not known. */
static bool seen_speeds(const struct manager *manager, double *speeds)
{
        for (size_t i = 0; i < manager->rank_count; i++) {
                const struct manager_rank *rank = &manager->ranks[i];

                if (subtask_is_server(rank->member->plan))
                        continue;
                if (rank->seen.usual_busy_ms <= 0 || rank->batch == 0)
                        return false;
                speeds[i] = (double) rank->batch / rank->seen.usual_busy_ms;
        }
        return true;
}

static double gain_of(const struct manager *manager, const double *speeds)
{
        size_t servers = manager->rank_count - subtask_workers(manager->plan),
               count = manager->rank_count - servers;
        CLEANUP(free_p) struct shard *shards = calloc(count, sizeof(*shards));
        double slowest = 0, next = 0;

        if (shards == NULL || subtask_share(manager->plan, speeds + servers, count,
                                            manager->plan->global_batch, shards, NULL) < 0)
                return 0;
        for (size_t i = 0; i < count; i++) {
                const struct progress_rank *seen = &manager->ranks[servers + i].seen;
                double ms = (double) shards[i].batch / speeds[servers + i];

                slowest = seen->usual_busy_ms > slowest ? seen->usual_busy_ms : slowest;
                next = ms > next ? ms : next;
        }
        return next > 0 ? slowest / next : 0;
}

/* The plan's speeds become those that were seen; of groups that do not run, in proportion. */
static bool adopt(struct manager *manager, const double *speeds)
{
        double before = 0, after = 0;

        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                Subtask__Group *group = manager->plan->groups[i];

                if (!group->used || subtask_is_server(group))
                        continue;
                if (group->chip_speeds == NULL)
                        group->chip_speeds = pb_arena_take(&manager->plan_arena,
                                                           group->chips * sizeof(*group->chip_speeds));
                if (group->chip_speeds == NULL)
                        return false;
                group->n_chip_speeds = group->chips;
                before += group->speed;
                group->has_speed = true;
                group->speed = 0;
                for (uint64_t k = 0; k < group->chips; k++) {
                        group->chip_speeds[k] = speeds[group->first_rank + k];
                        group->speed += group->chip_speeds[k];
                }
                after += group->speed;
        }
        manager->plan->batches_given = false;
        for (size_t i = 0; i < manager->plan->n_groups && before > 0; i++)
                if (!manager->plan->groups[i]->used)
                        manager->plan->groups[i]->speed *= after / before;
        return true;
}

static void judge_slow(struct manager *manager)
{
        CLEANUP(free_p) double *speeds = calloc(manager->rank_count, sizeof(*speeds));
        bool slow = false;
        double usual;
        size_t index;

        while ((index = progress_slow(manager->judged, manager->rank_count, &usual)) < manager->rank_count)
                manager_event(manager, "Straggler",
                              "rank %zu of group %s needs %.2f ms a step, the median of all is %.2f ms",
                              index, manager->ranks[index].member->plan->name,
                              manager->judged[index].step_busy_ms, usual);
        for (size_t i = 0; i < manager->rank_count; i++) {
                manager->ranks[i].seen.slow = manager->judged[i].slow;
                slow = slow || manager->judged[i].slow.named;
        }
        /* without a checkpoint all would begin again */
        if (!slow || speeds == NULL || !subtask_may_share_anew(manager->plan) ||
            manager->plan->n_resume_args == 0 ||
            !progress_may_reshard(manager->reshards, manager->reshard_usec, manager_now_usec()) ||
            !seen_speeds(manager, speeds) || gain_of(manager, speeds) < GAIN_MIN || !adopt(manager, speeds))
                return;
        manager->reshards++;
        manager->reshard_usec = manager_now_usec();
        manager_event(manager, "Resharding",
                      "the shares are cut anew by the speeds that are seen now, from the last checkpoint");
        manager->fault = (struct manager_fault){ .reason = "Resharding", .reshard = true };
        repair(manager);
}

static void note_resumed(struct manager *manager)
{
        uint64_t step = 0;

        if (manager->fault_usec == 0)
                return;
        for (size_t i = 0; i < manager->rank_count; i++) {
                if (!manager->ranks[i].seen.heard && !subtask_is_server(manager->ranks[i].member->plan))
                        return;
                step = manager->ranks[i].seen.step > step ? manager->ranks[i].seen.step : step;
        }
        manager_event(manager, "Resumed", "training goes on at step %llu, %.2f s after the fault was seen",
                      (unsigned long long) step, (double) (manager_now_usec() - manager->fault_usec) / 1e6);
        manager->fault_usec = 0;
}

static bool all_have_ended(const struct manager *manager)
{
        for (size_t i = 0; i < manager->rank_count; i++)
                if (!manager->ranks[i].ended)
                        return false;
        return true;
}

/* mpirun has ended: with the words of the ranks, if they have come, else with its own code. */
static void settle(struct manager *manager, bool now)
{
        size_t failed = first_failed(manager);

        if (manager->cancelled) {
                manager_end(manager, MANAGER_CANCELLED, manager->fault.exit_code, "Interrupted",
                            "cancelled by a signal");
        } else if (manager->evicting) {
                fail(manager, "Evicted", manager->fault.exit_code);
        } else if (manager->state == MANAGER_RUNNING && manager->exit_code == 0 &&
                   (now || all_have_ended(manager))) {
                manager_end(manager, MANAGER_SUCCEEDED, EXIT_DONE, "Completed", "every rank ended well");
        } else if (manager->exit_code != 0 && failed < manager->rank_count) {
                fail_rank(manager, failed);
        } else if (manager->exit_code != 0 && now) {
                (void) text_format(manager->fault.message, sizeof(manager->fault.message),
                                   "mpirun ended with exit code %d; its words are above", manager->exit_code);
                fail(manager, "WorldFailed", manager->exit_code);
        }
}

void manager_judge(struct manager *manager)
{
        size_t rank;

        if (manager->state != MANAGER_RUNNING || manager->ending)
                return;
        if (manager->mpirun == 0) {
                settle(manager, false);
                return;
        }
        if (manager->evicting) { /* mpirun itself would wait its whole time */
                if (all_have_ended(manager))
                        settle(manager, true);
                return;
        }
        rank = first_failed(manager);
        if (rank < manager->rank_count) {
                fail_rank(manager, rank);
                return;
        }
        rank = find_hung(manager);
        if (rank < manager->rank_count) {
                fail_hung(manager, rank);
                return;
        }
        note_resumed(manager);
        judge_slow(manager);
}

/* --- what happens
 * ------------------------------------------------------------------------------------------------------- */

void manager_on_mpirun_end(struct manager *manager, int exit_code)
{
        if (manager->state == MANAGER_RESTARTING) {
                advance(manager);
        } else if (manager->state == MANAGER_RUNNING) {
                manager->exit_code = exit_code;
                manager_set_deadline(manager, LAST_WORDS_USEC);
                settle(manager, false);
        }
}

void manager_on_stopped(struct manager *manager)
{
        advance(manager);
}

void manager_on_joined(struct manager *manager)
{
        if (manager->state == MANAGER_RESTARTING)
                advance(manager);
        else if (manager->state == MANAGER_WAITING && choose(manager, false) == 0)
                manager_tell_parts(manager);
}

void manager_lose(struct member *member)
{
        struct manager *manager = member->manager;

        bool runs = manager->state == MANAGER_STARTING ||
                    (manager->state == MANAGER_RUNNING && !manager->evicting &&
                     (manager->mpirun != 0 || manager->exit_code != 0)); /* else the world has ended well */

        if (runs && member->plan->used) {
                (void) text_format(manager->fault.message, sizeof(manager->fault.message), "group %s is gone",
                                   member->plan->name);
                manager->fault.final = false;
                fail(manager, "GroupLost", EXIT_FAILED);
                return;
        }
        if (member->leaving)
                manager_event(manager, "GroupLeft", "group %s has left", member->plan->name);
        else
                manager_event(manager, "GroupLost", "group %s is gone", member->plan->name);
        if (manager->state == MANAGER_RESTARTING)
                advance(manager);
}

void manager_evict(struct manager *manager, const struct member *member)
{
        if (manager->state != MANAGER_RUNNING || manager->evicting || !member->plan->used)
                return;
        manager->evicting = true;
        (void) text_format(manager->fault.message, sizeof(manager->fault.message),
                           "group %s was asked to end; all ranks were, and had %u s for a checkpoint",
                           member->plan->name, manager->options->grace_seconds);
        manager->fault.exit_code = 128 + 15;
        manager_order_all(manager, ORDER_TERMINATE, 0);
        manager_set_deadline(manager, manager->options->grace_seconds * 1000000ULL);
}

/* Groups that have not joined, or, once all have been told their parts, those that are not ready. */
static void end_without_groups(struct manager *manager)
{
        bool told = manager->state == MANAGER_STARTING;
        const char *first = "";
        size_t missing = 0;

        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];
                const struct member *member = &manager->members[i];

                if (told ? !group->used || member->ready : group->spare || is_there(member))
                        continue;
                manager_say(told ? "group %s has joined and did not answer within %u seconds"
                                 : "group %s did not come within %u seconds",
                            group->name, manager->options->wait_seconds);
                first = missing++ == 0 ? group->name : first;
        }
        if (told) {
                manager_end(manager, MANAGER_FAILED, EXIT_TIMED_OUT, "GroupsMissing",
                            "%zu groups have joined and did not answer within %u seconds (--wait-seconds), "
                            "%s first; see what its remuda-launch says, or wait longer",
                            missing, manager->options->wait_seconds, first);
                return;
        }
        manager_end(manager, MANAGER_FAILED, EXIT_TIMED_OUT, "GroupsMissing",
                    "not every group came within %u seconds (--wait-seconds): %zu did not, %s first; start "
                    "remuda-launch --join %s there, or wait longer",
                    manager->options->wait_seconds, missing, first, manager->address);
}

void manager_on_deadline(struct manager *manager)
{
        switch (manager->state) {
        case MANAGER_WAITING:
                if (choose(manager, true) == 0) {
                        manager_tell_parts(manager);
                        break;
                }
                __attribute__((fallthrough));
        case MANAGER_STARTING:
                end_without_groups(manager);
                break;
        case MANAGER_RUNNING:
                settle(manager, true);
                break;
        case MANAGER_RESTARTING:
                for (size_t i = 0;
                     i < manager->plan->n_groups && manager_now_usec() >= manager->stop_due_usec; i++)
                        manager->members[i].stop_order = 0; /* it has killed what it runs, or is not heard */
                advance(manager);
                break;
        case MANAGER_SUCCEEDED:
        case MANAGER_FAILED:
        case MANAGER_CANCELLED:
                break;
        }
}
