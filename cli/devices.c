/* remuda devices: what this machine, a directory tree or a machine file has. */
#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
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
#include "base/text.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/open_tree.h"
#include "cli/command/table.h"
#include "io/clock.h"

enum format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_YAML };

struct devices_options {
        const char *root, *machine, *config, *save; /* save: NULL = what is measured is not kept */
        enum format format;
        bool measure;
};

static void print_help(FILE *out)
{
        fputs("usage: remuda devices [--root DIR | --machine FILE] [--config FILE] [--measure [--save]]\n"
              "                      [-o table|wide|json|yaml]\n"
              "\n"
              "Shows the accelerators and CPU groups of this machine, of a directory that holds sys/ (and "
              "proc/,\n"
              "dev/), or of a machine file (`remuda machine record`).\n"
              "\n"
              "  --root DIR      look at DIR instead of /\n"
              "  --machine FILE  look at a machine file\n"
              "  --config FILE   the agent's configuration: added models and vendors, exclusions\n"
              "  --measure       run a matrix product for a second on a device of each group\n"
              "  --save[=FILE]   keep what was measured where the agent reads it (" MEASURED_PATH ")\n"
              "  -o FORMAT       table (default), wide, json or yaml\n",
              out);
}

static int parse_format(const char *text, enum format *ret)
{
        static const char *const names[] = { "table", "wide", "json", "yaml" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], text) == 0) {
                        *ret = (enum format) i;
                        return 0;
                }
        return -EINVAL;
}

/* "/", or where a container sees the host: its sys/ is the kernel's. */
static bool is_this_machine(const char *root)
{
        char path[TREE_PATH_BYTES];
        struct statfs fs;

        return strcmp(root, "/") == 0 || (text_format(path, sizeof(path), "%s/sys", root) &&
                                          statfs(path, &fs) == 0 && fs.f_type == SYSFS_MAGIC);
}

/* Return: -1 to go on, or an exit code. */
static int parse_arguments(int argc, char **argv, struct devices_options *options)
{
        static const struct option longs[] = {
                { "root", required_argument, NULL, 'r' },   { "machine", required_argument, NULL, 'm' },
                { "output", required_argument, NULL, 'o' }, { "config", required_argument, NULL, 'c' },
                { "measure", no_argument, NULL, 'M' },      { "save", optional_argument, NULL, 's' },
                { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
        };
        int c;

        optind = 1;
        while ((c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
                switch (c) {
                case 'r':
                        options->root = optarg;
                        break;
                case 'm':
                        options->machine = optarg;
                        break;
                case 'o':
                        if (parse_format(optarg, &options->format) == 0)
                                break;
                        fprintf(stderr, "remuda devices: -o takes table, wide, json or yaml, not '%s'\n",
                                optarg);
                        return EXIT_USAGE;
                case 'c':
                        options->config = optarg;
                        break;
                case 'M':
                        options->measure = true;
                        break;
                case 's':
                        options->save = optarg != NULL ? optarg : MEASURED_PATH;
                        break;
                case 'h':
                        print_help(stdout);
                        return EXIT_DONE;
                default:
                        fputs("`remuda devices --help` says what it takes\n", stderr);
                        return EXIT_USAGE;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "remuda devices: unexpected argument '%s'\n", argv[optind]);
                return EXIT_USAGE;
        }
        if (options->measure && options->machine != NULL) {
                fputs("remuda devices: --measure runs on this machine: it excludes --machine\n", stderr);
                return EXIT_USAGE;
        }
        if (options->measure && options->root != NULL && !is_this_machine(options->root)) {
                fprintf(stderr,
                        "remuda devices: --measure runs on this machine, and '%s' is not this machine's "
                        "/sys\n",
                        options->root);
                return EXIT_USAGE;
        }
        if (options->save != NULL && !options->measure) {
                fputs("remuda devices: --save keeps what --measure measured: give both\n", stderr);
                return EXIT_USAGE;
        }
        if (options->root != NULL && options->machine != NULL) {
                fputs("remuda devices: --root and --machine exclude each other\n", stderr);
                return EXIT_USAGE;
        }
        return -1;
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

static void format_rate(double tflops, char *ret, size_t ret_bytes)
{
        ret[0] = '\0';
        if (tflops > 0)
                (void) text_format(ret, ret_bytes, "%g", tflops);
}

static int print_groups(const struct inventory *inventory, bool wide, bool colour)
{
        static const char *const plain[] = { "GROUP",  "MODEL",  "HEALTHY",  "FREE",
                                             "MEMORY", "FABRIC", "RESOURCE", NULL };
        static const char *const more[] = { "GROUP",   "VENDOR",   "RUNTIME", "MODEL",  "HEALTHY",
                                            "FREE",    "MEMORY",   "FABRIC",  "SOURCE", "TFLOP/S",
                                            "GFLOP/S", "RESOURCE", NULL };
        CLEANUP(table_free) struct table table = { 0 };
        char text[48];

        table_begin(&table, wide ? more : plain);
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
                table_add(&table, TABLE_PLAIN, "%u", group->free);
                format_memory(group->memory_bytes, text, sizeof(text));
                table_add(&table, TABLE_PLAIN, "%s", text);
                table_add(&table, TABLE_PLAIN, "%s", group->fabric);
                if (wide) {
                        table_add(&table, TABLE_FAINT, "%s", group->fabric_source);
                        format_rate(group->tflops_bf16, text, sizeof(text));
                        table_add(&table, TABLE_PLAIN, "%s", text);
                        text[0] = '\0';
                        if (group->measured_gflops > 0)
                                (void) text_format(text, sizeof(text), "%.1f", group->measured_gflops);
                        table_add(&table, TABLE_PLAIN, "%s", text);
                }
                table_add(&table, TABLE_PLAIN, "%s", group->resource);
        }
        return table_print(&table, colour, stdout);
}

static void add_device_row(struct table *table, const struct device *device, bool wide)
{
        char nodes[DEVICE_NODES_MAX * DEVICE_NODE_BYTES + DEVICE_NODES_MAX] = "";

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
        for (size_t i = 0; i < device->node_count; i++)
                (void) text_format(nodes + strlen(nodes), sizeof(nodes) - strlen(nodes), "%s%s",
                                   i > 0 ? "," : "", device->nodes[i]);
        table_add(table, TABLE_PLAIN, "%s", nodes);
        table_add(table, TABLE_FAINT, "%s", device->message);
}

static int print_devices(const struct inventory *inventory, bool wide, bool colour)
{
        static const char *const plain[] = { "DEVICE", "GROUP", "PCI", "NUMA", "HEALTH", "REASON", NULL };
        static const char *const more[] = { "DEVICE", "GROUP",  "INDEX", "PCI",     "PARTITION", "NUMA",
                                            "HEALTH", "REASON", "NODES", "MESSAGE", NULL };
        CLEANUP(table_free) struct table table = { 0 };

        table_begin(&table, wide ? more : plain);
        for (size_t i = 0; i < inventory->device_count; i++)
                add_device_row(&table, &inventory->devices[i], wide);
        return table_print(&table, colour, stdout);
}

static int print_tables(const struct inventory *inventory, bool wide)
{
        bool colour = table_wants_colour(stdout);
        int r;

        if (inventory->device_count == 0) {
                puts("no accelerators and no CPU groups found");
                return 0;
        }
        r = print_groups(inventory, wide, colour);
        if (r == 0) {
                putchar('\n');
                r = print_devices(inventory, wide, colour);
        }
        return r;
}

static int print_inventory(const struct inventory *inventory, enum format format)
{
        json_t *document = format >= FORMAT_JSON ? inventory_encode(inventory) : NULL;
        int r = format >= FORMAT_JSON
                        ? document_print(document, format == FORMAT_YAML, JSON_REAL_PRECISION(15))
                        : print_tables(inventory, format == FORMAT_WIDE);

        json_decref(document);
        if (r == 0 && fflush(stdout) == 0 && !ferror(stdout))
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
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");
        CLEANUP(free_p) char *bytes = malloc(AGENT_CONFIG_MAX_BYTES + 1);
        size_t size;

        if (file == NULL)
                return err_set(err, -errno, "open '%s': %m", path);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for '%s'", path);
        size = fread(bytes, 1, AGENT_CONFIG_MAX_BYTES + 1, file);
        if (ferror(file))
                return err_set(err, -EIO, "read '%s': %m", path);
        return agent_config_parse(path, bytes, size, ret, err);
}

static void tell_not_measured(const struct device_group *group, const char *why)
{
        fprintf(stderr, "remuda devices: group %s was not measured: %s\n", group->name, why);
}

/* By rename: the agent reads the old file or the new one. */
static int save_measured(const char *path, const struct inventory *inventory, struct err *err)
{
        json_t *value = measured_encode(inventory);
        char temporary[TREE_PATH_BYTES], folder[TREE_PATH_BYTES];
        const char *slash = strrchr(path, '/');
        int r = 0;

        if (value == NULL)
                return err_set(err, -ENOMEM, "no memory for what was measured");
        if (slash != NULL && slash != path &&
            text_format(folder, sizeof(folder), "%.*s", (int) (slash - path), path))
                (void) mkdir(folder, 0755);
        if (!text_format(temporary, sizeof(temporary), "%s.new", path))
                r = err_set(err, -ENAMETOOLONG, "--save: '%.60s...' is too long", path);
        else if (json_dump_file(value, temporary, JSON_INDENT(1)) < 0 || rename(temporary, path) < 0)
                r = err_set(err, errno != 0 ? -errno : -EIO, "--save: '%s': %m", path);
        json_decref(value);
        return r;
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
                r = discover(tree, &config.discovery, ret, err);
        if (r == 0) {
                set_since(ret);
                set_name(tree, ret);
        }
        if (r == 0 && options->measure)
                (void) measure_groups(tree, ret, now_usec(), tell_not_measured);
        if (r == 0 && options->save != NULL)
                r = save_measured(options->save, ret, err);
        tree_close(tree);
        return r < 0 ? r : 0;
}

int command_devices(int argc, char **argv)
{
        struct devices_options options = { 0 };
        CLEANUP(inventory_free) struct inventory inventory;
        struct err err = { 0 };
        int r = parse_arguments(argc, argv, &options);

        inventory_init(&inventory);
        if (r >= 0)
                return r;
        r = look(&options, &inventory, &err);
        if (r < 0) {
                fprintf(stderr, "remuda devices: %s\n", err.msg);
                return r == -ENOENT ? EXIT_NOT_FOUND : r == -EBADMSG ? EXIT_USAGE : EXIT_FAILED;
        }
        return print_inventory(&inventory, options.format);
}
