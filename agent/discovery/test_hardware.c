/* What is read of a machine beside its accelerators, row by row: each way to say it, and each that is no way.
 * What cannot be made sense of stays unknown, and the rest is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/discovery/hardware.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"

/* clang-format off */
/* "MODEL|MHZ|CORES|BYTES|TYPE|NETWORK KIND MBPS;" */
static const struct {
        const char *machine, *read;
} rows[] = {
        /* processors */
        { "",
          "|0|0|0||" },
        { "/proc/cpuinfo |\n\tprocessor : 0\n\tmodel name\t: Xeon\n\tmodel name\t: other\n",
          "Xeon|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel names\t: no\n\tcpu model : Loongson\n",
          "Loongson|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name\t:   \n\tProcessor : ARM\n",
          "ARM|0|0|0||" },
        { "/proc/cpuinfo |\n\tCPU implementer\t: 0x48\n\tCPU part\t: 0xd01\n",
          "Kunpeng 920|0|0|0||" },
        { "/proc/cpuinfo |\n\tCPU implementer\t: 0x48\n\tCPU part\t: 0xfff\n",
          "HiSilicon 0xfff|0|0|0||" },
        { "/proc/cpuinfo |\n\tCPU implementer\t: 0x99\n\tCPU part\t: 0xd01\n",
          "|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq = 3800000\n",
          "a|3800|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 1.80GHz\n/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq = 0\n",
          "a @ 1.80GHz|1800|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 1.80GHz\n\tcpu MHz : 1\n/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq = 100000000\n",
          "a @ 1.80GHz|1800|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ fast\n\tcpu MHz : 2000.7\n",
          "a @ fast|2000|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ GHz\n",
          "a @ GHz|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 1.8.0GHz\n",
          "a @ 1.8.0GHz|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 0GHz\n",
          "a @ 0GHz|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 100GHz\n",
          "a @ 100GHz|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a @ 1234567890123456GHz\n",
          "a @ 1234567890123456GHz|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : -1\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : 0\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : 100000\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : fast\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : nan\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tcpu MHz : 1e999\n",
          "a|0|0|0||" },
        /* Sunway */
        { "/proc/cpuinfo |\n\tmodel name : a\n\tCPU frequency\t: 2100.00MHz\n",
          "a|2100|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tCPU frequency : 2250.50 Mhz\n",
          "a|2250|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tCPU frequency : 2250\n",
          "a|2250|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tCPU frequency : 2250 bogus\n",
          "a|0|0|0||" },
        { "/proc/cpuinfo |\n\tmodel name : a\n\tCPU frequency : MHz\n",
          "a|0|0|0||" },
        { "/sys/devices/system/cpu/online = 0-3,8\n",
          "|0|5|0||" },
        { "/sys/devices/system/cpu/online = x\n",
          "|0|0|0||" },
        { "/sys/devices/system/cpu/online = \n",
          "|0|0|0||" },
        /* memory */
        { "/proc/meminfo |\n\tMemFree: 1 kB\n\tMemTotal:       16384 kB\n",
          "|0|0|16777216||" },
        { "/proc/meminfo |\n\tMemFree: 1 kB\n\tMemTotal:       much\n",
          "|0|0|0||" },
        { "/proc/meminfo |\n\tMemFree: 1 kB\n\tMemTotal:       9007199254740992 kB\n",
          "|0|0|0||" },
        { "/proc/meminfo |\n\tMemFree: 1 kB\n\tMemTotal:       99999999999999999999 kB\n",
          "|0|0|0||" },
        { "/proc/meminfo |\n\tMemTotal 5\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 11150000000000000000000000400000000022000000000000\n",
          "|0|0|0|DDR5|" },
        { "/sys/firmware/dmi/tables/DMI hex 0004000061620000111500000000000000000000004000000000180000000000\n",
          "|0|0|0|DDR3|" },
        { "/sys/firmware/dmi/tables/DMI hex 11150000000000000000000000400000000099000000001115000000000000000000000040000000001a0000000000\n",
          "|0|0|0|DDR4|" },
        { "/sys/firmware/dmi/tables/DMI hex 111500000000000000000000000000000000220000000000\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 111200000000000000000000004000000000220000000000\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 1103111500000000000000000000004000000000220000000000\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 111500000000000000000000004000000000\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 11150000\n",
          "|0|0|0||" },
        { "/sys/firmware/dmi/tables/DMI hex 00ff00001115000000000000000000000040000000002200000000\n",
          "|0|0|0||" },
        /* networks */
        { "/sys/class/net/eth0/type = 1\n/sys/class/net/eth0/device/vendor = 0x15b3\n/sys/class/net/eth0/speed = 25000\n",
          "|0|0|0||eth0 ethernet 25000;" },
        { "/sys/class/net/eth0/type = 1\n/sys/class/net/eth0/device/vendor = 0x15b3\n/sys/class/net/eth0/speed = -1\n",
          "|0|0|0||eth0 ethernet 0;" },
        { "/sys/class/net/eth0/type = 1\n/sys/class/net/eth0/device/vendor = 0x15b3\n/sys/class/net/eth0/speed = 100000000\n",
          "|0|0|0||eth0 ethernet 0;" },
        { "/sys/class/net/eth0/type = 1\n/sys/class/net/eth0/device/vendor = 0x15b3\n",
          "|0|0|0||eth0 ethernet 0;" },
        { "/sys/class/net/veth0/type = 1\n",
          "|0|0|0||" },
        { "/sys/class/net/lo/type = 772\n/sys/class/net/lo/device/vendor = 0x15b3\n",
          "|0|0|0||" },
        { "/sys/class/net/eth0/type = one\n/sys/class/net/eth0/device/vendor = 0x15b3\n",
          "|0|0|0||" },
        { "/sys/class/net/eth0/type = 1\n/sys/class/net/eth0/device/vendor = 0x15b3\n/sys/class/net/eth0/device/physfn/vendor = 0x15b3\n",
          "|0|0|0||" },
        { "/sys/class/net/a-name-that-no-kernel-would-give-it/type = 1\n/sys/class/net/a-name-that-no-kernel-would-give-it/device/vendor = 0x15b3\n",
          "|0|0|0||" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = 200 Gb/sec (4X HDR)\n",
          "|0|0|0||ib0 infiniband 200000;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = 2.5 Gb/sec\n",
          "|0|0|0||ib0 infiniband 2500;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = fast\n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = 1.2.3\n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = 1000001\n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/mlx5_0/ports/1/rate = \n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/device/infiniband/\n",
          "|0|0|0||ib0 infiniband 0;" },
        { "/sys/class/net/ib0/type = 32\n/sys/class/net/ib0/device/vendor = 0x15b3\n/sys/class/net/ib0/speed = 40000\n",
          "|0|0|0||ib0 infiniband 40000;" },
};
/* clang-format on */

static void read_machine(const char *lines, struct text *ret)
{
        CLEANUP(text_free) struct text file = { 0 };
        struct hardware hardware = { 0 };
        struct err err = { 0 };
        struct tree *tree;

        text_printf(&file, "# remuda machine 1\n%s", lines);
        if (tree_machine_open_bytes("row", file.data, file.size_bytes, &tree, &err) < 0)
                fail_msg("%s: %s", lines, err.msg);
        hardware_read(tree, &hardware);
        tree_close(tree);
        text_printf(ret, "%s|%u|%u|%llu|%s|", hardware.cpu_model, hardware.max_mhz, hardware.cores,
                    (unsigned long long) hardware.memory_bytes, hardware.memory_type);
        for (size_t i = 0; i < hardware.network_count; i++)
                text_printf(ret, "%s %s %llu;", hardware.networks[i].name, hardware.networks[i].kind,
                            (unsigned long long) hardware.networks[i].mbps);
}

static void every_row_is_read(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text read = { 0 };

                read_machine(rows[i].machine, &read);
                if (strcmp(read.data, rows[i].read) != 0)
                        fail_msg("%s: '%s', not '%s'", rows[i].machine, read.data, rows[i].read);
        }
}

static void networks_have_an_end(void **state)
{
        CLEANUP(text_free) struct text lines = { 0 }, read = { 0 };
        size_t count = 0;

        (void) state;
        for (unsigned i = 0; i <= NETWORKS_MAX; i++)
                text_printf(&lines,
                            "/sys/class/net/e%u/type = 1\n/sys/class/net/e%u/device/vendor = 0x8086\n", i, i);
        read_machine(lines.data, &read);
        for (const char *at = read.data; (at = strchr(at, ';')) != NULL; at++)
                count++;
        assert_int_equal(count, NETWORKS_MAX);
}

static void a_value_is_cut_to_its_field(void **state)
{
        char value[4] = "";

        (void) state;
        assert_true(hardware_cpuinfo_value("a: 1\nkey\t: long value\n", "key", value, sizeof(value)));
        assert_string_equal(value, "lon");
        assert_false(hardware_cpuinfo_value("a: 1\n", "key", value, sizeof(value)));
        assert_false(hardware_cpuinfo_value("", "key", value, sizeof(value)));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_is_read),
                cmocka_unit_test(networks_have_an_end),
                cmocka_unit_test(a_value_is_cut_to_its_field),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
