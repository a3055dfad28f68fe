/* remuda devices: what this machine, a directory tree or a machine file has. */
#include <errno.h>
#include <linux/magic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/config/agent_config.h"
#include "agent/discovery/discovery.h"
#include "agent/inventory/inventory_json.h"
#include "agent/inventory/measured_json.h"
#include "agent/measure/measure.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/listing.h"
#include "cli/command/open_tree.h"
#include "cli/command/watching.h"
#include "io/clock.h"
#include "io/read_file.h"
#include "io/whole_file.h"

struct devices_options {
        const char *root, *machine, *config, *socket;
        struct listing_arguments listing;
        const char *save; /* NULL = what is measured is not kept */
        bool measure;
};

#define AT(member) offsetof(struct devices_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = AT(root), .value = "DIR",
          .help = "look at DIR instead of /" },
        { .name = "machine", .type = OPTION_STRING, .offset = AT(machine), .value = "FILE",
          .help = "look at a machine file (`remuda machine record`)" },
        { .name = "config", .type = OPTION_STRING, .offset = AT(config), .value = "FILE",
          .help = "the agent's configuration: added models and vendors, exclusions" },
        { .name = "socket", .type = OPTION_STRING, .offset = AT(socket), .value = "PATH",
          .help = "the agent that knows what is free (of this machine: /run/remuda/agent.sock)" },
        { .name = "measure", .type = OPTION_BOOL, .offset = AT(measure),
          .help = "run a matrix product for a second on a device of each group" },
        { .name = "save", .type = OPTION_OPTIONAL, .offset = AT(save), .value = "FILE",
          .default_ = MEASURED_PATH, .help = "keep what was measured where the agent reads it" },
        LISTING_ARGUMENTS_ROWS(struct devices_options, LISTING_FORMS),
        LISTING_WATCH_ROWS(struct devices_options),
        { 0 },
};
/* clang-format on */

const struct option_program command_devices_options = {
        .name = "remuda devices",
        .summary = "Shows the accelerators and CPU groups of this machine, of a directory that holds sys/ "
                   "(and proc/,\n"
                   "dev/), or of a machine file.",
        .specs = specs,
};

/* "/", or where a container sees the host: its sys/ is the kernel's. */
static bool is_this_machine(const char *root)
{
        char path[TREE_PATH_BYTES];
        struct statfs fs;

        return strcmp(root, "/") == 0 || (text_format(path, sizeof(path), "%s/sys", root) &&
                                          statfs(path, &fs) == 0 && fs.f_type == SYSFS_MAGIC);
}

/* Options that do not go together. Return: NULL = all do. */
static const char *find_conflict(const struct devices_options *o)
{
        if (o->measure && o->machine != NULL)
                return "--measure runs on this machine: it excludes --machine";
        if (o->measure && o->root != NULL && !is_this_machine(o->root))
                return "--measure runs on this machine, and --root is not this machine's /sys";
        if (o->measure && o->listing.watch)
                return "--measure takes the devices for a second at each look: it excludes --watch";
        if (o->save != NULL && !o->measure)
                return "--save keeps what --measure measured: give both";
        return o->root != NULL && o->machine != NULL ? "--root and --machine exclude each other" : NULL;
}

static enum table_colour colour_of(enum device_health health)
{
        switch (health) {
        case HEALTH_HEALTHY:
                return TABLE_GOOD;
        case HEALTH_UNHEALTHY:
        case HEALTH_QUARANTINED:
                return TABLE_BAD;
        default:
                return TABLE_WARN;
        }
}

static void format_memory(uint64_t bytes, char *ret, size_t ret_bytes)
{
        ret[0] = '\0';
        if (bytes > 0)
                (void) text_format(ret, ret_bytes, "%.0f GiB", (double) bytes / (double) (1 << 30));
}

/* The peak of the first precision that is known, "989 bf16"; "~1.7 fp32" is an estimate. */
static void format_peak(const struct device_group *group, char *ret, size_t ret_bytes)
{
        const struct {
                double tflops;
                const char *precision;
        } peaks[] = { { group->tflops_bf16, "bf16" },
                      { group->tflops_fp16, "fp16" },
                      { group->tflops_fp32, "fp32" } };

        ret[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(peaks) && ret[0] == '\0'; i++)
                if (peaks[i].tflops > 0)
                        (void) text_format(ret, ret_bytes, "%s%.4g %s", group->tflops_estimated ? "~" : "",
                                           peaks[i].tflops, peaks[i].precision);
}

/* What the machine has, and of which groups somebody told who holds them: `free` of the others is a guess. */
struct seen {
        struct inventory inventory;
        bool free_known[GROUPS_MAX];
};

static int print_groups(const struct seen *seen, const struct listing_arguments *listing)
{
        static const char *const plain[] = { "GROUP",  "MODEL",  "HEALTHY",  "FREE",
                                             "MEMORY", "FABRIC", "RESOURCE", NULL };
        static const char *const more[] = { "GROUP",   "VENDOR",   "RUNTIME", "MODEL",  "HEALTHY",
                                            "FREE",    "MEMORY",   "FABRIC",  "SOURCE", "TFLOP/S",
                                            "GFLOP/S", "RESOURCE", NULL };
        const struct inventory *inventory = &seen->inventory;
        bool wide = listing_form(listing) == LISTING_WIDE;
        struct table table;
        char text[48];

        listing_table(listing, wide ? more : plain, &table);
        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *group = &inventory->groups[i];

                table_add(&table, TABLE_PLAIN, "%s", group->name);
                if (wide) {
                        table_add(&table, TABLE_PLAIN, "%s", group->vendor);
                        table_add(&table, TABLE_PLAIN, "%s", group->runtime);
                }
                table_add(&table, TABLE_PLAIN, "%s", group->model);
                table_add(&table, group->healthy == group->total ? TABLE_GOOD : TABLE_WARN, "%u of %u",
                          group->healthy, group->total);
                if (seen->free_known[i])
                        table_add(&table, TABLE_PLAIN, "%u", group->free);
                else
                        table_add(&table, TABLE_FAINT, "%s", "");
                format_memory(group->memory_bytes, text, sizeof(text));
                table_add(&table, TABLE_PLAIN, "%s", text);
                table_add(&table, TABLE_PLAIN, "%s", group->fabric);
                if (wide) {
                        table_add(&table, TABLE_FAINT, "%s", group->fabric_source);
                        format_peak(group, text, sizeof(text));
                        table_add(&table, TABLE_PLAIN, "%s", text);
                        text[0] = '\0';
                        if (group->measured_gflops > 0)
                                (void) text_format(text, sizeof(text), "%.1f %s", group->measured_gflops,
                                                   group->measured_precision);
                        table_add(&table, TABLE_PLAIN, "%s", text);
                }
                table_add(&table, TABLE_PLAIN, "%s", group->resource);
        }
        return listing_table_end(listing, &table);
}

#define NODES_BYTES (DEVICE_NODES_MAX * DEVICE_NODE_BYTES + DEVICE_NODES_MAX)

/* "/dev/a,/dev/b" */
static const char *format_nodes(const struct device *device, char nodes[NODES_BYTES])
{
        nodes[0] = '\0';
        for (size_t i = 0; i < device->node_count; i++)
                (void) text_format(nodes + strlen(nodes), NODES_BYTES - strlen(nodes), "%s%s",
                                   i > 0 ? "," : "", device->nodes[i]);
        return nodes;
}

static void add_device_row(struct table *table, const struct device *device, bool wide)
{
        char nodes[NODES_BYTES];

        table_add(table, TABLE_PLAIN, "%s", device->id);
        table_add(table, device->group[0] != '\0' ? TABLE_PLAIN : TABLE_FAINT, "%s", device->group);
        if (wide)
                table_add(table, TABLE_PLAIN, "%u", device->index);
        table_add(table, TABLE_PLAIN, "%s", device->pci);
        if (wide)
                table_add(table, TABLE_PLAIN, "%s", device->partition);
        if (device->numa >= 0)
                table_add(table, TABLE_PLAIN, "%d", device->numa);
        else
                table_add(table, TABLE_PLAIN, "%s", "");
        table_add(table, colour_of(device->health), "%s", device_health_name(device->health));
        table_add(table, TABLE_PLAIN, "%s", device->reason);
        if (!wide)
                return;
        table_add(table, TABLE_PLAIN, "%s", format_nodes(device, nodes));
        table_add(table, TABLE_FAINT, "%s", device->message);
}

static int print_devices(const struct inventory *inventory, const struct listing_arguments *listing)
{
        static const char *const plain[] = { "DEVICE", "GROUP", "PCI", "NUMA", "HEALTH", "REASON", NULL };
        static const char *const more[] = { "DEVICE", "GROUP",  "INDEX", "PCI",     "PARTITION", "NUMA",
                                            "HEALTH", "REASON", "NODES", "MESSAGE", NULL };
        bool wide = listing_form(listing) == LISTING_WIDE;
        struct table table;

        listing_table(listing, wide ? more : plain, &table);
        for (size_t i = 0; i < inventory->device_count; i++)
                add_device_row(&table, &inventory->devices[i], wide);
        return listing_table_end(listing, &table);
}

static int print_tables(const struct seen *seen, const struct listing_arguments *listing)
{
        int r;

        if (listing->watching != NULL) /* the devices alone: a row that changes is of one table */
                return print_devices(&seen->inventory, listing);
        if (seen->inventory.device_count == 0) {
                puts("no accelerators and no CPU groups found");
                return 0;
        }
        r = print_groups(seen, listing);
        if (r == 0) {
                putchar('\n');
                r = print_devices(&seen->inventory, listing);
        }
        return r;
}

static void print_csv_row(struct csv *csv, const struct inventory *inventory, const struct device *device)
{
        const struct device_group *group =
                device->group[0] == '\0' ? NULL : inventory_find_group(inventory, device->group);
        char nodes[NODES_BYTES];

        csv_word(csv, inventory->node);
        csv_word(csv, device->id);
        csv_word(csv, device->group);
        csv_count(csv, device->index);
        csv_word(csv, device->vendor);
        csv_word(csv, device->model);
        csv_word(csv, group == NULL ? NULL : group->runtime);
        csv_word(csv, group == NULL ? NULL : group->resource);
        csv_word(csv, group == NULL ? NULL : group->fabric);
        csv_word(csv, device->pci);
        csv_word(csv, device->partition);
        csv_number(csv, device->numa < 0 ? NAN : (double) device->numa);
        csv_known(csv, device->memory_bytes);
        csv_word(csv, device_health_name(device->health));
        csv_word(csv, device->usable ? "true" : "false");
        csv_word(csv, device->reason);
        csv_word(csv, device->message);
        csv_word(csv, format_nodes(device, nodes));
        csv_end_row(csv);
}

static int print_csv(const struct inventory *inventory, const struct listing_arguments *listing)
{
        static const char *const names[] = { "node",      "device",    "group",        "index",  "vendor",
                                             "model",     "runtime",   "resource",     "fabric", "pci",
                                             "partition", "numa_node", "memory_bytes", "health", "usable",
                                             "reason",    "message",   "device_files", NULL };
        struct listing_csv rows;

        listing_csv(listing, names, &rows);
        for (size_t i = 0; i < inventory->device_count; i++)
                print_csv_row(&rows.csv, inventory, &inventory->devices[i]);
        return listing_csv_end(listing, &rows);
}

static int print_names(const struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                listing_name(inventory->devices[i].id);
        return 0;
}

static int print_document(const struct inventory *inventory, bool yaml)
{
        json_t *value = inventory_json_encode(inventory);
        int r = document_print(value, yaml, JSON_REAL_PRECISION(15));

        json_decref(value);
        return r;
}

/* Of json and yaml the node is the thing, of names a device is. */
static int print_objects(const struct inventory *inventory, const struct listing_arguments *listing)
{
        json_t *node = inventory_json_encode(inventory);
        int r;

        if (listing_form(listing) == LISTING_NAME)
                r = listing_array(listing, json_object_get(json_object_get(node, "status"), "devices"), "id");
        else
                r = listing_object(listing, inventory->node, inventory->node, json_incref(node),
                                   JSON_REAL_PRECISION(15));
        json_decref(node);
        return r < 0 ? r : listing_objects_end(listing);
}

static int print_form(const struct seen *seen, const struct listing_arguments *listing)
{
        enum listing_form form = listing_form(listing);

        if (listing->watching != NULL && (listing_is_document(form) || form == LISTING_NAME))
                return print_objects(&seen->inventory, listing);
        if (listing_is_document(form))
                return print_document(&seen->inventory, form == LISTING_YAML);
        if (form == LISTING_CSV)
                return print_csv(&seen->inventory, listing);
        return form == LISTING_NAME ? print_names(&seen->inventory) : print_tables(seen, listing);
}

static int print_seen(const struct seen *seen, const struct listing_arguments *listing)
{
        if (print_form(seen, listing) == 0 && fflush(stdout) == 0 && !ferror(stdout))
                return EXIT_DONE;
        fprintf(stderr, "remuda devices: the output could not be written\n");
        return EXIT_FAILED;
}

/* In whole seconds. */
static uint64_t now_usec(void)
{
        return clock_realtime_usec() / 1000000 * 1000000;
}

/* A one-shot look knows no earlier state: what it sees holds since now. */
static void set_since(struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                inventory->devices[i].since_usec = now_usec();
}

static void set_name(const struct tree *tree, struct inventory *inventory)
{
        if (tree_read_text(tree, "proc/sys/kernel/hostname", inventory->node, sizeof(inventory->node)) > 0)
                return;
        if (!tree_is_live(tree) || gethostname(inventory->node, sizeof(inventory->node) - 1) < 0)
                (void) text_copy(inventory->node, sizeof(inventory->node), "machine");
}

static int read_config(const char *path, struct agent_config *ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0;
        int r = read_file(path, AGENT_CONFIG_MAX_BYTES, &bytes, &size, err);

        return r < 0 ? r : agent_config_parse(path, bytes, size, ret, err);
}

static void print_not_measured(const struct device_group *group, const char *why)
{
        fprintf(stderr, "remuda devices: group %s was not measured: %s\n", group->name, why);
}

/* By rename: the agent reads the old file or the new one. */
static int save_measured(const char *path, const struct inventory *inventory, struct err *err)
{
        json_t *value = measured_json_encode(inventory);
        CLEANUP(free_p) char *text = value == NULL ? NULL : json_dumps(value, JSON_INDENT(1));
        char folder[TREE_PATH_BYTES];
        const char *slash = strrchr(path, '/');
        int r;

        json_decref(value);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for what was measured");
        if (slash != NULL && slash != path &&
            text_format(folder, sizeof(folder), "%.*s", (int) (slash - path), path))
                (void) mkdir(folder, 0755);
        r = whole_file_write(path, text, strlen(text), 0644, 0, err);
        return r < 0 ? err_wrap(err, r, "--save") : 0;
}

/* The agent's group that a device of ours is in, whatever the group is called there. NULL = it knows none. */
static const struct device_group *group_there(const struct inventory *agent, const struct inventory *ours,
                                              const char *group)
{
        for (size_t i = 0; i < ours->device_count; i++) {
                const struct device *there = strcmp(ours->devices[i].group, group) != 0
                                                     ? NULL
                                                     : inventory_find_device(agent, ours->devices[i].id);

                if (there != NULL && there->group[0] != '\0')
                        return inventory_find_group(agent, there->group);
        }
        return NULL;
}

/* Who holds a device no file says: the agent does, which asks the kubelet. Where none answers, it stays
 * unknown. */
static void ask_free(const struct devices_options *options, struct seen *seen)
{
        const struct agent_client client = { .socket = options->socket };
        CLEANUP(inventory_free) struct inventory agent = { 0 };

        if (options->socket == NULL &&
            (options->machine != NULL || (options->root != NULL && !is_this_machine(options->root))))
                return;
        if (agent_client_inventory(&client, &agent, NULL) < 0)
                return;
        for (size_t i = 0; i < seen->inventory.group_count; i++) {
                struct device_group *group = &seen->inventory.groups[i];
                const struct device_group *there = group_there(&agent, &seen->inventory, group->name);

                seen->free_known[i] = there != NULL;
                if (there != NULL && there->free < group->free)
                        group->free = there->free;
        }
}

static int look(const struct devices_options *options, struct inventory *ret, struct err *err)
{
        CLEANUP(agent_config_free) struct agent_config config = { 0 };
        struct tree *tree = NULL;
        int r = 0;

        if (options->config != NULL)
                r = read_config(options->config, &config, err);
        if (r == 0)
                r = open_tree(options->root, options->machine, &tree, err);
        if (r == 0)
                r = discovery_run(tree, &config.discovery, ret, err);
        if (r == 0) {
                set_since(ret);
                set_name(tree, ret);
        }
        if (r == 0 && options->measure)
                (void) measure_groups(tree, ret, now_usec(), print_not_measured);
        if (r == 0 && options->save != NULL)
                r = save_measured(options->save, ret, err);
        tree_close(tree);
        return r < 0 ? r : 0;
}

static int look_again(void *userdata, struct err *err)
{
        const struct devices_options *options = userdata;
        struct seen seen = { 0 };
        int r;

        inventory_init(&seen.inventory);
        r = look(options, &seen.inventory, err);
        if (r == 0) {
                ask_free(options, &seen);
                r = print_form(&seen, &options->listing);
        }
        inventory_free(&seen.inventory);
        return r;
}

/* sysfs tells nobody of changes: it is read. When a device was seen is no change of it. */
static int watch(struct devices_options *options)
{
        static const char *const keys[] = { "DEVICE", "device", NULL };
        static const char *const ageing[] = { "since", NULL };
        struct listing_watch rows = { .keys = keys, .ageing = ageing };
        struct watching watching = { .program = &command_devices_options,
                                     .listing = &options->listing,
                                     .look = look_again,
                                     .userdata = options,
                                     .period_usec = WATCHING_PERIOD_USEC,
                                     .rows = &rows };

        return watching_run(&watching);
}

int command_devices(int argc, char **argv)
{
        struct devices_options options = { 0 };
        struct seen seen = { 0 };
        struct err err = { 0 };
        const char *conflict;
        int r = options_start(&command_devices_options, REMUDA_VERSION, argc, argv, &options, NULL, stdout,
                              stderr);

        if (r >= 0)
                return r;
        conflict = find_conflict(&options);
        if (conflict != NULL) {
                fprintf(stderr, "remuda devices: %s\n", conflict);
                return EXIT_USAGE;
        }
        if (options.listing.watch)
                return watch(&options);
        inventory_init(&seen.inventory);
        r = look(&options, &seen.inventory, &err);
        if (r < 0) {
                fprintf(stderr, "remuda devices: %s\n", err.msg);
                r = r == -E2BIG ? EXIT_FAILED : exit_code_of(r); /* larger than any machine */
        } else {
                ask_free(&options, &seen);
                r = print_seen(&seen, &options.listing);
        }
        inventory_free(&seen.inventory);
        return r;
}
