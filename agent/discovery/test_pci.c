/* What is read of a PCI function, row by row: from its files, from its uevent where they are missing, from
 * the bridges above it; and every address that is one, and that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/discovery/pci.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"

#define ABOVE    "/sys/devices/pci0000:10/0000:10:01.0"
#define AT       ABOVE "/0000:11:00.0"
#define PLACE    "/sys/bus/pci/devices/0000:11:00.0 -> ../../../devices/pci0000:10/0000:10:01.0/0000:11:00.0\n"
#define IDS      AT "/vendor = 0x10de\n" AT "/device = 0x2330\n" AT "/class = 0x030200\n"
#define NODES    "/sys/devices/system/node/"
#define FUNCTION PLACE IDS
#define UNKNOWN  AT "/numa_node = -1\n"

/* clang-format off */
/* "VENDOR:DEVICE CLASS DRIVER BRIDGES NUMA WIDTH/PROMISED [lost]" of the first function, "" = there is none */
static const struct {
        const char *machine, *read;
} rows[] = {
        { "",                                                       "" },
        { FUNCTION,                                                 "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { IDS,                                                      "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { "/sys/devices/other/0000:11:00.0/vendor = 0x10de\n",      "" },
        { "/sys/bus/pci/devices/garbage/vendor = 0x10de\n",         "" },
        { "/sys/bus/pci/devices/0000:11:00.0/vendor = 0x10de\n",    "10de:0000 000000   0 0/0" },
        { PLACE AT "/vendor = 0x10de\n" AT "/device = 0x1af1\n" AT "/class = 0x060400\n", "10de:0000 060400  pci0000:10/0000:10:01.0 0 0/0" },
        { PLACE AT "/vendor = 0xffff\n",                            "" },
        { PLACE AT "/vendor = none\n",                              "" },
        { FUNCTION AT "/driver -> ../../../../bus/pci/drivers/nvidia\n", "10de:2330 030200 nvidia pci0000:10/0000:10:01.0 0 0/0" },
        /* uevent */
        { PLACE AT "/uevent |\n\tDRIVER=nvidia\n\tPCI_CLASS=30200\n\tPCI_ID=10DE:2330\n", "10de:2330 030200 nvidia pci0000:10/0000:10:01.0 0 0/0" },
        { PLACE AT "/uevent |\n\tPCI_CLASS=x\n\tPCI_ID=10DE:xxxx\n", "10de:0000 000000  pci0000:10/0000:10:01.0 0 0/0" },
        { PLACE AT "/uevent |\n\tPCI_CLASS=30200\n",                "" },
        { PLACE AT "/uevent = PCI_ID=10DE2330\n",                   "" },
        { PLACE AT "/uevent = PCI_ID=10DE-2330\n",                  "" },
        { PLACE AT "/uevent = PCI_ID=wxyz:2330\n",                  "" },
        { PLACE AT "/uevent |\n\tPCI_ID=\n\tx\n",                   "" },
        { PLACE AT "/uevent = PCI_ID=10DE:2330 and more than it holds\n", "" },
        /* NUMA */
        { FUNCTION AT "/numa_node = 1\n",                           "10de:2330 030200  pci0000:10/0000:10:01.0 1 0/0" },
        { FUNCTION AT "/numa_node = 65536\n",                       "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION UNKNOWN ABOVE "/numa_node = 2\n",                "10de:2330 030200  pci0000:10/0000:10:01.0 2 0/0" },
        { FUNCTION UNKNOWN ABOVE "/numa_node = -1\n",               "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION UNKNOWN AT "/local_cpulist = 6-7\n" NODES "online = 0-1\n" NODES "node0/cpulist = 0-3\n" NODES "node1/cpulist = 4-7\n", "10de:2330 030200  pci0000:10/0000:10:01.0 1 0/0" },
        { FUNCTION UNKNOWN AT "/local_cpulist = 9\n" NODES "online = 0-1\n" NODES "node0/cpulist = 0-3\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION UNKNOWN AT "/local_cpulist = 6-7\n",             "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION UNKNOWN AT "/local_cpulist = x\n" NODES "online = 0-1\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        /* fallen off the bus */
        { FUNCTION AT "/config hex ffffffff\n",                     "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0 lost" },
        { FUNCTION AT "/config hex ffffff\n",                       "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION AT "/config hex de103023\n",                     "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION AT "/config hex ffffffff\n" AT "/power/runtime_status = suspended\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION AT "/config hex ffffffff\n" AT "/power/runtime_status = active\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0 lost" },
        /* lanes */
        { FUNCTION AT "/current_link_width = 8\n" AT "/max_link_width = 16\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/16" },
        { FUNCTION AT "/current_link_width = 8\n" AT "/max_link_width = 16\n" ABOVE "/max_link_width = 8\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/8" },
        { FUNCTION AT "/current_link_width = 8\n" AT "/max_link_width = 16\n" ABOVE "/max_link_width = 0\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/16" },
        { FUNCTION AT "/current_link_width = 16\n" AT "/max_link_width = 16\n" ABOVE "/max_link_width = 8\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 16/16" },
        { FUNCTION AT "/current_link_width = 8\n" AT "/max_link_width = 255\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/0" },
        { FUNCTION AT "/current_link_width = 8\n" AT "/max_link_width = 0\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/0" },
        { FUNCTION AT "/current_link_width = 8\n",                  "10de:2330 030200  pci0000:10/0000:10:01.0 0 8/0" },
        { FUNCTION AT "/current_link_width = 256\n" AT "/max_link_width = 16\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
        { FUNCTION AT "/current_link_width = -1\n" AT "/max_link_width = 16\n", "10de:2330 030200  pci0000:10/0000:10:01.0 0 0/0" },
};
static const struct {
        const char *text;
        uint64_t order; /* UINT64_MAX = it is none */
} addresses[] = {
        { "0000:18:00.0", 0x180000 },        { "0000:AB:1f.7", 0xab1f07 },        { "10000:01:00.0", 0x1000000010000 }, { "abcdef01:01:00.0", 0xabcdef0100010000 },
        { "", UINT64_MAX },                  { "000:18:00.0", UINT64_MAX },       { "123456789:18:00.0", UINT64_MAX },  { "0000-18:00.0", UINT64_MAX },
        { "0000:1:00.0", UINT64_MAX },       { "0000:118:00.0", UINT64_MAX },     { "0000:18-00.0", UINT64_MAX },       { "0000:18:0.0", UINT64_MAX },
        { "0000:18:00:0", UINT64_MAX },      { "0000:18:20.0", UINT64_MAX },      { "0000:18:00.8", UINT64_MAX },       { "0000:18:00.00", UINT64_MAX },
        { "0000:18:00.0 ", UINT64_MAX },     { "0000:18:00.", UINT64_MAX },       { "wxyz:18:00.0", UINT64_MAX },
};
/* The function of sys/class/drm/card0/device, "" = none */
static const struct {
        const char *machine, *owner;
} owners[] = {
        { FUNCTION "/sys/class/drm/card0/device -> ../../../bus/pci/devices/0000:11:00.0\n",      "0000:11:00.0" },
        { "/sys/class/drm/card0/device/uevent |\n\tDRIVER=x\n\tPCI_SLOT_NAME=0000:AB:00.0\n\ty\n", "0000:ab:00.0" },
        { "/sys/class/drm/card0/device/uevent = PCI_SLOT_NAME=0000:ab\n",                         "" },
        { "/sys/class/drm/card0/device/uevent = DRIVER=x\n",                                      "" },
        { "/sys/class/drm/card0/device/vendor = 0x10de\n",                                        "" },
        { "/sys/class/drm/card0/dev = 1\n",                                                       "" },
};
/* The physical function, "" = it is none's */
static const struct {
        const char *machine, *physical;
} physicals[] = {
        { FUNCTION,                                        "" },
        { FUNCTION AT "/physfn -> ../0000:11:00.4\n",      "0000:11:00.4" },
        { FUNCTION AT "/physfn -> ../elsewhere\n",         "" },
        { FUNCTION AT "/physfn -> ../a-name-that-is-longer-than-an-address\n", "" },
};
/* clang-format on */

static struct tree *open_machine(const char *lines)
{
        CLEANUP(text_free) struct text file = { 0 };
        struct err err = { 0 };
        struct tree *tree;

        text_printf(&file, "# remuda machine 1\n%s", lines);
        if (tree_machine_open_bytes("row", file.data, file.size_bytes, &tree, &err) < 0)
                fail_msg("%s: %s", lines, err.msg);
        return tree;
}

static void every_row_is_read(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text read = { 0 };
                struct tree *tree = open_machine(rows[i].machine);
                struct pci_state found;
                struct pci pci;

                text_append(&read, "");
                assert_int_equal(pci_scan(tree, &pci), 0);
                if (pci.count > 0) {
                        pci_read_state(tree, &pci, pci.functions, &found);
                        text_printf(&read, "%04x:%04x %06x %s %s %d %u/%u%s", pci.functions->vendor,
                                    pci.functions->device, (unsigned) pci.functions->class_code, found.driver,
                                    found.bridges, found.numa, found.width, found.promised_width,
                                    found.lost ? " lost" : "");
                }
                if (strcmp(read.data != NULL ? read.data : "", rows[i].read) != 0)
                        fail_msg("%s: '%s', not '%s'", rows[i].machine, read.data, rows[i].read);
                pci_free(&pci);
                tree_close(tree);
        }
}

static void an_address_is_one_or_none(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                uint64_t order = UINT64_MAX;
                int r = pci_parse_address(addresses[i].text, &order);

                if (order != addresses[i].order || r != (order == UINT64_MAX ? -EINVAL : 0))
                        fail_msg("'%s': %d, %llx", addresses[i].text, r, (unsigned long long) order);
        }
}

static void a_class_device_has_an_owner(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
                struct tree *tree = open_machine(owners[i].machine);
                char owner[PCI_ADDRESS_BYTES] = "";
                bool found = pci_address_of(tree, "sys/class/drm/card0/device", owner, sizeof(owner));

                if (found != (owners[i].owner[0] != '\0') || strcmp(owner, owners[i].owner) != 0)
                        fail_msg("%s: '%s'", owners[i].machine, owner);
                tree_close(tree);
        }
}

static void a_virtual_function_has_a_physical_one(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(physicals); i++) {
                struct tree *tree = open_machine(physicals[i].machine);
                char physical[PCI_ADDRESS_BYTES];
                struct pci pci;

                assert_int_equal(pci_scan(tree, &pci), 0);
                pci_physical(tree, &pci, pci.functions, physical, sizeof(physical));
                assert_string_equal(physical, physicals[i].physical);
                assert_ptr_equal(pci_find(&pci, "0000:11:00.0"), pci.functions);
                assert_null(pci_find(&pci, "0000:12:00.0"));
                assert_null(pci_find(&pci, "12"));
                pci_free(&pci);
                tree_close(tree);
        }
}

static void more_functions_than_a_machine_has_are_refused(void **state)
{
        (void) state;
        for (unsigned more = 0; more < 2; more++) {
                CLEANUP(text_free) struct text lines = { 0 };
                struct tree *tree;
                struct pci pci;

                for (unsigned i = 0; i < PCI_FUNCTIONS_MAX + more; i++)
                        text_printf(&lines, "/sys/bus/pci/devices/%04x:%02x:00.0/vendor = 1\n", i >> 8,
                                    i & 0xff);
                tree = open_machine(lines.data);
                assert_int_equal(pci_scan(tree, &pci), more > 0 ? -E2BIG : 0);
                assert_int_equal(pci.count, more > 0 ? 0 : PCI_FUNCTIONS_MAX);
                pci_free(&pci);
                tree_close(tree);
        }
}

/* clang-format off */
static const struct {
        const char *a, *b;
        size_t shared; /* bytes */
} ways[] = {
        { "",                                          "",                                          0 },
        { "pci0000:17/0000:17:00.0",                   "pci0000:17/0000:17:00.0",                   0 }, /* the port alone */
        { "pci0000:17/0000:17:00.0/0000:18:00.0",      "pci0000:17/0000:17:00.0/0000:18:00.0",      36 },
        { "pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:00.0", "pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:10.0", 36 },
        { "pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:00.0", "pci0000:17/0000:17:00.0/0000:18:00.0", 36 },
        { "pci0000:17/0000:17:00.0/0000:18:00.0",      "pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:00.0", 36 },
        { "pci0000:17/0000:17:00.0/0000:18:00.0",      "pci0000:17/0000:17:01.0/0000:18:00.0",      0 },
        { "pci0000:17/0000:17:00.0/0000:18:00.0",      "",                                          0 },
        { "",                                          "pci0000:17/0000:17:00.0/0000:18:00.0",      0 },
};
/* clang-format on */

static void a_switch_is_shared_below_the_root_port(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
                if (pci_common_switch(ways[i].a, ways[i].b) != ways[i].shared)
                        fail_msg("'%s' and '%s': %zu", ways[i].a, ways[i].b,
                                 pci_common_switch(ways[i].a, ways[i].b));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_switch_is_shared_below_the_root_port),
                cmocka_unit_test(every_row_is_read),
                cmocka_unit_test(an_address_is_one_or_none),
                cmocka_unit_test(a_class_device_has_an_owner),
                cmocka_unit_test(a_virtual_function_has_a_physical_one),
                cmocka_unit_test(more_functions_than_a_machine_has_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
