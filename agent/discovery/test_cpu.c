/* CPU groups, row by row: NUMA nodes, sockets and core groups by every way that kernels have told of them.
 * What cannot be made sense of is as if it were not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

#define NODE   "/sys/devices/system/node/node"
#define CPU    "/sys/devices/system/cpu/"
#define SOCKET "/topology/physical_package_id = "
#define MODEL  "/proc/cpuinfo |\n\tmodel name : "

/* clang-format off */
/* "ID NUMA MIB FABRIC;" of each; MIB of memory. */
static const struct {
        const char *what, *machine, *read;
} rows[] = {
        { "nodes by their lists", NODE "0/cpulist = 0-3\n" NODE "2/cpulist = 4-7", "cpu-numa0 0 0 numa;cpu-numa2 2 0 numa;" },
        { "nodes that are not online are not there", "/sys/devices/system/node/online = 1\n" NODE "0/cpulist = 0-3\n" NODE "1/cpulist = 4-7", "cpu-numa1 1 0 numa;" },
        { "a list of nodes that is none", "/sys/devices/system/node/online = x\n" NODE "1/cpulist = 4-7", "cpu-numa1 1 0 numa;" },
        { "a node of memory alone", NODE "0/cpulist = 0-3\n" NODE "1/cpulist = ", "cpu-numa0 0 0 numa;" },
        { "masks of older kernels", NODE "0/cpumap = 0000000F,ffffffff\n" NODE "1/cpumap = 00000000,00000000\n" NODE "2/cpumap = zz", "cpu-numa0 0 0 numa;" },
        { "a list that is none, and a mask", NODE "0/cpulist = x\n" NODE "0/cpumap = 3", "cpu-numa0 0 0 numa;" },
        { "memory of each node", NODE "0/cpulist = 0\n" NODE "0/meminfo |\n\tNode 0 MemTotal:  2048 kB\n" NODE "1/cpulist = 1\n"
          NODE "1/meminfo |\n\tNode 1 MemTotal:\t4096 kB", "cpu-numa0 0 2 numa;cpu-numa1 1 4 numa;" },
        { "memory that is not told is shared out", "/proc/meminfo |\n\tMemTotal: 8192 kB\n" NODE "0/cpulist = 0\n" NODE "0/meminfo |\n\tMemFree: 1 kB\n"
          NODE "1/cpulist = 1\n" NODE "1/meminfo |\n\tNode 1 MemTotal: much", "cpu-numa0 0 4 numa;cpu-numa1 1 4 numa;" },
        { "memory beyond numbers", "/proc/meminfo |\n\tMemTotal: 8192 kB\n" NODE "0/cpulist = 0\n" NODE "0/meminfo |\n\tMemTotal: 99999999999999999999999999 kB\n"
          NODE "1/cpulist = 1\n" NODE "1/meminfo |\n\tMemTotal: 18446744073709551 kB", "cpu-numa0 0 4 numa;cpu-numa1 1 4 numa;" },
        { "sockets", CPU "online = 0-2\n" CPU "cpu0" SOCKET "1\n" CPU "cpu1" SOCKET "0\n" CPU "cpu2" SOCKET "1", "cpu-socket0 -1 0 socket;cpu-socket1 -1 0 socket;" },
        { "sockets that are none are the first", CPU "online = 0-3\n" CPU "cpu0" SOCKET "-1\n" CPU "cpu1" SOCKET "65536\n" CPU "cpu2" SOCKET "x", "cpu-socket0 -1 0 socket;" },
        { "processors by their folders", CPU "online = x\n" CPU "cpu0" SOCKET "0\n" CPU "cpu1" SOCKET "1\n" CPU "cpufreq/x = 1", "cpu-socket0 -1 0 socket;cpu-socket1 -1 0 socket;" },
        { "processors by /proc alone", "/proc/cpuinfo |\n\tprocessor : 0\n\tflags : x\n\tprocessor : 1\n\tvendor : x", "cpu-socket0 -1 0 socket;" },
        { "no processors", "/proc/cpuinfo |\n\tvendor : x", "" },
        { "an empty file", "/proc/cpuinfo = ", "" },
        /* Sunway */
        { "another architecture", "/proc/sys/kernel/arch = x86_64\n/usr/sw-mpp/\n" CPU "online = 0", "cpu-socket0 -1 0 socket;" },
        { "by the kernel's version", "/proc/version = Linux 5.10 Sunway\n" CPU "online = 0-5\n" MODEL "SW39000", "sunway-cg0 -1 16384 core-groups;sunway-cg1 -1 16384 core-groups;sunway-cg2 -1 16384 core-groups;sunway-cg3 -1 16384 core-groups;sunway-cg4 -1 16384 core-groups;sunway-cg5 -1 16384 core-groups;" },
        { "by the vendor's folder", "/usr/sw-mpp/\n" CPU "online = 0-5\n" MODEL "sw26010p", "sunway-cg0 -1 16384 core-groups;sunway-cg1 -1 16384 core-groups;sunway-cg2 -1 16384 core-groups;sunway-cg3 -1 16384 core-groups;sunway-cg4 -1 16384 core-groups;sunway-cg5 -1 16384 core-groups;" },
        { "a chip of four", CPU "online = 0-3\n/proc/meminfo |\n\tMemTotal: 8192 kB\n" MODEL "SW26010", "sunway-cg0 -1 8192 core-groups;sunway-cg1 -1 8192 core-groups;sunway-cg2 -1 8192 core-groups;sunway-cg3 -1 8192 core-groups;" },
        { "a server without a name", "/proc/sys/kernel/arch = sw_64\n" NODE "0/cpulist = 0-31\n/proc/meminfo |\n\tMemTotal: 8192 kB", "sunway-cg0 0 8 core-groups;" },
        { "a server with its name", MODEL "SW3231\n" NODE "1/cpulist = 0-31", "sunway-cg1 1 0 core-groups;" },
        { "no core groups", "/proc/sys/kernel/arch = sw_64", "" },
};
/* clang-format on */

static void every_row_is_read(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text machine = { 0 }, read = { 0 };
                struct inventory inventory;

                machine_begin(&machine);
                machine_line(&machine, "%s", rows[i].machine);
                machine_discover(&machine, NULL, &inventory);
                text_append(&read, "");
                for (size_t d = 0; d < inventory.device_count; d++) {
                        const struct device *device = &inventory.devices[d];

                        text_printf(&read, "%s %d %llu %s;", device->id, device->numa,
                                    (unsigned long long) device->memory_bytes >> 20,
                                    inventory_find_group(&inventory, device->group)->fabric);
                }
                inventory_free(&inventory);
                if (strcmp(read.data, rows[i].read) != 0) {
                        print_error("%s:\n  read '%s'\n  want '%s'\n", rows[i].what, read.data, rows[i].read);
                        wrong++;
                }
        }
        assert_int_equal(wrong, 0);
}

/* More processors than one page of text tells of. */
static void every_processor_of_a_long_file_counts(void **state)
{
        CLEANUP(text_free) struct text machine = { 0 };
        struct inventory inventory;

        (void) state;
        machine_begin(&machine);
        machine_line(&machine, "/proc/cpuinfo |\n\tmodel name : SW26010");
        for (unsigned i = 0; i < 400; i++)
                machine_line(&machine, "\tprocessor : %u", i);
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 400);
        assert_int_equal(inventory.group_count, 100);
        inventory_free(&inventory);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_is_read),
                cmocka_unit_test(every_processor_of_a_long_file_counts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
