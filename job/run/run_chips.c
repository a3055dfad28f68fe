/* Chooses a chip for every rank, from this machine's device groups or those of a store. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/inventory_json.h"
#include "agent/launch/program_file.h"
#include "agent/tree/tree.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "job/run/run_chips.h"

struct candidate {
        const struct inventory *inventory;
        const struct device_group *group;
        unsigned taken; /* chips given to ranks of this job */
        size_t order;
};

/* --- the inventories
 * -------------------------------------------------------------------------------------------- */

static int add_inventory(struct inventories *list, const struct inventory *inventory)
{
        struct inventory *grown = reallocarray(list->items, list->count + 1, sizeof(*grown));

        if (grown == NULL)
                return -ENOMEM;
        list->items = grown;
        list->items[list->count++] = *inventory;
        return 0;
}

void inventories_free(struct inventories *list)
{
        for (size_t i = 0; i < list->count; i++)
                inventory_free(&list->items[i]);
        free(list->items);
        *list = (struct inventories){ 0 };
}

static int discover_machine(struct inventories *list, struct err *err)
{
        struct inventory inventory;
        struct tree *tree = NULL;
        int r = tree_open("/", &tree, err);

        if (r < 0)
                return r;
        r = discover(tree, NULL, &inventory, err);
        tree_close(tree);
        if (r < 0)
                return r;
        (void) gethostname(inventory.node, sizeof(inventory.node) - 1);
        inventory_count(&inventory);
        r = add_inventory(list, &inventory);
        if (r < 0)
                inventory_free(&inventory);
        return r < 0 ? err_set(err, r, "no memory for the inventory") : 0;
}

static int read_inventory(struct inventories *list, const char *path, struct err *err)
{
        json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        struct inventory inventory;
        int r;

        if (object == NULL)
                return err_set(err, -EBADMSG, "'%.200s' is not JSON", path);
        r = inventory_decode(object, &inventory, err);
        json_decref(object);
        if (r < 0)
                return err_wrap(err, r, "'%.200s'", path);
        r = add_inventory(list, &inventory);
        if (r < 0)
                inventory_free(&inventory);
        return r < 0 ? err_set(err, r, "no memory for the inventory") : 0;
}

static int read_store(struct inventories *list, const char *spec, struct err *err)
{
        const struct dirent *file;
        DIR *folder;
        int r = 0;

        if (!text_starts_with(spec, "dir:"))
                return err_set(
                        err, -EINVAL,
                        "--store: '%.100s' is not dir:PATH; jobs of a cluster are submitted with kubectl",
                        spec);
        folder = opendir(spec + 4);
        if (folder == NULL)
                return err_set(err, -errno, "--store: '%.200s': %m", spec + 4);
        while (r == 0 && (file = readdir(folder)) != NULL) {
                char path[RUN_PATH_BYTES];

                if (file->d_name[0] == '.' || !text_ends_with(file->d_name, ".nodeaccelerators.json"))
                        continue;
                if (!text_format(path, sizeof(path), "%s/%s", spec + 4, file->d_name))
                        r = err_set(err, -ENAMETOOLONG, "--store: '%.200s' is too long", file->d_name);
                else
                        r = read_inventory(list, path, err);
        }
        (void) closedir(folder);
        return r;
}

int inventories_read(const struct run *run, struct inventories *ret, struct err *err)
{
        int r;

        *ret = (struct inventories){ 0 };
        r = run->options->store == NULL ? discover_machine(ret, err)
                                        : read_store(ret, run->options->store, err);
        if (r < 0)
                inventories_free(ret);
        return r;
}

/* --- which chips
 * ------------------------------------------------------------------------------------------------- */

bool chips_match(const struct job_role *role, const struct device_group *group)
{
        return (role->runtime[0] == '\0' || vendor_serves(group->runtime, role->runtime)) &&
               (role->vendor[0] == '\0' || strcmp(role->vendor, group->vendor) == 0) &&
               (role->group[0] == '\0' || strcmp(role->group, group->name) == 0) &&
               (role->model[0] == '\0' || job_model_matches(role->model, group->model));
}

static unsigned left_in(const struct candidate *candidate)
{
        return candidate->group->free > candidate->taken ? candidate->group->free - candidate->taken : 0;
}

/* What `placement: fastest` compares by. One of these for all chips that a role may have, never two: samples
 * a second beside GFLOPS, or one precision's peak beside another's, say nothing. */
enum {
        BY_PROGRAM =
                RUN_PEAK_COUNT, /* samples a second of the job's program and model, from the SpeedTable */
        BY_KINDS
};

static const char *runtime_for(const struct job_role *role, const struct device_group *group)
{
        return role->runtime[0] == '\0' ? group->runtime : role->runtime;
}

/* Ranks that share a processor share its speed. */
static double seen_speed(struct run *run, const struct job_role *role, const struct candidate *candidate)
{
        const struct device_group *group = candidate->group;
        unsigned chips = group->free > 0 ? group->free : 1, sharing = candidate->taken / chips + 1;
        double seen = run_chip_speed(run, runtime_for(role, group), group, sharing);

        return seen > 0 ? seen : run_chip_speed(run, runtime_for(role, group), group, 1) / sharing;
}

static double peak_gflops(const struct device_group *group, enum run_peak kind)
{
        switch (kind) {
        case RUN_PEAK_MEASURED:
                return group->measured_gflops;
        case RUN_PEAK_BF16:
                return 1000 * group->tflops_bf16;
        case RUN_PEAK_FP16:
                return 1000 * group->tflops_fp16;
        default:
                return 1000 * group->tflops_fp32;
        }
}

static double speed_by(struct run *run, const struct job_role *role, const struct candidate *candidate,
                       unsigned kind)
{
        return kind == BY_PROGRAM ? seen_speed(run, role, candidate)
                                  : peak_gflops(candidate->group, (enum run_peak) kind);
}

/* The first kind that all chips of the role have; if there is none, the one that most have, and the others
 * come after those. */
static unsigned comparable_kind(struct run *run, const struct job_role *role,
                                const struct candidate *candidates, size_t count)
{
        static const unsigned order[BY_KINDS] = { BY_PROGRAM, RUN_PEAK_MEASURED, RUN_PEAK_BF16, RUN_PEAK_FP16,
                                                  RUN_PEAK_FP32 };
        unsigned best = BY_PROGRAM;
        size_t most = 0;

        for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
                size_t known = 0;

                for (size_t i = 0; i < count; i++)
                        known += chips_match(role, candidates[i].group) &&
                                 speed_by(run, role, &candidates[i], order[k]) > 0;
                if (known > most) {
                        most = known;
                        best = order[k];
                }
        }
        return best;
}

/* Is `a` the better group for the next chip? Equal ones keep their order. */
static bool better(struct run *run, const struct job_role *role, unsigned kind, const struct candidate *a,
                   const struct candidate *b)
{
        if ((left_in(a) > 0) != (left_in(b) > 0))
                return left_in(a) > 0;
        switch (run->job.placement) {
        case JOB_PLACEMENT_UNIFORM:
                return a->taken < b->taken;
        case JOB_PLACEMENT_LARGEST_FREE:
                return left_in(a) > left_in(b);
        case JOB_PLACEMENT_PACKED:
                return (a->taken > 0 && b->taken == 0) ||
                       ((a->taken > 0) == (b->taken > 0) && left_in(a) < left_in(b));
        default:
                return speed_by(run, role, a, kind) > speed_by(run, role, b, kind);
        }
}

static struct candidate *pick(struct run *run, const struct job_role *role, struct candidate *candidates,
                              size_t count)
{
        struct candidate *best = NULL;
        unsigned kind = BY_PROGRAM;

        if (run->job.placement == JOB_PLACEMENT_FASTEST)
                kind = comparable_kind(run, role, candidates, count);
        for (size_t i = 0; i < count; i++) {
                struct candidate *candidate = &candidates[i];

                /* a CPU group takes any number of ranks; an accelerator serves one */
                if (!chips_match(role, candidate->group) ||
                    (left_in(candidate) == 0 && strcmp(candidate->group->runtime, "cpu") != 0))
                        continue;
                if (best == NULL || better(run, role, kind, candidate, best))
                        best = candidate;
        }
        return best;
}

/* The n-th usable device of a group, counted round. */
static const struct device *device_of(const struct candidate *candidate, unsigned n)
{
        const struct inventory *inventory = candidate->inventory;
        unsigned usable = 0, at = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                usable += strcmp(inventory->devices[i].group, candidate->group->name) == 0 &&
                          inventory->devices[i].usable;
        if (usable == 0)
                return NULL;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];

                if (strcmp(device->group, candidate->group->name) == 0 && device->usable &&
                    at++ == n % usable)
                        return device;
        }
        return NULL;
}

static void give(struct run_rank *rank, const struct job_role *role, struct candidate *candidate)
{
        const struct device *device = device_of(candidate, candidate->taken++);

        rank->role = role;
        (void) text_copy(rank->runtime, sizeof(rank->runtime),
                         role->runtime[0] == '\0' ? candidate->group->runtime : role->runtime);
        (void) text_copy(rank->vendor, sizeof(rank->vendor), candidate->group->vendor);
        (void) text_copy(rank->group, sizeof(rank->group), candidate->group->name);
        (void) text_copy(rank->device_model, sizeof(rank->device_model), candidate->group->model);
        (void) text_copy(rank->device, sizeof(rank->device),
                         device == NULL ? candidate->group->name : device->id);
        (void) text_copy(rank->node, sizeof(rank->node), candidate->inventory->node);
        rank->device_index = device == NULL ? 0 : device->index;
        for (unsigned kind = 0; kind < RUN_PEAK_COUNT; kind++)
                rank->peak_gflops[kind] = peak_gflops(candidate->group, (enum run_peak) kind);
}

/* --- roles
 * -------------------------------------------------------------------------------------------------------- */

static int no_chip(struct run *run, const char *field, const struct job_role *role, uint64_t found,
                   struct err *err)
{
        run_event(run, "Unschedulable", "%s wants %llu chips (%llu at least), %llu are there", field,
                  (unsigned long long) role->chips, (unsigned long long) role->min_chips,
                  (unsigned long long) found);
        return err_set(err, -EBUSY,
                       "%s: %llu chips of%s%s%s%s%s%s%s%s are not on this machine, %llu are; `remuda "
                       "devices` lists them",
                       field, (unsigned long long) role->min_chips,
                       role->runtime[0] == '\0' ? "" : " runtime ", role->runtime,
                       role->vendor[0] == '\0' ? "" : " vendor ", role->vendor,
                       role->model[0] == '\0' ? "" : " model ", role->model,
                       role->group[0] == '\0' ? "" : " group ", role->group, (unsigned long long) found);
}

static int fill_role(struct run *run, const char *field, const struct job_role *role, bool server,
                     struct candidate *candidates, size_t count, struct err *err)
{
        for (uint64_t i = 0; i < role->chips; i++) {
                struct candidate *candidate = pick(run, role, candidates, count);
                struct run_rank *rank = &run->ranks[run->rank_count];

                /* more than the fewest that will do only where they are free */
                if (i >= role->min_chips && (candidate == NULL || left_in(candidate) == 0))
                        return 0;
                if (candidate == NULL)
                        return no_chip(run, field, role, i, err);
                if (run->rank_count == RUN_RANKS_MAX)
                        return err_set(err, -E2BIG, "%s: more than %d ranks on one machine", field,
                                       RUN_RANKS_MAX);
                *rank = (struct run_rank){ .server = server };
                give(rank, role, candidate);
                run->rank_count++;
                run->server_count += server;
        }
        return 0;
}

static int fill_servers(struct run *run, struct candidate *candidates, size_t count, struct err *err)
{
        struct job *job = &run->job;

        if (!job_strategy_has_servers(job->strategy)) {
                if (job->has_servers)
                        run_event(run, "ServersIgnored", "strategy %s has no servers",
                                  job_strategy_names[job->strategy]);
                return 0;
        }
        if (!job->has_servers) /* on the processor: it is there on every machine */
                job->servers = (struct job_role){ .runtime = "cpu", .chips = 1, .min_chips = 1 };
        return fill_role(run, "spec.servers", &job->servers, true, candidates, count, err);
}

static void note_oversubscription(struct run *run, const struct candidate *candidates, size_t count)
{
        cpu_set_t set;

        run->cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned) CPU_COUNT(&set) : 1;
        for (size_t i = 0; i < count; i++)
                if (candidates[i].taken > candidates[i].group->free)
                        run_event(run, "Oversubscribed", "%u ranks share the %u free chips of group %s",
                                  candidates[i].taken, candidates[i].group->free, candidates[i].group->name);
}

static int choose(struct run *run, struct candidate *candidates, size_t count, struct err *err)
{
        uint64_t most = job_worker_chips(&run->job) + job_server_chips(&run->job);
        char field[32];
        int r;

        if (most > RUN_RANKS_MAX)
                most = RUN_RANKS_MAX;
        run->ranks = calloc((size_t) most + 1, sizeof(*run->ranks));
        if (run->ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for the ranks");
        r = fill_servers(run, candidates, count, err);
        for (size_t i = 0; r == 0 && i < run->job.worker_count; i++) {
                (void) text_format(field, sizeof(field), "spec.workers[%zu]", i);
                r = fill_role(run, field, &run->job.workers[i], false, candidates, count, err);
        }
        if (r == 0)
                note_oversubscription(run, candidates, count);
        return r;
}

/* The table is asked before the chips: a runtime that nobody has a program for is a mistake wherever it is
 * asked. */
static int check_runtimes(const struct run *run, struct err *err)
{
        for (size_t i = 0; i < run->job.worker_count; i++) {
                const char *runtime = run->job.workers[i].runtime;

                if (runtime[0] != '\0' && program_table_find(&run->table, runtime) == NULL)
                        return err_set(err, -ENOENT,
                                       "spec.workers[%zu].runtime: the program table '%.200s' has no program "
                                       "for '%s'; add it "
                                       "below `programs:`",
                                       i, run->programs_path, runtime);
        }
        return 0;
}

static int find_programs(struct run *run, struct err *err)
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
                        (void) text_copy(rank->sha256, sizeof(rank->sha256), run->ranks[i - 1].sha256);
                        continue;
                }
                r = program_file_check(rank->program, rank->sha256, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Are two nodes of one configuration: the same groups by vendor, model and number of chips, in any order? */
static bool equal_nodes(const struct inventory *a, const struct inventory *b)
{
        if (a->group_count != b->group_count)
                return false;
        for (size_t i = 0; i < a->group_count; i++) {
                const struct device_group *group = &a->groups[i];
                size_t in_a = 0, in_b = 0;

                for (size_t k = 0; k < a->group_count; k++) {
                        in_a += strcmp(a->groups[k].vendor, group->vendor) == 0 &&
                                strcmp(a->groups[k].model, group->model) == 0 &&
                                a->groups[k].total == group->total;
                        in_b += strcmp(b->groups[k].vendor, group->vendor) == 0 &&
                                strcmp(b->groups[k].model, group->model) == 0 &&
                                b->groups[k].total == group->total;
                }
                if (in_a != in_b)
                        return false;
        }
        return true;
}

/* The groups of all nodes (like NULL), or of those of one configuration. */
static size_t list_candidates(const struct inventories *inventories, const struct inventory *like,
                              struct candidate *candidates)
{
        size_t count = 0;

        for (size_t i = 0; i < inventories->count; i++)
                for (size_t k = 0; (like == NULL || equal_nodes(like, &inventories->items[i])) &&
                                   k < inventories->items[i].group_count;
                     k++)
                        candidates[count++] = (struct candidate){ .inventory = &inventories->items[i],
                                                                  .group = &inventories->items[i].groups[k] };
        return count;
}

/* spec.equalNodes: the first configuration that has room for the whole job; what the others lack is told only
 * if none has. */
static int choose_equal(struct run *run, struct candidate *candidates, struct err *err)
{
        size_t said = json_array_size(run->events);
        int r = -EBUSY;

        for (size_t i = 0; r == -EBUSY && i < run->inventories.count; i++) {
                bool seen = false;

                for (size_t k = 0; k < i; k++)
                        seen = seen || equal_nodes(&run->inventories.items[k], &run->inventories.items[i]);
                if (seen)
                        continue;
                free(run->ranks);
                run->ranks = NULL;
                run->rank_count = run->server_count = 0;
                r = choose(run, candidates,
                           list_candidates(&run->inventories, &run->inventories.items[i], candidates), err);
        }
        while (r == 0 && json_array_size(run->events) > said &&
               strcmp(json_string_value(json_object_get(json_array_get(run->events, said), "reason")),
                      "Unschedulable") == 0)
                (void) json_array_remove(run->events, said);
        return r == -EBUSY ? err_wrap(err, r, "spec.equalNodes: on nodes of one configuration") : r;
}

static int choose_from_inventories(struct run *run, struct err *err)
{
        CLEANUP(free_p) struct candidate *candidates = NULL;
        size_t count = 0;

        for (size_t i = 0; i < run->inventories.count; i++)
                count += run->inventories.items[i].group_count;
        candidates = calloc(count + 1, sizeof(*candidates));
        if (candidates == NULL)
                return err_set(err, -ENOMEM, "no memory for the chips");
        if (run->job.equal_nodes && run->inventories.count > 1)
                return choose_equal(run, candidates, err);
        return choose(run, candidates, list_candidates(&run->inventories, NULL, candidates), err);
}

int run_place(struct run *run, struct err *err)
{
        int r = inventories_read(run, &run->inventories, err);

        return r < 0 ? r : choose_from_inventories(run, err);
}

int run_choose_chips(struct run *run, int *ret_exit_code, struct err *err)
{
        int r = check_runtimes(run, err);

        if (r == 0)
                r = run_place(run, err);
        if (r == 0)
                r = find_programs(run, err);
        if (r < 0)
                *ret_exit_code = program_file_exit_code(r);
        return r;
}
