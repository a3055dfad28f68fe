/* Hardware: what the cluster must know of a node beside its accelerators. */
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/memory_type.h"
#include "agent/discovery/network.h"
#include "agent/discovery/scan.h"
#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"

/* The value of "key   : value" in the first part of /proc/cpuinfo. */
static bool cpuinfo_value(const char *text, const char *key, char *ret, size_t ret_bytes)
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

        (void) cpuinfo_value(text, "CPU implementer", implementer, sizeof(implementer));
        (void) cpuinfo_value(text, "CPU part", part, sizeof(part));
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

static void read_cpu(const struct tree *tree, struct hardware *hardware)
{
        static const char *const keys[] = { "model name", "cpu model", "Model Name", "Processor", "cpu" };
        char text[TREE_VALUE_BYTES], mhz[32];
        ssize_t size = tree_read(tree, "proc/cpuinfo", text, sizeof(text) - 1);
        double value;
        int64_t khz;

        text[size > 0 ? size : 0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(keys) && hardware->cpu_model[0] == '\0'; i++)
                (void) cpuinfo_value(text, keys[i], hardware->cpu_model, sizeof(hardware->cpu_model));
        if (hardware->cpu_model[0] == '\0')
                arm_model(text, hardware->cpu_model, sizeof(hardware->cpu_model));
        if (tree_read_int64(tree, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", &khz) == 0 &&
            khz > 0 && khz < 100000000)
                hardware->max_mhz = (unsigned) (khz / 1000);
        else if ((hardware->max_mhz = named_mhz(hardware->cpu_model)) == 0 &&
                 cpuinfo_value(text, "cpu MHz", mhz, sizeof(mhz)) && text_parse_double(mhz, &value) == 0 &&
                 value > 0 && value < 100000)
                hardware->max_mhz = (unsigned) value; /* what it runs at now: better than nothing */
}

static void read_memory(const struct tree *tree, struct hardware *hardware)
{
        char text[TREE_VALUE_BYTES], digits[24] = "";
        ssize_t size = tree_read(tree, "proc/meminfo", text, sizeof(text) - 1);
        uint64_t kibibytes;

        text[size > 0 ? size : 0] = '\0';
        if (!cpuinfo_value(text, "MemTotal", digits, sizeof(digits)))
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

void scan_hardware(struct scan *scan)
{
        struct hardware *hardware = &scan->inventory->hardware;

        read_cpu(scan->tree, hardware);
        read_memory(scan->tree, hardware);
        read_cores(scan->tree, hardware);
        scan_memory_type(scan->tree, hardware->memory_type, sizeof(hardware->memory_type));
        scan_networks(scan->tree, hardware);
}
