/* A CPU group's peak is estimated from what its machine tells, and left unsaid where no clock is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

#define NODE0(list) "/sys/devices/system/node/node0/cpulist = " list "\n"
#define GHZ2        "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq = 2000000\n"
#define FLAGS(list) "/proc/cpuinfo |\n\tprocessor : 0\n\tflags\t\t: " list

/* clang-format off */
static const struct { const char *what, *lines; double tflops; } cases[] = {
        { "4 lanes where no flags are told",        NODE0("0-3") GHZ2 "/proc/meminfo = MemTotal: 1 kB", 0.064 },
        { "4 lanes of SSE",                         NODE0("0-3") GHZ2 FLAGS("fpu sse sse2"),            0.064 },
        { "8 of AVX2",                              NODE0("0-3") GHZ2 FLAGS("fpu sse2 avx avx2"),       0.128 },
        { "16 of AVX-512",                          NODE0("0-3") GHZ2 FLAGS("avx2 avx512f avx512bw"),   0.256 },
        { "a word is a whole word",                 NODE0("0-3") GHZ2 FLAGS("avx2x avx512vl_x noavx"),  0.064 },
        { "NEON has 4",                             NODE0("0-3") GHZ2 "/proc/cpuinfo |\n\tFeatures : fp asimd", 0.064 },
        { "SVE as many as programs are given",      NODE0("0-3") GHZ2 "/proc/cpuinfo |\n\tFeatures : fp asimd sve\n"
                                                    "/proc/sys/abi/sve_default_vector_length = 64",     0.256 },
        { "SVE of a length that cannot be",         NODE0("0-3") GHZ2 "/proc/cpuinfo |\n\tFeatures : asimd sve\n"
                                                    "/proc/sys/abi/sve_default_vector_length = -64",    0.064 },
        { "two threads share a core",               NODE0("0-7") GHZ2
                                                    "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list = 0,4", 0.064 },
        { "the siblings of the group's own core",   NODE0("8-15") GHZ2
                                                    "/sys/devices/system/cpu/cpu8/topology/thread_siblings_list = 8-9", 0.064 },
        { "a recording has x86's ratio alone",      NODE0("0-7") GHZ2 "/proc/cpuinfo |\n\tsiblings : 8\n\tcpu cores : 4", 0.064 },
        { "a ratio that cannot be",                 NODE0("0-3") GHZ2 "/proc/cpuinfo |\n\tsiblings : 800\n\tcpu cores : 4", 0.064 },
        { "the clock of its name",                  NODE0("0-3") "/proc/cpuinfo |\n\tmodel name : A CPU @ 2.50GHz", 0.08 },
        { "the clock it runs at",                   NODE0("0-3") "/proc/cpuinfo |\n\tcpu MHz : 1000.7",  0.032 },
        { "no clock",                               NODE0("0-3") "/proc/cpuinfo |\n\tprocessor : 0",     0 },
        { "a mask of processors",                   "/sys/devices/system/node/node0/cpumap = 00000000,0000000f\n" GHZ2
                                                    "/sys/devices/system/cpu/online = 0-3",             0.064 },
        { "a socket",                               "/sys/devices/system/cpu/online = 0-3\n" GHZ2
                                                    "/sys/devices/system/cpu/cpu1/topology/physical_package_id = 1", 0.048 },
};
/* clang-format on */

static void a_group_is_estimated_from_what_its_machine_tells(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "%s", cases[i].lines);
                machine_discover(&machine, NULL, &inventory);
                assert_in_range(inventory.group_count, 1, 2);
                if (inventory.groups[0].tflops_fp32 != cases[i].tflops ||
                    inventory.groups[0].tflops_estimated != (cases[i].tflops > 0) ||
                    inventory.groups[0].tflops_bf16 > 0 || inventory.groups[0].tflops_fp16 > 0)
                        fail_msg("%s: %.9g TFLOP/s", cases[i].what, inventory.groups[0].tflops_fp32);
                inventory_free(&inventory);
                text_free(&machine);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_group_is_estimated_from_what_its_machine_tells),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
