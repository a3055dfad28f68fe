/* Chips for the ranks of a run: of the groups that the assignment of its roles names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "agent/discovery/measured_file.h"
#include "agent/inventory/inventory_json.h"
#include "agent/tree/tree.h"
#include "agent/tree/tree_directory.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/near.h"
#include "io/process.h"
#include "job/run/run_chips.h"
#include "job/run/run_programs.h"
#include "job/run/run_speeds.h"
#include "job/stages/stage_plan.h"
#include "scheduler-extender/decide/assignment.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "scheduler-extender/ledger/role_hint.h"
#include "store/store.h"
#include "store/store_once.h"

/* Of two inventories of one node the later one counts, as in the ledger. */
static int add_inventory(struct run_chips *list, const struct inventory *inventory)
{
        struct inventory *grown;

        for (size_t i = 0; i < list->count; i++)
                if (strcmp(list->items[i].node, inventory->node) == 0) {
                        inventory_free(&list->items[i]);
                        list->items[i] = *inventory;
                        return 0;
                }
        grown = reallocarray(list->items, list->count + 1, sizeof(*grown));

        if (grown == NULL)
                return -ENOMEM;
        list->items = grown;
        list->items[list->count++] = *inventory;
        return 0;
}

void run_chips_free(struct run_chips *list)
{
        for (size_t i = 0; i < list->count; i++)
                inventory_free(&list->items[i]);
        free(list->items);
        *list = (struct run_chips){ 0 };
}

static int discover_machine(struct run_chips *list, struct err *err)
{
        struct inventory inventory;
        struct tree *tree = NULL;
        int r = tree_directory_open("/", &tree, err);

        if (r < 0)
                return r;
        r = discovery_run(tree, NULL, &inventory, err);
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

/* The question to a store: what inventories are there? */
struct reading {
        struct store_once once;
        struct run_chips *list;
};

static void note(struct reading *reading, const char *sentence)
{
        if (reading->list->unreadable[0] == '\0')
                (void) text_copy(reading->list->unreadable, sizeof(reading->list->unreadable), sentence);
}

static void keep_inventory(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct reading *reading = userdata;
        struct inventory inventory;
        struct err err = { 0 };
        char sentence[300];
        int r = object == NULL ? 1 : inventory_json_decode(object, &inventory, &err);

        (void) kind;
        if (r == 0 && (r = add_inventory(reading->list, &inventory)) < 0) {
                inventory_free(&inventory);
                (void) err_set(&err, r, "no memory");
        }
        (void) text_format(sentence, sizeof(sentence), "NodeAccelerators '%.60s': %.180s", key, err.msg);
        if (r < 0)
                note(reading, sentence);
}

static void keep_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) kind;
        note(userdata, sentence);
}

static void end_reading(void *userdata, enum store_kind kind)
{
        struct reading *reading = userdata;

        (void) kind;
        store_once_answered(&reading->once, 0, "");
}

static int read_store(struct run_chips *list, const char *spec, struct err *err)
{
        struct reading reading = { .list = list };
        struct store_options options = { .spec = spec,
                                         .kinds = 1u << STORE_INVENTORY,
                                         .changed = keep_inventory,
                                         .synced = end_reading,
                                         .trouble = keep_trouble,
                                         .userdata = &reading };
        int r;

        if (store_directory(spec) == NULL)
                return err_set(
                        err, -EINVAL,
                        "--store: '%.100s' is not dir:PATH; jobs of a cluster are submitted with kubectl",
                        spec);
        r = store_once_open(&reading.once, &options, err);
        if (r == 0)
                r = store_once_wait(&reading.once, err);
        return r < 0 ? err_wrap(err, r, "--store") : 0;
}

int run_chips_read(const struct run *run, struct run_chips *ret, struct err *err)
{
        int r;

        *ret = (struct run_chips){ 0 };
        r = run->options->store == NULL ? discover_machine(ret, err)
                                        : read_store(ret, run->options->store, err);
        if (r < 0)
                run_chips_free(ret);
        return r;
}

/* A machine's own user is judged by no class and no pool, and other people's chips are those that are not
 * free. */
static int show_inventory(struct ledger *ledger, const struct inventory *inventory)
{
        struct inventory shown = *inventory;
        CLEANUP(free_p)
        struct device_group *groups = calloc(inventory->group_count + 1, sizeof(*groups));

        if (groups == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < inventory->group_count; i++) {
                groups[i] = inventory->groups[i];
                groups[i].healthy = groups[i].free;
                groups[i].shares = 1; /* a rank has its chip alone */
        }
        shown.groups = groups;
        shown.node_class = NODE_CLASS_ANY;
        shown.pool[0] = '\0';
        return ledger_nodes_set_inventory(ledger, &shown);
}

/* A domain that only one of the two names has does not count. */
static bool is_here(const char *node)
{
        char host[256] = "";
        size_t label;

        (void) gethostname(host, sizeof(host) - 1);
        label = strcspn(host, ".");
        return strcmp(node, host) == 0 ||
               (strncmp(node, host, label) == 0 && (node[label] == '\0' || host[label] == '\0') &&
                (node[label] == '\0' || node[label] == '.'));
}

/* @here: of this machine alone */
static int make_ledger(const struct run_chips *inventories, bool here, struct ledger **ret)
{
        struct ledger *ledger = ledger_life_new();
        int r = ledger == NULL ? -ENOMEM : 0;

        for (size_t i = 0; r == 0 && i < inventories->count; i++)
                if (!here || is_here(inventories->items[i].node))
                        r = show_inventory(ledger, &inventories->items[i]);
        if (r < 0)
                ledger_life_free(ledger);
        else
                *ret = ledger;
        return r;
}

static const struct inventory *inventory_of(const struct run_chips *inventories,
                                            const struct ledger_node *node)
{
        const struct inventory *inventory = inventories->items;

        while (strcmp(inventory->node, node->name) != 0)
                inventory++;
        return inventory;
}

/* The n-th usable device of a group, counted round. */
static const struct device *device_of(const struct inventory *inventory, const struct device_group *group,
                                      size_t n)
{
        size_t usable = 0, at = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                usable +=
                        strcmp(inventory->devices[i].group, group->name) == 0 && inventory->devices[i].usable;
        if (usable == 0)
                return NULL;
        n %= usable;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];

                if (strcmp(device->group, group->name) == 0 && device->usable && at++ == n)
                        return device;
        }
        return NULL;
}

/* Ranks of other roles have the first devices of the group. */
static size_t ranks_in(const struct run *run, const struct inventory *inventory,
                       const struct device_group *group)
{
        size_t count = 0;

        for (size_t i = 0; i < run->rank_count; i++)
                count += strcmp(run->ranks[i].group, group->name) == 0 &&
                         strcmp(run->ranks[i].node, inventory->node) == 0;
        return count;
}

static void add_rank(struct run *run, const struct assignment_part *part, const struct inventory *inventory,
                     size_t n)
{
        const struct device_group *group = &inventory->groups[part->group - part->node->groups];
        const struct device *device = device_of(inventory, group, n);
        struct run_rank *rank = &run->ranks[run->rank_count++];

        *rank = (struct run_rank){ .server = part->server,
                                   .role = assignment_role(&run->job, part->server, part->entry),
                                   .device_index = device == NULL ? 0 : device->ordinal,
                                   .figures = part->group->figures,
                                   .network_mbps = part->node->hardware.network_mbps,
                                   .link_bytes_per_ms =
                                           stage_plan_link(part->node->hardware.network_mbps, true),
                                   .memory_bytes = device != NULL && device->memory_bytes > 0
                                                           ? device->memory_bytes
                                                           : group->memory_bytes,
                                   .speed = { .speed = 1 },
                                   .precision = CHIP_SPEED_NO_PRECISION };
        (void) text_copy(rank->runtime, sizeof(rank->runtime),
                         rank->role->runtime[0] == '\0' ? group->runtime : rank->role->runtime);
        (void) text_copy(rank->vendor, sizeof(rank->vendor), group->vendor);
        (void) text_copy(rank->group, sizeof(rank->group), group->name);
        (void) text_copy(rank->device_model, sizeof(rank->device_model), group->model);
        (void) text_copy(rank->device, sizeof(rank->device), device == NULL ? group->name : device->id);
        (void) text_copy(rank->pci, sizeof(rank->pci), device == NULL ? "" : device->pci);
        (void) text_copy(rank->node, sizeof(rank->node), inventory->node);
        run->server_count += part->server;
}

static void add_part(struct run *run, const struct assignment_part *part)
{
        const struct inventory *inventory = inventory_of(&run->inventories, part->node);
        size_t before = ranks_in(run, inventory, &inventory->groups[part->group - part->node->groups]);

        for (uint32_t k = 0; k < part->ranks; k++)
                add_rank(run, part, inventory, before + k);
}

/* Servers are the first ranks, then the entries of workers in their order. */
static int add_ranks(struct run *run, const struct assignment *assignment, struct err *err)
{
        size_t count = 0;

        for (size_t i = 0; i < assignment->count; i++)
                count += assignment->parts[i].ranks;
        if (count > RUN_RANKS_MAX)
                return err_set(err, -E2BIG, "%zu ranks are more than %d", count, RUN_RANKS_MAX);
        run->ranks = calloc(count + 1, sizeof(*run->ranks));
        if (run->ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for the ranks");
        for (size_t role = 0; role <= run->job.worker_count; role++)
                for (size_t i = 0; i < assignment->count; i++)
                        if ((assignment->parts[i].server ? 0 : assignment->parts[i].entry + 1) == role)
                                add_part(run, &assignment->parts[i]);
        return 0;
}

/* What the assignment has to say of itself, "Word: sentence". */
static void tell_notes(struct run *run, const struct assignment *assignment)
{
        for (size_t i = 0; i < assignment->note_count; i++) {
                const char *note = assignment->notes[i], *colon = strstr(note, ": ");
                char word[48];

                if (colon != NULL && text_format(word, sizeof(word), "%.*s", (int) (colon - note), note))
                        run_event(run, word, "%s", colon + 2);
        }
}

static int no_chip(struct run *run, const struct ledger *ledger, const struct assignment *assignment,
                   struct err *err)
{
        const struct job_role *role = assignment->lacking;
        unsigned long long found = assignment->found;
        char field[32] = "spec.servers", hint[ROLE_HINT_BYTES];
        int r;

        for (size_t i = 0; i < run->job.worker_count; i++)
                if (role == &run->job.workers[i])
                        (void) text_format(field, sizeof(field), "spec.workers[%zu]", i);
        run_event(run, "Unschedulable", "%s wants %llu chips (%llu at least), %llu are there", field,
                  (unsigned long long) role->chips, (unsigned long long) role->min_chips, found);
        r = err_set(err, -EBUSY,
                    "%s: %llu chips of%s%s%s%s%s%s%s%s are not %s, %llu are%s; `remuda %s` lists them", field,
                    (unsigned long long) role->min_chips, role->runtime[0] == '\0' ? "" : " runtime ",
                    role->runtime, role->vendor[0] == '\0' ? "" : " vendor ", role->vendor,
                    role->model[0] == '\0' ? "" : " model ", role->model,
                    role->group[0] == '\0' ? "" : " group ", role->group,
                    run->options->store == NULL ? "on this machine" : "in --store", found,
                    role_hint(ledger, role, hint),
                    run->options->store == NULL ? "devices" : "nodes --store dir:PATH");
        if (run->job.min_network_mbps > 0)
                r = err_wrap(err, r, "spec.minNetworkMbps: on nodes whose network does %llu Mbit/s",
                             (unsigned long long) run->job.min_network_mbps);
        return run->job.equal_nodes ? err_wrap(err, r, "spec.equalNodes: on nodes of one configuration") : r;
}

/* A claim for the run's job, which borrows all of it. */
struct claim {
        struct job job;
        struct rules rules;
        struct open_groups_claim on;
};

static void make_claim(const struct run *run, const struct ledger *ledger, struct claim *ret)
{
        *ret = (struct claim){ .job = run->job,
                               .rules = { .placement = PLACEMENT_PACKED },
                               .on = { .job = { .ledger = (struct ledger *) ledger }, .processes = true } };
        ret->job.program_count = 0; /* those are for pods */
        run_programs_say(run, &ret->job);
        ret->on.job.job = &ret->job;
        ret->on.rules = &ret->rules;
}

/* Whose speeds count, as a cluster has them; what is started here is named by its file later. */
static void name_programs(struct run *run, const struct claim *claim)
{
        struct job job = run->job;
        struct ledger_speeds_programs programs = { .ledger = claim->on.job.ledger,
                                                   .job = &job,
                                                   .table = claim->on.job.programs,
                                                   .table_count = claim->on.job.program_count };

        run_programs_say(run, &job);
        ledger_speeds_collect(&programs);
        for (size_t i = 0; i < run->rank_count; i++)
                (void) text_copy(run->ranks[i].speed_name, sizeof(run->ranks[i].speed_name),
                                 ledger_speeds_program(&programs, run->ranks[i].runtime));
}

static int assign(struct run *run, struct ledger *ledger, struct err *err)
{
        CLEANUP(free_p) struct ledger_program *programs = NULL;
        struct assignment assignment;
        struct claim claim;
        int r;

        run_speeds_place(run, ledger, &programs);
        make_claim(run, ledger, &claim);
        claim.on.job.programs = programs;
        claim.on.job.program_count = programs == NULL ? 0 : run->table.count;
        r = assignment_make(&claim.on, RUN_RANKS_MAX, &assignment, err);
        if (r == 0)
                r = add_ranks(run, &assignment, err);
        else if (r == -EBUSY && assignment.lacking != NULL)
                r = no_chip(run, ledger, &assignment, err);
        if (r == 0) {
                tell_notes(run, &assignment);
                name_programs(run, &claim);
        }
        assignment_free(&assignment);
        return r;
}

/* An inventory of a store has what its agent read; here nobody else does. */
static void take_measured(struct run *run)
{
        const char *path = run->options->measured != NULL ? run->options->measured : MEASURED_PATH;
        struct measured_json_list list;
        struct err err = { 0 };
        int r = measured_file_read(path, &list, &err);

        if (r < 0 && r != -ENOENT)
                run_event(run, "MeasurementRefused", "%s", err.msg);
        for (size_t i = 0; r == 0 && i < run->inventories.count; i++)
                measured_json_apply(&list, &run->inventories.items[i]);
        if (r == 0)
                measured_json_free(&list);
}

/* The order of ranks, whoever starts them: servers first, then node by node, for launchers number so; on a
 * node by the entry of the job, the group and the chip. */
static int by_place(const void *a, const void *b)
{
        const struct run_rank *left = a, *right = b;
        int order = strcmp(left->node, right->node);

        if (left->server != right->server)
                return left->server ? -1 : 1;
        if (order != 0)
                return order;
        if (left->role != right->role)
                return left->role < right->role ? -1 : 1;
        order = strcmp(left->group, right->group);
        return order != 0 ? order
                          : (left->device_index > right->device_index) -
                                    (left->device_index < right->device_index);
}

int run_place(struct run *run, struct err *err)
{
        struct ledger *ledger = NULL;
        int r = run_chips_read(run, &run->inventories, err);

        if (r < 0)
                return r;
        if (run->options->store == NULL)
                take_measured(run);
        if (run->inventories.unreadable[0] != '\0')
                run_event(run, "UnreadableObject", "%s", run->inventories.unreadable);
        if (run->job.has_servers && !job_strategy_has_servers(run->job.strategy))
                run_event(run, "ServersIgnored", "strategy %s has no servers",
                          job_strategy_names[run->job.strategy]);
        run->cores = process_cores();
        run_programs_words(run, run->job.args, run->job.arg_count, &run->speed_args);
        if (run->speed_args.failed || make_ledger(&run->inventories, false, &ledger) < 0)
                return err_set(err, -ENOMEM, "no memory for the chips");
        r = assign(run, ledger, err);
        ledger_life_free(ledger);
        if (r == 0)
                qsort(run->ranks, run->rank_count, sizeof(*run->ranks), by_place);
        return r;
}

/* What a rank holds: its chip, or the one that it is offered; one that has lost its chip holds none. */
static struct assignment_part part_of(const struct run *run, const struct ledger *ledger, size_t index)
{
        const struct run_rank *rank = &run->ranks[index];
        bool offered = rank->spare_device.id[0] != '\0';
        const char *node = offered ? rank->spare_node : rank->node,
                   *group = offered ? rank->spare_device.group : rank->group;
        struct assignment_part part = { .server = rank->server,
                                        .entry =
                                                rank->server ? 0 : (uint32_t) (rank->role - run->job.workers),
                                        .chips = 1,
                                        .ranks = 1,
                                        .node = ledger_nodes_find(ledger, node, strlen(node)) };

        for (uint32_t i = 0;
             part.node != NULL && (offered || run->world.places[index].there) && i < part.node->group_count;
             i++)
                if (strcmp(symbols_name(&ledger->symbols, part.node->groups[i].name), group) == 0)
                        part.group = &part.node->groups[i];
        return part;
}

static bool is_taken(const struct run *run, const char *node, const char *device)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                if ((strcmp(rank->node, node) == 0 && strcmp(rank->device, device) == 0) ||
                    (strcmp(rank->spare_node, node) == 0 && strcmp(rank->spare_device.id, device) == 0))
                        return true;
        }
        return false;
}

static void take_spare(struct run *run, struct run_rank *rank, const struct inventory *inventory,
                       const char *group)
{
        for (size_t i = 0; i < inventory->device_count && rank->spare_device.id[0] == '\0'; i++) {
                const struct device *device = &inventory->devices[i];

                if (strcmp(device->group, group) != 0 || !device->usable ||
                    is_taken(run, inventory->node, device->id))
                        continue;
                rank->spare_device = *device;
                (void) text_copy(rank->spare_node, sizeof(rank->spare_node), inventory->node);
        }
}

bool run_chips_spare(struct run *run, const struct run_chips *now, size_t index)
{
        CLEANUP(free_p) struct assignment_part *parts = calloc(run->rank_count, sizeof(*parts));
        struct run_rank *rank = &run->ranks[index];
        struct ledger *ledger = NULL;
        struct claim claim;

        rank->spare_device.id[0] = '\0';
        if (parts == NULL || make_ledger(now, true, &ledger) < 0)
                return false;
        for (size_t i = 0; i < run->rank_count; i++)
                parts[i] = part_of(run, ledger, i);
        make_claim(run, ledger, &claim);
        if (assignment_spare(&claim.on, parts, run->rank_count, index,
                             symbols_find(&ledger->symbols, rank->device_model, strlen(rank->device_model)),
                             rank->runtime, &parts[index]) == 0)
                take_spare(run, rank, inventory_of(now, parts[index].node),
                           symbols_name(&ledger->symbols, parts[index].group->name));
        ledger_life_free(ledger);
        return rank->spare_device.id[0] != '\0';
}

/* What a run starts, it starts here: chips of other machines cannot be lent to it. */
static int check_nodes(const struct run *run, struct err *err)
{
        char host[256] = "";
        struct text nodes = { 0 };
        int r = 0;

        for (size_t i = 0; i < run->rank_count; i++) {
                const char *node = run->ranks[i].node;
                bool said = is_here(node);

                for (size_t k = 0; k < i && !said; k++)
                        said = strcmp(run->ranks[k].node, node) == 0;
                if (!said)
                        text_printf(&nodes, "%s%s", nodes.size_bytes == 0 ? "" : ", ", node);
        }
        (void) gethostname(host, sizeof(host) - 1);
        if (nodes.size_bytes > 0)
                r = err_set(err, -EINVAL,
                            "the plan has chips of %.100s, and this machine is %.60s; `remuda plan launch` "
                            "writes it for a launcher, kubectl submits it to a cluster",
                            nodes.data, host);
        text_free(&nodes);
        return r;
}

static int no_program(const struct run *run, size_t worker, struct err *err)
{
        const char *runtime = run->job.workers[worker].runtime;
        struct near near = { .word = runtime };
        char names[160];

        for (size_t i = 0; i < run->table.count; i++)
                near_consider(&near, run->table.programs[i].runtime);
        return err_set(
                err, -ENOENT,
                "spec.workers[%zu].runtime: the program table '%.200s' has no program for '%s'; add it "
                "below `programs:`%s",
                worker, run->programs_path, runtime, near_say(&near, names, sizeof(names)));
}

/* The table is asked before the chips: a runtime that nobody has a program for is a mistake wherever it is
 * asked. */
static int check_runtimes(const struct run *run, struct err *err)
{
        for (size_t i = 0; i < run->job.worker_count; i++) {
                const char *runtime = run->job.workers[i].runtime;

                if (runtime[0] != '\0' && program_table_find(&run->table, runtime) == NULL)
                        return no_program(run, i, err);
        }
        return 0;
}

int run_choose_chips(struct run *run, int *ret_exit_code, struct err *err)
{
        int r = check_runtimes(run, err);

        if (r == 0)
                r = run_place(run, err);
        if (r == 0)
                r = check_nodes(run, err);
        if (r == 0)
                r = run_programs_find(run, err);
        if (r < 0)
                *ret_exit_code = exit_code_of(r);
        return r;
}
