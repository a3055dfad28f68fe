/* CPU groups: every NUMA node with processors is a device in a group of its own; without NUMA nodes every
 * socket is; on Sunway (sw_64) every core group is, and a chip's core groups form the group.
 *
 * Core groups: on SW26010 and SW26010-Pro the kernel runs on the management core, so that one processor of
 * /proc is one core group; on the SMP servers (SW3231 and later) a NUMA node is taken for one. */
#include "agent/discovery/cpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/discovery/cpu_peak.h"
#include "agent/inventory/core_group.h"
#include "agent/vendor/rows.h"
#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"

#define CPUS_MAX  8192
#define NODES_MAX 1024

struct cpus {
        struct cpu_node { /* a NUMA node or socket that has processors */
                unsigned number;
                unsigned processors; /* how many */
                unsigned first;      /* one of them, where it is known */
        } nodes[NODES_MAX];          /* by number */
        size_t node_count;
        bool sockets; /* they are sockets */
        unsigned online[CPUS_MAX];
        size_t online_count;
};

static size_t read_ranges(const struct tree *tree, const char *path, unsigned *ret, size_t max)
{
        char text[TREE_VALUE_BYTES];
        int count;

        if (tree_read_text(tree, path, text, sizeof(text)) < 0)
                return 0;
        count = ranges_parse(text, ret, max);
        return count < 0 ? 0 : (size_t) count < max ? (size_t) count : max;
}

static int by_number(const void *a, const void *b)
{
        const struct cpu_node *x = a, *y = b;

        return x->number < y->number ? -1 : x->number > y->number;
}

/* How many bits "0000ff00,000000ff" has; 0 = it is no mask. */
static unsigned count_bits(const char *mask)
{
        static const char digits[] = "0123456789abcdef";
        unsigned count = 0;

        if (strspn(mask, "0123456789abcdefABCDEF,") != strlen(mask))
                return 0;
        for (const char *digit = mask; *digit != '\0'; digit++)
                if (*digit != ',')
                        count += (unsigned) __builtin_popcount(
                                (unsigned) (strchr(digits, tolower((unsigned char) *digit)) - digits));
        return count;
}

/* A NUMA node; without processors it has memory alone. Kernels before 2.6.25 tell them as a mask. */
static struct cpu_node read_node(const struct tree *tree, unsigned number)
{
        struct cpu_node node = { .number = number };
        char path[96], text[TREE_VALUE_BYTES];
        int count = 0;

        (void) text_format(path, sizeof(path), "sys/devices/system/node/node%u/cpulist", number);
        if (tree_read_text(tree, path, text, sizeof(text)) > 0)
                count = ranges_parse(text, &node.first, 1);
        node.processors = count > 0 ? (unsigned) count : 0;
        (void) text_format(path, sizeof(path), "sys/devices/system/node/node%u/cpumap", number);
        if (count <= 0 && tree_read_text(tree, path, text, sizeof(text)) > 0)
                node.processors = count_bits(text);
        return node;
}

static void read_nodes(const struct tree *tree, struct cpus *cpus)
{
        unsigned all[NODES_MAX];
        size_t count = read_ranges(tree, "sys/devices/system/node/online", all, NODES_MAX);

        if (count == 0)
                count = scan_numbers(tree, "sys/devices/system/node", "node", all, NODES_MAX);
        for (size_t i = 0; i < count; i++) {
                cpus->nodes[cpus->node_count] = read_node(tree, all[i]);
                cpus->node_count += cpus->nodes[cpus->node_count].processors > 0;
        }
        qsort(cpus->nodes, cpus->node_count, sizeof(*cpus->nodes), by_number);
}

static void read_sockets(const struct tree *tree, struct cpus *cpus)
{
        cpus->sockets = true;
        for (size_t i = 0; i < cpus->online_count; i++) {
                int64_t socket;
                char path[96];
                size_t known = 0;

                (void) text_format(path, sizeof(path),
                                   "sys/devices/system/cpu/cpu%u/topology/physical_package_id",
                                   cpus->online[i]);
                if (tree_read_int64(tree, path, &socket) < 0 || socket < 0 || socket >= RANGES_MAX)
                        socket = 0;
                while (known < cpus->node_count && cpus->nodes[known].number != (unsigned) socket)
                        known++;
                if (known == NODES_MAX)
                        continue;
                if (known == cpus->node_count)
                        cpus->nodes[cpus->node_count++] =
                                (struct cpu_node){ .number = (unsigned) socket, .first = cpus->online[i] };
                cpus->nodes[known].processors++;
        }
        qsort(cpus->nodes, cpus->node_count, sizeof(*cpus->nodes), by_number);
}

/* How many "processor : N" lines /proc/cpuinfo has: for trees without sys/devices/system/cpu. */
static void count_processors(const struct tree *tree, struct cpus *cpus)
{
        CLEANUP(free_p) char *text = NULL;
        ssize_t size = 0;

        for (size_t room = TREE_VALUE_BYTES; room <= TREE_FILE_BYTES; room *= 16) { /* few have the largest */
                free(text);
                text = malloc(room + 1);
                size = text == NULL ? -1 : tree_read(tree, "proc/cpuinfo", text, room);
                if (size < (ssize_t) room)
                        break;
        }
        if (size <= 0)
                return;
        text[size] = '\0';
        for (const char *line = text; line != NULL && cpus->online_count < CPUS_MAX;
             line = strchr(line, '\n')) {
                line += *line == '\n';
                if (text_starts_with(line, "processor"))
                        cpus->online[cpus->online_count] = (unsigned) cpus->online_count,
                        cpus->online_count++;
                if (*line == '\0')
                        break;
        }
}

static void read_cpus(const struct tree *tree, struct cpus *cpus)
{
        cpus->online_count = read_ranges(tree, "sys/devices/system/cpu/online", cpus->online, CPUS_MAX);
        if (cpus->online_count == 0)
                cpus->online_count =
                        scan_numbers(tree, "sys/devices/system/cpu", "cpu", cpus->online, CPUS_MAX);
        if (cpus->online_count == 0)
                count_processors(tree, cpus);
        read_nodes(tree, cpus);
        if (cpus->node_count == 0 && cpus->online_count > 0)
                read_sockets(tree, cpus);
}

/* MemTotal of a node's or of the whole machine's meminfo, bytes; 0 = not known. */
static uint64_t read_memory(const struct tree *tree, const char *path)
{
        char text[TREE_VALUE_BYTES * 2], digits[24];
        ssize_t size = tree_read(tree, path, text, sizeof(text) - 1);
        const char *at;
        uint64_t kibibytes;
        size_t length;

        if (size <= 0)
                return 0;
        text[size] = '\0';
        at = strstr(text, "MemTotal:");
        if (at == NULL)
                return 0;
        at += strlen("MemTotal:");
        at += strspn(at, " \t");
        length = strspn(at, "0123456789");
        if (length == 0 || length >= sizeof(digits))
                return 0;
        memcpy(digits, at, length);
        digits[length] = '\0';
        return text_parse_uint64(digits, &kibibytes) == 0 && kibibytes < UINT64_MAX / 2048 ? kibibytes * 1024
                                                                                           : 0;
}

static void describe_cpu(const struct scan *scan, struct device *device, struct scan_placement *placement)
{
        (void) text_copy(device->vendor, sizeof(device->vendor), vendor_cpu.name);
        (void) text_copy(device->model, sizeof(device->model), scan->inventory->hardware.cpu_model);
        device->health = HEALTH_HEALTHY;
        device->usable = true;
        (void) text_copy(placement->runtime, sizeof(placement->runtime), vendor_cpu.runtime);
        (void) text_copy(placement->resource, sizeof(placement->resource), vendor_cpu.resource);
}

static void estimate(const struct scan *scan, const struct cpu_node *node, struct scan_placement *placement)
{
        placement->tflops_fp32 =
                cpu_peak_tflops(scan->tree, &scan->inventory->hardware, node->processors, node->first);
        placement->tflops_estimated = placement->tflops_fp32 > 0;
}

static int add_cpu_groups(struct scan *scan, const struct cpus *cpus)
{
        for (size_t i = 0; i < cpus->node_count; i++) {
                const struct cpu_node *node = &cpus->nodes[i];
                struct device device = { .numa = cpus->sockets ? -1 : (int) node->number,
                                         .index = (unsigned) i };
                struct scan_placement placement = { .grouped = true, .order = (int) node->number };
                char path[96];
                int r;

                describe_cpu(scan, &device, &placement);
                (void) text_format(device.id, sizeof(device.id), "cpu-%s%u",
                                   cpus->sockets ? "socket" : "numa", node->number);
                (void) text_format(path, sizeof(path), "sys/devices/system/node/node%u/meminfo",
                                   node->number);
                device.memory_bytes = read_memory(scan->tree, path);
                if (device.memory_bytes == 0 || cpus->node_count == 1) /* hot-plugged memory has no node */
                        device.memory_bytes = scan->inventory->hardware.memory_bytes / cpus->node_count;
                (void) text_copy(placement.fabric, sizeof(placement.fabric),
                                 cpus->sockets ? "socket" : "numa");
                (void) text_copy(placement.source, sizeof(placement.source), "sysfs");
                (void) text_format(placement.key, sizeof(placement.key), "%u", node->number);
                estimate(scan, node, &placement);
                r = scan_add(scan, &device, &placement);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool contains_any(const char *text, const char *const *words)
{
        for (; *words != NULL; words++)
                if (strcasestr(text, *words) != NULL)
                        return true;
        return false;
}

/* A live root is asked by uname(2); a tree by what its kernel left in procfs. */
static bool is_sunway(const struct tree *tree)
{
        static const char *const words[] = {
                "sw_64", "sunway", "SW26010", "SW39000", "SW3231", "SW831", NULL
        };
        static const char *const files[] = { "proc/cpuinfo", "proc/version" };
        char text[TREE_VALUE_BYTES];
        struct utsname name;
        ssize_t size;

        if (tree_is_live(tree) && uname(&name) == 0)
                return strcmp(name.machine, "sw_64") == 0;
        if (tree_read_text(tree, "proc/sys/kernel/arch", text, sizeof(text)) > 0)
                return strcmp(text, "sw_64") == 0;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                size = tree_read(tree, files[i], text, sizeof(text) - 1);
                text[size > 0 ? size : 0] = '\0';
                if (contains_any(text, words))
                        return true;
        }
        return tree_has(tree, "usr/sw-mpp");
}

/* @chip: NULL = one of the SMP servers, whose nodes are its groups */
static int add_core_group(struct scan *scan, const struct cpus *cpus, size_t i, const struct core_group *chip)
{
        unsigned number = chip != NULL ? (unsigned) i : cpus->nodes[i].number,
                 which = chip != NULL ? number / chip->per_chip : 0;
        struct device device = { .numa = chip != NULL ? -1 : (int) number, .index = (unsigned) i };
        struct scan_placement placement = { .grouped = true, .order = (int) which };
        const char *model = scan->inventory->hardware.cpu_model;

        describe_cpu(scan, &device, &placement);
        (void) text_copy(device.vendor, sizeof(device.vendor), vendor_sunway.name);
        if (chip != NULL || model[0] == '\0')
                model = chip != NULL ? chip->chip : "SW-SMP";
        (void) text_copy(device.model, sizeof(device.model), model);
        (void) text_format(device.id, sizeof(device.id), "sunway-cg%u", number);
        device.memory_bytes = chip != NULL ? chip->memory_bytes
                              : cpus->node_count > 0
                                      ? scan->inventory->hardware.memory_bytes / cpus->node_count
                                      : 0;
        (void) text_copy(placement.runtime, sizeof(placement.runtime), vendor_sunway.runtime);
        (void) text_copy(placement.resource, sizeof(placement.resource), vendor_sunway.resource);
        (void) text_copy(placement.fabric, sizeof(placement.fabric), "core-groups");
        (void) text_copy(placement.source, sizeof(placement.source), chip != NULL ? "rule" : "sysfs");
        (void) text_format(placement.key, sizeof(placement.key), "chip%u", which);
        if (chip != NULL) {
                placement.tflops_fp16 = chip->tflops_fp16;
                placement.tflops_fp32 = chip->tflops_fp32;
        } else {
                estimate(scan, &cpus->nodes[i], &placement);
        }
        return scan_add(scan, &device, &placement);
}

int cpu_scan(struct scan *scan, struct err *err)
{
        CLEANUP(free_p) struct cpus *cpus = calloc(1, sizeof(*cpus));
        const struct core_group *chip;
        int r = 0;

        if (cpus == NULL)
                return err_set(err, -ENOMEM, "no memory for discovery");
        read_cpus(scan->tree, cpus);
        if (!is_sunway(scan->tree))
                r = add_cpu_groups(scan, cpus);
        else {
                chip = core_group_find(scan->inventory->hardware.cpu_model);
                for (size_t i = 0; r == 0 && i < (chip != NULL ? cpus->online_count : cpus->node_count); i++)
                        r = add_core_group(scan, cpus, i, chip);
        }
        return r < 0 ? err_set(err, r, "no memory for the CPU groups") : 0;
}
