/* Hardware: what the cluster must know of a node beside its accelerators: processors, memory and its type
 * (from the firmware's SMBIOS table), and the network interfaces that are hardware. */
#include "agent/discovery/hardware.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"

#define TABLE_BYTES     ((size_t) 256 * 1024) /* a table of a large server has 60 KiB */
#define TYPE_MEMORY     17                    /* SMBIOS: Memory Device */
#define OFFSET_SIZE     0x0c
#define OFFSET_TYPE     0x12
#define TYPE_ETHERNET   1  /* ARPHRD_ETHER */
#define TYPE_INFINIBAND 32 /* ARPHRD_INFINIBAND */

/* SMBIOS 3.7, 7.18.2 */
static const struct {
        uint8_t code;
        const char *name;
} types[] = {
        { 0x18, "DDR3" }, { 0x1a, "DDR4" }, { 0x1d, "LPDDR3" }, { 0x1e, "LPDDR4" }, { 0x20, "HBM" },
        { 0x21, "HBM2" }, { 0x22, "DDR5" }, { 0x23, "LPDDR5" }, { 0x24, "HBM3" },   { 0x13, "DDR2" },
};

static const char *type_name(uint8_t code)
{
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i].code == code)
                        return types[i].name;
        return NULL;
}

/* One structure: type, length, handle, formatted part, then strings that end with an empty one.
 * Return: where the next begins, or `size` at the end. */
static size_t next_structure(const uint8_t *table, size_t size, size_t at)
{
        at += table[at + 1];
        while (at + 1 < size && (table[at] != 0 || table[at + 1] != 0))
                at++;
        return at + 2 < size ? at + 2 : size;
}

static void read_memory_type(const struct tree *tree, char *ret, size_t ret_bytes)
{
        CLEANUP(free_p) uint8_t *table = NULL;
        ssize_t size;

        if (!tree_has(tree, "sys/firmware/dmi/tables/DMI"))
                return;
        table = malloc(TABLE_BYTES);
        size = table == NULL ? -1 : tree_read(tree, "sys/firmware/dmi/tables/DMI", table, TABLE_BYTES);
        for (size_t at = 0; size > 0 && at + 4 < (size_t) size;
             at = next_structure(table, (size_t) size, at)) {
                const uint8_t *structure = table + at;
                const char *name;

                if (structure[1] < 4)
                        return;
                if (structure[0] != TYPE_MEMORY || structure[1] <= OFFSET_TYPE ||
                    at + OFFSET_TYPE >= (size_t) size ||
                    (structure[OFFSET_SIZE] | structure[OFFSET_SIZE + 1]) == 0)
                        continue;
                name = type_name(structure[OFFSET_TYPE]);
                if (name != NULL) {
                        (void) text_copy(ret, ret_bytes, name);
                        return;
                }
        }
}

static bool read_number(const struct tree *tree, const char *interface, const char *name, int64_t *ret)
{
        char path[TREE_PATH_BYTES];

        return text_format(path, sizeof(path), "sys/class/net/%s/%s", interface, name) &&
               tree_read_int64(tree, path, ret) == 0;
}

/* "200 Gb/sec (4X HDR)" of the interface's InfiniBand device, in Mbit/s; 0 = not known. */
static uint64_t infiniband_rate(const struct tree *tree, const char *interface)
{
        char path[TREE_PATH_BYTES], rate[64];
        struct tree_names names;
        double gigabits = 0;

        if (!text_format(path, sizeof(path), "sys/class/net/%s/device/infiniband", interface) ||
            tree_list(tree, path, &names) < 0)
                return 0;
        if (names.count > 0 &&
            text_format(path, sizeof(path), "sys/class/net/%s/device/infiniband/%s/ports/1/rate", interface,
                        names.names[0]) &&
            tree_read_text(tree, path, rate, sizeof(rate)) > 0) {
                rate[strspn(rate, "0123456789.")] = '\0';
                if (text_parse_double(rate, &gigabits) < 0 || gigabits < 0 || gigabits > 1e6)
                        gigabits = 0;
        }
        tree_names_free(&names);
        return (uint64_t) (gigabits * 1000);
}

/* Bridges, veth pairs, bonds and the like have no device; a virtual function serves somebody else's machine.
 */
static void add_interface(const struct tree *tree, const char *name, struct hardware *ret)
{
        struct hardware_network *network = &ret->networks[ret->network_count];
        char path[TREE_PATH_BYTES];
        int64_t type, speed;

        if (ret->network_count == NETWORKS_MAX || !read_number(tree, name, "type", &type) ||
            (type != TYPE_ETHERNET && type != TYPE_INFINIBAND))
                return;
        if (!text_format(path, sizeof(path), "sys/class/net/%s/device", name) || !tree_has(tree, path) ||
            !text_format(path, sizeof(path), "sys/class/net/%s/device/physfn", name) || tree_has(tree, path))
                return;
        *network = (struct hardware_network){ 0 };
        if (!text_copy(network->name, sizeof(network->name), name))
                return;
        (void) text_copy(network->kind, sizeof(network->kind),
                         type == TYPE_ETHERNET ? "ethernet" : "infiniband");
        if (read_number(tree, name, "speed", &speed) && speed > 0 && speed < 100000000)
                network->mbps = (uint64_t) speed; /* an interface without carrier says -1 or nothing */
        else if (type == TYPE_INFINIBAND)
                network->mbps = infiniband_rate(tree, name);
        ret->network_count++;
}

static void read_networks(const struct tree *tree, struct hardware *ret)
{
        struct tree_names names;

        if (tree_list(tree, "sys/class/net", &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++)
                add_interface(tree, names.names[i], ret);
        tree_names_free(&names);
}

bool hardware_cpuinfo_value(const char *text, const char *key, char *ret, size_t ret_bytes)
{
        for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
                const char *value;
                size_t length;

                line += *line == '\n';
                if (!text_starts_with(line, key))
                        continue;
                value = line + strlen(key);
                value += strspn(value, " \t");
                if (*value != ':')
                        continue;
                value++;
                value += strspn(value, " \t");
                length = strcspn(value, "\n");
                if (length == 0)
                        return false;
                if (length >= ret_bytes)
                        length = ret_bytes - 1;
                memcpy(ret, value, length);
                ret[length] = '\0';
                return true;
        }
        return false;
}

static void arm_model(const char *text, char *ret, size_t ret_bytes)
{
        static const struct {
                const char *implementer, *part, *name;
        } parts[] = {
                { "0x48", "0xd01", "Kunpeng 920" }, { "0x48", "0xd02", "Kunpeng 920B" },
                { "0x41", "0xd4f", "Neoverse V2" }, { "0x41", "0xd40", "Neoverse V1" },
                { "0x41", "0xd0c", "Neoverse N1" }, { "0x41", "0xd49", "Neoverse N2" },
                { "0x46", NULL, "Fujitsu A64FX" },  { "0x4e", NULL, "NVIDIA" },
                { "0x70", NULL, "Phytium" },        { "0xc0", NULL, "Ampere" },
                { "0x48", NULL, "HiSilicon" },      { "0x41", NULL, "Arm" },
        };
        char implementer[16] = "", part[16] = "";

        (void) hardware_cpuinfo_value(text, "CPU implementer", implementer, sizeof(implementer));
        (void) hardware_cpuinfo_value(text, "CPU part", part, sizeof(part));
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (strcmp(parts[i].implementer, implementer) == 0 &&
                    (parts[i].part == NULL || strcmp(parts[i].part, part) == 0)) {
                        (void) text_format(ret, ret_bytes, parts[i].part != NULL ? "%s" : "%s %s",
                                           parts[i].name, part);
                        return;
                }
}

/* "... @ 1.80GHz" of a model's name is 1800; 0 = no such end. */
static unsigned named_mhz(const char *model)
{
        const char *at = strrchr(model, '@');
        char digits[16];
        size_t length;
        double gigahertz;

        if (at == NULL || !text_ends_with(model, "GHz"))
                return 0;
        at += 1 + strspn(at + 1, " ");
        length = strspn(at, "0123456789.");
        if (length == 0 || length >= sizeof(digits))
                return 0;
        memcpy(digits, at, length);
        digits[length] = '\0';
        return text_parse_double(digits, &gigahertz) == 0 && gigahertz > 0 && gigahertz < 100
                       ? (unsigned) (gigahertz * 1000 + 0.5)
                       : 0;
}

/* What it runs at now, of "cpu MHz : 1800.123" or, on Sunway, "CPU frequency : 2100.00MHz": better than
 * nothing, and told apart from another clock. 0 = neither is there. */
static unsigned running_mhz(const char *cpuinfo)
{
        static const char *const keys[] = { "cpu MHz", "CPU frequency" };
        char value[32];
        double mhz = 0;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const char *unit;

                if (!hardware_cpuinfo_value(cpuinfo, keys[i], value, sizeof(value)))
                        continue;
                unit = value + strspn(value, "0123456789.");
                unit += strspn(unit, " ");
                if (*unit != '\0' && strcasecmp(unit, "MHz") != 0)
                        continue;
                value[strspn(value, "0123456789.")] = '\0';
                if (text_parse_double(value, &mhz) == 0 && mhz > 0 && mhz < 100000)
                        return (unsigned) mhz;
        }
        return 0;
}

static void read_cpu(const struct tree *tree, struct hardware *hardware)
{
        static const char *const keys[] = { "model name", "cpu model", "Model Name", "Processor", "cpu" };
        char text[TREE_VALUE_BYTES];
        ssize_t size = tree_read(tree, "proc/cpuinfo", text, sizeof(text) - 1);
        int64_t khz;

        text[size > 0 ? size : 0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(keys) && hardware->cpu_model[0] == '\0'; i++)
                (void) hardware_cpuinfo_value(text, keys[i], hardware->cpu_model,
                                              sizeof(hardware->cpu_model));
        if (hardware->cpu_model[0] == '\0')
                arm_model(text, hardware->cpu_model, sizeof(hardware->cpu_model));
        if (tree_read_int64(tree, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", &khz) == 0 &&
            khz > 0 && khz < 100000000)
                hardware->max_mhz = (unsigned) (khz / 1000);
        else if ((hardware->max_mhz = named_mhz(hardware->cpu_model)) == 0)
                hardware->max_mhz = running_mhz(text);
}

static void read_memory(const struct tree *tree, struct hardware *hardware)
{
        char text[TREE_VALUE_BYTES], digits[24] = "";
        ssize_t size = tree_read(tree, "proc/meminfo", text, sizeof(text) - 1);
        uint64_t kibibytes;

        text[size > 0 ? size : 0] = '\0';
        if (!hardware_cpuinfo_value(text, "MemTotal", digits, sizeof(digits)))
                return;
        digits[strspn(digits, "0123456789")] = '\0';
        if (text_parse_uint64(digits, &kibibytes) == 0 && kibibytes < UINT64_MAX / 2048)
                hardware->memory_bytes = kibibytes * 1024;
}

static void read_cores(const struct tree *tree, struct hardware *hardware)
{
        char text[TREE_VALUE_BYTES];
        int count;

        if (tree_read_text(tree, "sys/devices/system/cpu/online", text, sizeof(text)) <= 0)
                return;
        count = ranges_parse(text, NULL, 0); /* threads, where cores have several */
        hardware->cores = count > 0 ? (unsigned) count : 0;
}

void hardware_read(const struct tree *tree, struct hardware *ret)
{
        read_cpu(tree, ret);
        read_memory(tree, ret);
        read_cores(tree, ret);
        read_memory_type(tree, ret->memory_type, sizeof(ret->memory_type));
        read_networks(tree, ret);
}
