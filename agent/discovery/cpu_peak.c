/* CPU peak: threads, lanes, and the product. */
#include "agent/discovery/cpu_peak.h"

#include <string.h>

#include "agent/discovery/hardware.h"
#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"

#define LANES_PLAIN 4
#define LANES_MAX   64 /* the longest vector that SVE allows: 2048 bits */

/* clang-format off */
static const struct { const char *flag; unsigned lanes; } units[] = { /* wider ones first */
        { "avx512f", 16 },
        { "avx2",     8 },
        { "avx",      8 },
        { "lasx",     8 },
};
/* clang-format on */

static bool has_word(const char *words, const char *word)
{
        size_t length = strlen(word);

        for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
                if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                        return true;
        return false;
}

static unsigned count_lanes(const struct tree *tree, const char *cpuinfo)
{
        char flags[TREE_VALUE_BYTES] = "";
        int64_t bytes;

        if (!hardware_cpuinfo_value(cpuinfo, "flags", flags, sizeof(flags)))
                (void) hardware_cpuinfo_value(cpuinfo, "Features", flags, sizeof(flags));
        if (has_word(flags, "sve") &&
            tree_read_int64(tree, "proc/sys/abi/sve_default_vector_length", &bytes) == 0 &&
            bytes / 4 >= LANES_PLAIN && bytes / 4 <= LANES_MAX)
                return (unsigned) bytes / 4;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (has_word(flags, units[i].flag))
                        return units[i].lanes;
        return LANES_PLAIN;
}

static double cpuinfo_number(const char *cpuinfo, const char *key)
{
        char text[32];
        double value;

        return hardware_cpuinfo_value(cpuinfo, key, text, sizeof(text)) &&
                               text_parse_double(text, &value) == 0 && value > 0
                       ? value
                       : 0;
}

/* Processors that share a core. In a recording the kernel's list may be missing; then x86's ratio tells. */
static unsigned threads_per_core(const struct tree *tree, const char *cpuinfo, unsigned processor)
{
        char path[96], text[TREE_VALUE_BYTES];
        double siblings = cpuinfo_number(cpuinfo, "siblings"), cores = cpuinfo_number(cpuinfo, "cpu cores");
        int count = 0;

        (void) text_format(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                           processor);
        if (tree_read_text(tree, path, text, sizeof(text)) > 0)
                count = ranges_parse(text, NULL, 0);
        if (count > 0)
                return (unsigned) count;
        return cores > 0 && siblings > cores && siblings <= 16 * cores ? (unsigned) (siblings / cores) : 1;
}

double cpu_peak_tflops(const struct tree *tree, const struct hardware *hardware, unsigned processors,
                       unsigned first)
{
        char cpuinfo[TREE_VALUE_BYTES];
        ssize_t size = tree_read(tree, "proc/cpuinfo", cpuinfo, sizeof(cpuinfo) - 1);
        unsigned threads, cores;
        uint64_t mflops;

        cpuinfo[size > 0 ? size : 0] = '\0';
        threads = threads_per_core(tree, cpuinfo, first);
        cores = processors > threads ? processors / threads : 1;
        mflops = (uint64_t) cores * hardware->max_mhz * count_lanes(tree, cpuinfo) * 2;
        return (double) mflops / 1e6; /* of whole MFLOP/s: as many digits as are told again exactly */
}
