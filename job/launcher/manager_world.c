/* The parts of a world, and mpirun's command line and environment over the groups that take part. */
#include "job/launcher/manager_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "io/private_folder.h"
#include "job/launcher/guard.h"
#include "job/launcher/manager_members.h"
#include "job/launcher/manager_state.h"
#include "job/launcher/supervise.h"
#include "job/plan/launch_levels.h"
#include "job/plan/mpirun_line.h"
#include "job/plan/stages/stage_message.h"
#include "job/world/recut.h"
#include "job/world/resplit.h"

/* The world knows which layers its ranks hold, and what is planned for them. */
static int lay_out_split(struct manager *manager, struct err *err)
{
        const Subtask__Plan *plan = manager->plan;
        CLEANUP(free_p) size_t *first = calloc(plan->world_size + 1, sizeof(*first));
        bool staged = subtask_has_stages(plan);
        size_t next = 0, end = 0;
        int r = 0;

        if (first == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        if (staged && !(manager->split_kept && manager->split.problem.worker_count == plan->world_size))
                r = stage_message_read(plan, &manager->split, err);
        for (size_t i = 0; staged && i < plan->n_groups; i++)
                for (size_t k = 0; plan->groups[i]->used && k < plan->groups[i]->n_stages; k++) {
                        first[next++] = plan->groups[i]->stages[k]->first;
                        end = plan->groups[i]->stages[k]->last + 1;
                }
        staged = staged && end == manager->split.problem.layer_count;
        return r < 0 ? r
                     : resplit_begin(&manager->world, staged ? &manager->split.problem : NULL, first,
                                     manager->split.compared, err);
}

/* The layers go where the world has found they are to; its times are the plan's. Return: false where it has
 * found nothing. */
static bool move_layers(struct manager *manager)
{
        const struct split_state *split = &manager->world.split;
        size_t rank = 0;

        if (split->problem == NULL)
                return false;
        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];

                for (size_t k = 0; group->used && k < group->n_stages; k++, rank++) {
                        stage_ranks_stretch(&manager->split, rank, split->ranks[rank].stretch);
                        group->stages[k]->first = (uint32_t) split->ranks[rank].next_first;
                        group->stages[k]->last = (uint32_t) resplit_next_last(&manager->world, rank);
                }
        }
        manager->split.compared = false;
        manager->split_kept = true;
        return true;
}

static int lay_out_ranks(struct manager *manager, struct err *err)
{
        size_t next = 0;
        int r = engine_lay_out(&manager->engine, manager->plan->world_size, err);

        for (size_t i = 0; r == 0 && i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];

                for (size_t k = 0; group->used && k < group->chips; k++) {
                        manager->world.seen[next].idle = subtask_is_server(group);
                        manager->world.ranks[next++] =
                                (struct world_rank){ .place = i, .batch = group->chip_batches[k] };
                }
        }
        return r;
}

static void send_subtasks(struct manager *manager)
{
        size_t count = manager->plan->n_groups;
        CLEANUP(free_p) Subtask__Group *groups = calloc(count, sizeof(*groups));
        CLEANUP(free_p) Subtask__Group **list = calloc(count, sizeof(*list));
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        Subtask__Plan sent;

        if (groups == NULL || list == NULL) {
                engine_fail(&manager->engine, EXIT_FAILED, "PlanRefused", "no memory for the plan");
                return;
        }
        sent = subtask_sent(manager->plan, groups, list);
        order.kind = RENDEZVOUS__ORDER__KIND__subtask;
        order.plan = &sent;
        for (size_t i = 0; i < count && !manager->engine.ending; i++)
                if (groups[i].used)
                        manager->members[i].subtask_order =
                                manager_members_order(&manager->members[i], order);
}

void manager_world_assign(void *userdata)
{
        struct manager *manager = userdata;
        struct err err = { 0 };
        int r;

        for (size_t i = 0; i < manager->plan->n_groups; i++)
                manager->plan->groups[i]->used = manager->world.places[i].used;
        manager->plan->restarts = manager->world.restarts;
        manager->plan->world += manager->world.rank_count > 0; /* others were sent before */
        r = subtask_cut(manager->plan, &err);
        if (r == 0)
                r = lay_out_ranks(manager, &err);
        if (r == 0)
                r = lay_out_split(manager, &err);
        if (r == 0)
                send_subtasks(manager);
        else
                engine_fail(&manager->engine, EXIT_USAGE, "PlanRefused", "%s", err.msg);
}

/* Samples a second of a group of such chips. Return: 0 = no memory. */
static double learn_group(struct manager *manager, Subtask__Group *group, const struct recut_line *lines)
{
        const struct world_rank *ranks = &manager->world.ranks[group->first_rank];
        size_t size = group->chips * sizeof(double);
        double speed = 0;

        if (group->n_chip_speeds == 0) /* an empty list of a file has no room for them */
                group->chip_speeds = pb_arena_take(&manager->plan_arena, size);
        if (group->n_chip_alpha_ms == 0)
                group->chip_alpha_ms = pb_arena_take(&manager->plan_arena, size);
        if (group->chip_speeds == NULL || group->chip_alpha_ms == NULL)
                return 0;
        group->n_chip_speeds = group->n_chip_alpha_ms = group->chips;
        for (size_t k = 0; k < group->chips; k++) {
                double samples = ranks[k].batch > 0 ? (double) ranks[k].batch : 1;

                group->chip_speeds[k] = 1000 / lines[k].beta_ms;
                group->chip_alpha_ms[k] = lines[k].alpha_ms;
                speed += 1000 * samples / (lines[k].alpha_ms + lines[k].beta_ms * samples);
        }
        return speed;
}

/* One that never ran: its own figures are relative. */
static void scale_group(Subtask__Group *group, double ratio)
{
        double sum = 0;

        group->speed *= ratio;
        for (size_t k = 0; k < group->n_chip_speeds; k++)
                sum += group->chip_speeds[k];
        for (size_t k = 0; k < group->n_chip_speeds; k++)
                group->chip_speeds[k] *= group->speed / sum;
}

void manager_world_adopt(void *userdata, bool anew)
{
        struct manager *manager = userdata;
        Subtask__Plan *plan = manager->plan;
        CLEANUP(free_p)
        struct recut_line *lines = calloc(manager->world.rank_count + 1, sizeof(*lines));
        bool learned = lines != NULL && recut_learned(&manager->world, lines);
        double before = 0, after = 0;

        if (anew && move_layers(manager))
                return;
        plan->batches_given = plan->batches_given && !anew;
        for (size_t i = 0; learned && i < plan->n_groups; i++) {
                Subtask__Group *group = plan->groups[i];
                double speed = group->used && !subtask_is_server(group)
                                       ? learn_group(manager, group, &lines[group->first_rank])
                                       : 0;

                if (speed <= 0)
                        continue;
                before += group->speed;
                after += speed;
                group->has_speed = true;
                group->speed = speed;
        }
        for (size_t i = 0; i < plan->n_groups && before > 0; i++)
                if (!plan->groups[i]->used && plan->groups[i]->n_chip_alpha_ms == 0)
                        scale_group(plan->groups[i], after / before);
}

/* Can all be told? One that is told alone would take them alone. */
static bool all_take_orders(const struct manager *manager)
{
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (manager->plan->groups[i]->used && !manager_members_takes_order(&manager->members[i]))
                        return false;
        return true;
}

void manager_world_share(void *userdata)
{
        struct manager *manager = userdata;
        size_t count = manager->world.rank_count, told = 0;
        CLEANUP(free_p) uint32_t *shares = calloc(count + 1, sizeof(*shares));
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;

        for (size_t i = 0; shares != NULL && i < count; i++)
                shares[i] = (uint32_t) manager->world.ranks[i].batch_next;
        order.kind = RENDEZVOUS__ORDER__KIND__share;
        order.step = manager->world.progress.live.step;
        order.shares = shares;
        order.n_shares = count;
        for (size_t i = 0; shares != NULL && all_take_orders(manager) && i < manager->plan->n_groups; i++)
                if (manager->plan->groups[i]->used)
                        told += manager_members_order(&manager->members[i], order) != 0;
        if (told > 0) /* what becomes of it, the ranks say */
                return;
        manager_state_event(manager, "SharesUntold",
                            "a group takes no more orders; the shares stay as they are until the next world");
        engine_observe(&manager->engine, (struct world_fact){ .kind = WORLD_UNTOLD });
}

/* What the ranks have taken is the plan, also for the next world. */
void manager_world_shared(void *userdata)
{
        struct manager *manager = userdata;
        Subtask__Plan *plan = manager->plan;
        uint64_t before = 0;

        for (size_t i = 0; i < plan->n_groups; i++) {
                Subtask__Group *group = plan->groups[i];

                if (!group->used)
                        continue;
                group->batch = 0;
                for (uint64_t k = 0; k < group->chips; k++) {
                        group->chip_batches[k] = (uint32_t) manager->world.ranks[group->first_rank + k].batch;
                        group->batch += group->chip_batches[k];
                }
                group->begin = shards_begin(plan->samples, before, plan->global_batch);
                before += group->batch;
                group->end = shards_begin(plan->samples, before, plan->global_batch);
        }
}

/* The shares of the first world are not those of the next one, whose ranks have REMUDA_BATCH. */
static bool is_outdated(const struct manager *manager, const char *option)
{
        return manager->world.worlds > 1 && strcmp(option, "--shares") == 0;
}

static void add_args(const struct manager *manager, char *const *args, size_t count, struct arguments *line)
{
        for (size_t k = 0; k < count; k++) {
                if (is_outdated(manager, args[k]))
                        k++;
                else
                        arguments_add(line, "%s", args[k]);
        }
}

static void build_line(const struct manager *manager, struct arguments *line)
{
        unsigned grace_seconds = resplit_grace_seconds(&manager->world, manager->options->grace_seconds);
        char agent[PATH_MAX + 64], seconds[16];

        mpirun_line_begin(line, "mpirun", false);
        arguments_add(line, "--leave-session-attached");
        /* Open MPI takes ':' in an agent's line for "or else": the address goes by the environment */
        (void) text_format(agent, sizeof(agent), "%s --start-on manager --", manager->self);
        mpirun_line_mca(line, "plm", "rsh");
        mpirun_line_mca(line, "plm_rsh_agent", agent);
        mpirun_line_mca(line, "plm_rsh_no_tree_spawn", "1");
        /* a rank that ends by SIGTERM leaves the others the time to do the same */
        (void) text_format(seconds, sizeof(seconds), "%u", manager->options->grace_seconds + 1);
        mpirun_line_mca(line, "odls_base_sigkill_timeout", seconds);
        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];

                if (!group->used)
                        continue;
                if (group->first_rank > 0)
                        arguments_add(line, ":");
                arguments_add(line, "--host");
                arguments_add(line, "%s:%llu", group->name, (unsigned long long) group->chips);
                mpirun_line_ranks(line, group->chips, manager->self, group->runtime, grace_seconds);
                arguments_add(line, "--");
                add_args(manager, manager->plan->args, manager->plan->n_args, line);
                if (manager->plan->resume || manager->world.worlds > 1)
                        add_args(manager, manager->plan->resume_args, manager->plan->n_resume_args, line);
        }
}

static int set_path(const char *name, const char *path)
{
        char absolute[PATH_MAX];

        if (path == NULL)
                return 0;
        return realpath(path, absolute) == NULL || setenv(name, absolute, 1) < 0 ? -errno : 0;
}

/* mpirun's start agents speak to this manager as its groups do. Nothing else is ever started here. */
static int set_environment(const struct manager *manager)
{
        const struct keys *tls = &manager->options->tls;
        int r = set_path("REMUDA_LAUNCH_TLS_CERT", tls->certificate);

        r = r < 0 ? r : set_path("REMUDA_LAUNCH_TLS_KEY", tls->key);
        r = r < 0 ? r : set_path("REMUDA_LAUNCH_TLS_CA", tls->ca);
        if (tls->name != NULL)
                (void) setenv("REMUDA_LAUNCH_TLS_NAME", tls->name, 1);
        (void) setenv("REMUDA_MANAGER", manager->address, 1);
        (void) setenv("REMUDA_LAUNCH_TOKEN_FILE", manager->token_file, 1);
        return r;
}

static pid_t spawn(struct manager *manager)
{
        struct arguments line = { 0 };
        int r = set_environment(manager);
        pid_t pid;

        manager->folder[0] = '\0';
        r = r < 0 ? r : private_folder(manager->folder, sizeof(manager->folder), SUPERVISE_FOLDER);
        pid = r < 0 ? r : -E2BIG;
        build_line(manager, &line);
        if (r == 0 && !line.failed)
                pid = guard_start(&(struct guard_what){ .path = manager->mpirun_path,
                                                        .argv = line.list,
                                                        .folders = { manager->folder },
                                                        .prefix = SUPERVISE_FOLDER,
                                                        .farewell_usec = 2000000,
                                                        .held = { -1, -1 } });
        if (pid < 0) /* else who watches over it takes it away */
                private_folder_remove(manager->folder, SUPERVISE_FOLDER);
        arguments_free(&line);
        return pid;
}

/* Of one host there is nothing to say but where the job has said something. */
static void tell_levels(struct manager *manager)
{
        struct launch_levels levels;

        if (launch_levels_choose_plan(manager->plan, &levels) == 0 && (levels.hosts || levels.two))
                manager_state_event(manager, "LevelsChosen", "%s", levels.why);
        launch_levels_free(&levels);
}

void manager_world_start(void *userdata)
{
        struct manager *manager = userdata;
        pid_t pid = spawn(manager);

        if (pid < 0) {
                engine_fail(&manager->engine, EXIT_FAILED, "WorldFailed", "mpirun could not be started: %s",
                            strerror((int) -pid));
                return;
        }
        manager->engine.mpirun = pid;
        manager_state_event(
                manager, "Started", "world %llu: mpirun starts %llu ranks on all groups that are ready",
                (unsigned long long) manager->plan->world, (unsigned long long) manager->plan->world_size);
        tell_levels(manager);
}
