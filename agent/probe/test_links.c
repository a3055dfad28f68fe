/* What libraries said of links: as lines, as groups, and as neighbours; and the PCIe switches of a tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/link_report_line.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

/* clang-format off */
static const struct {
        const char *line; /* NULL beside `again`: comes back as it is */
        const char *again; /* NULL = refused */
} lines[] = {
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:07:00.0\",\"width\":2}],\"switched\":0}", "same" },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[],\"switched\":18}", "same" },
        { "{\"pci\":\"00000000:0A:00.0\"}", "{\"pci\":\"0000:0a:00.0\",\"links\":[],\"switched\":0}" },
        { "{\"pci\":\"00010000:0A:00.0\"}", "{\"pci\":\"10000:0a:00.0\",\"links\":[],\"switched\":0}" },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:07:00.0\"},{\"peer\":\"0000:07:00.0\",\"width\":3}]}",
          "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:07:00.0\",\"width\":4}],\"switched\":0}" },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:06:00.0\",\"width\":3}]}",
          "{\"pci\":\"0000:06:00.0\",\"links\":[],\"switched\":0}" }, /* with itself */
        { "{\"pci\":\"06:00.0\"}", NULL },
        { "{\"pci\":\"0000:06:00\"}", NULL },
        { "{\"pci\":\"0000:06:00.0 \"}", NULL },
        { "{\"pci\":7}", NULL },
        { "{\"pci\":null}", NULL },
        { "{\"links\":[]}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"links\":{}}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[1]}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"width\":1}]}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:07:00.0\",\"width\":0}]}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"links\":[{\"peer\":\"0000:07:00.0\",\"width\":1001}]}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"switched\":-1}", NULL },
        { "{\"pci\":\"0000:06:00.0\",\"pci\":\"0000:07:00.0\"}", NULL },
        { "[]", NULL },
        { "", NULL },
        { "no json", NULL },
};
/* clang-format on */

static void lines_come_back_or_are_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct link_report report;
                struct text out = { 0 };
                struct err err = { 0 };
                int r = link_report_line_decode("nvidia", lines[i].line, strlen(lines[i].line), &report,
                                                &err);
                const char *again = lines[i].again;

                if ((r < 0) != (again == NULL))
                        fail_msg("%s: %d %s", lines[i].line, r, err.msg);
                if (r < 0) {
                        assert_int_equal(r, -EBADMSG);
                        assert_string_not_equal(err.msg, "");
                        continue;
                }
                link_report_line_encode(&report, &out);
                out.data[out.size_bytes - 1] = '\0';
                assert_string_equal(out.data, strcmp(again, "same") == 0 ? lines[i].line : again);
                text_free(&out);
        }
}

static void a_file_is_taken_whole_or_not_at_all(void **state)
{
        static const char good[] = "# a remark\n{\"pci\":\"0000:06:00.0\"}\n\n{\"pci\":\"0000:07:00.0\"}";
        static const char bad[] = "{\"pci\":\"0000:08:00.0\"}\n{\"pci\":\"0000:08\"}\n";
        CLEANUP(link_report_list_free) struct link_report_list reports = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(link_report_line_decode_all("nvidia", good, sizeof(good) - 1, &reports, &err), 0);
        assert_int_equal(reports.count, 2);
        assert_int_equal(link_report_line_decode_all("nvidia", bad, sizeof(bad) - 1, &reports, &err),
                         -EBADMSG);
        assert_non_null(strstr(err.msg, "line 2"));
        assert_int_equal(reports.count, 2);
        assert_non_null(link_report_list_find(&reports, "nvidia", "0000:07:00.0"));
        assert_null(link_report_list_find(&reports, "amd", "0000:07:00.0"));
        assert_int_equal(link_report_line_decode_all("nvidia", "", 0, &reports, &err), 0);
}

struct board {
        const char *address, *below;
        unsigned device; /* 0x20b5: PCIe, 0x1db1: SXM2, 0x22a3: NVSwitch */
};

static void build(const struct board *boards, const char *links, struct inventory *ret)
{
        struct text machine;

        machine_begin(&machine);
        for (; boards->address != NULL; boards++)
                machine_function(&machine,
                                 &(struct machine_function){
                                         .address = boards->address,
                                         .below = boards->below,
                                         .vendor = 0x10de,
                                         .device = boards->device,
                                         .class_code = boards->device == 0x22a3 ? 0x068000 : 0x030200,
                                         .driver = "nvidia",
                                 });
        if (links != NULL)
                machine_line(&machine, "/run/remuda/links/nvidia |\n%s", links);
        machine_discover(&machine, NULL, ret);
        text_free(&machine);
}

/* "a100-0 nvlink nvml 2, ..." */
static void expect_groups(const struct inventory *inventory, const char *want)
{
        struct text got = { 0 };

        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *g = &inventory->groups[i];

                if (strcmp(g->vendor, "nvidia") == 0)
                        text_printf(&got, "%s%s %s %s %u", got.size_bytes > 0 ? ", " : "",
                                    g->name + strlen("nvidia-"), g->fabric, g->fabric_source, g->total);
        }
        assert_string_equal(got.data == NULL ? "" : got.data, want);
        text_free(&got);
}

#define LINK(peer, width) "{\"peer\":\"0000:" peer ":00.0\",\"width\":" width "}"
#define SAID(own, links)  "\t{\"pci\":\"0000:" own ":00.0\",\"links\":[" links "]}\n"
#define SWITCHED(own, n)  "\t{\"pci\":\"0000:" own ":00.0\",\"switched\":" n "}\n"

static const struct board cards[] = { { "0000:11:00.0", NULL, 0x20b5 },
                                      { "0000:21:00.0", NULL, 0x20b5 },
                                      { "0000:31:00.0", NULL, 0x20b5 },
                                      { "0000:41:00.0", NULL, 0x20b5 },
                                      { NULL, NULL, 0 } };
static const struct board modules[] = { { "0000:11:00.0", NULL, 0x1db1 }, { "0000:21:00.0", NULL, 0x1db1 },
                                        { "0000:31:00.0", NULL, 0x1db1 }, { "0000:41:00.0", NULL, 0x1db1 },
                                        { "0000:05:00.0", NULL, 0x22a3 }, { NULL, NULL, 0 } };

/* clang-format off */
static const struct {
        const char *what;
        const struct board *boards;
        const char *links, *groups;
} domains[] = {
        { "nothing was said of cards", cards, NULL, "a100-0 numa sysfs 4" },
        { "bridges join pairs", cards, SAID("11", LINK("31", "12")) SAID("31", LINK("11", "12")) SAID("21", "") SAID("41", ""),
          "a100-0 nvlink nvml 2, a100-1 numa sysfs 2" },
        { "one end's word is enough", cards, SAID("41", LINK("21", "4")), "a100-0 numa sysfs 2, a100-1 nvlink nvml 2" },
        { "a chain is one domain", cards, SAID("11", LINK("21", "4")) SAID("21", LINK("31", "4")) SAID("31", LINK("41", "4")),
          "a100-0 nvlink nvml 4" },
        { "two domains", cards, SAID("11", LINK("21", "4")) SAID("31", LINK("41", "4")),
          "a100-0 nvlink nvml 2, a100-1 nvlink nvml 2" },
        { "a peer that is not here joins nothing", cards, SAID("11", LINK("99", "4")), "a100-0 numa sysfs 4" },
        { "switches join all alike", cards, SWITCHED("11", "6") SWITCHED("31", "6") SWITCHED("41", "5"),
          "a100-0 nvlink nvml 3, a100-1 numa sysfs 1" },
        { "one alone on a switch is no domain", cards, SWITCHED("11", "6"), "a100-0 numa sysfs 4" },
        { "a file that is none says nothing", cards, "\tno json\n", "a100-0 numa sysfs 4" },
        { "nothing was said of modules", modules, NULL, "v100-0 nvlink pci 4" },
        { "the library's word on modules", modules, SWITCHED("11", "6") SWITCHED("21", "6") SWITCHED("31", "6") SWITCHED("41", "6"),
          "v100-0 nvlink nvml 4" },
        { "a module without working links stays in the only domain", modules,
          SWITCHED("11", "6") SWITCHED("21", "6") SWITCHED("31", "6") SAID("41", ""), "v100-0 nvlink nvml 4" },
        { "an old library: the switch is known by its function", modules, SAID("11", LINK("05", "6")) SAID("21", LINK("05", "6")),
          "v100-0 nvlink nvml 4" },
        { "modules of which all links are down", modules, SAID("11", "") SAID("21", "") SAID("31", "") SAID("41", ""),
          "v100-0 nvlink pci 4" },
        { "modules in two meshes", modules, SAID("11", LINK("21", "3")) SAID("31", LINK("41", "3")),
          "v100-0 nvlink nvml 2, v100-1 nvlink nvml 2" },
};
/* clang-format on */

static void links_draw_the_groups(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
                struct inventory inventory;

                print_message("%s\n", domains[i].what);
                build(domains[i].boards, domains[i].links, &inventory);
                expect_groups(&inventory, domains[i].groups);
                inventory_free(&inventory);
        }
}

/* Boards that no table knows have their name from the driver: one without it must not leave the domain. */
static void a_board_without_its_driver_stays_in_the_domain(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_function(&machine, &(struct machine_function){ .address = "0000:05:00.0",
                                                               .vendor = 0x10de,
                                                               .device = 0x22a3,
                                                               .class_code = 0x068000 });
        for (unsigned i = 1; i <= 4; i++) {
                char address[20];

                (void) text_format(address, sizeof(address), "0000:%x1:00.0", i);
                machine_function(&machine, &(struct machine_function){ .address = address,
                                                                       .vendor = 0x10de,
                                                                       .device = 0x9999,
                                                                       .class_code = 0x030200,
                                                                       .driver = i < 4 ? "nvidia" : NULL });
                if (i < 4)
                        machine_line(&machine,
                                     "/proc/driver/nvidia/gpus/%s/information = Model: NVIDIA New One",
                                     address);
        }
        machine_line(&machine, "/run/remuda/links/nvidia |\n%s",
                     SWITCHED("11", "18") SWITCHED("21", "18") SWITCHED("31", "18"));
        machine_discover(&machine, NULL, &inventory);
        expect_groups(&inventory, "new-0 nvlink nvml 4");
        inventory_free(&inventory);
        text_free(&machine);
}

static void a_given_word_goes_before_the_trees(void **state)
{
        CLEANUP(link_report_list_free) struct link_report_list given = { 0 };
        struct link_report one = { .vendor = "nvidia", .pci = "0000:a9:00.0" };
        struct inventory inventory;
        struct tree *tree = NULL;
        struct err err = { 0 };

        (void) state;
        assert_true(link_report_add(&one, "0000:aa:00.0", 4));
        assert_int_equal(link_report_list_put(&given, &one), 0);
        assert_int_equal(tree_machine_open("tests/data/machines/nvidia-a100-pcie-x8.machine", &tree, &err),
                         0);
        assert_int_equal(discovery_run_linked(tree, NULL, &given, &inventory, &err), 0);
        expect_groups(&inventory, "a100-0 pcie-switch pci 4, a100-1 pcie-switch pci 2, a100-2 nvlink nvml 2");
        inventory_free(&inventory);
        (void) text_copy(given.reports[0].vendor, sizeof(given.reports[0].vendor), "acme");
        assert_int_equal(discovery_run_linked(tree, NULL, &given, &inventory, &err), 0);
        expect_groups(&inventory, "a100-0 nvlink nvml 2, a100-1 nvlink nvml 2, a100-2 nvlink nvml 2, "
                                  "a100-3 pcie-switch pci 2");
        inventory_free(&inventory);
        tree_close(tree);
}

#define PORT   "0000:10:01.0"
#define TOP    PORT "/0000:20:00.0"
#define LEFT   TOP "/0000:21:00.0/0000:22:00.0"
#define RIGHT  TOP "/0000:21:04.0/0000:32:00.0"
#define CARD_A "0000:50:01.0/0000:51:00.0/0000:52:00.0"
#define CARD_B "0000:60:01.0/0000:61:00.0/0000:62:00.0"

/* clang-format off */
static const struct {
        const char *what;
        struct board boards[5];
        const char *places[5]; /* switch and root port of each */
        const char *groups;
} trees[] = {
        { "on root ports of their own", { { "0000:11:00.0", PORT, 0x20b5 }, { "0000:41:00.0", "0000:40:01.0", 0x20b5 } },
          { "-", "-" }, "a100-0 numa sysfs 2" },
        { "one switch", { { "0000:24:00.0", TOP "/0000:21:00.0", 0x20b5 }, { "0000:25:00.0", TOP "/0000:21:04.0", 0x20b5 } },
          { "0000:20:00.0 0000:10:01.0", "0000:20:00.0 0000:10:01.0" }, "a100-0 pcie-switch pci 2" },
        { "two switches below one",
          { { "0000:24:00.0", LEFT "/0000:23:00.0", 0x20b5 }, { "0000:25:00.0", LEFT "/0000:23:04.0", 0x20b5 },
            { "0000:34:00.0", RIGHT "/0000:33:00.0", 0x20b5 }, { "0000:35:00.0", RIGHT "/0000:33:04.0", 0x20b5 } },
          { "0000:22:00.0 0000:10:01.0", "0000:22:00.0 0000:10:01.0", "0000:32:00.0 0000:10:01.0", "0000:32:00.0 0000:10:01.0" },
          "a100-0 pcie-switch pci 4" },
        { "one alone below its own switch hangs on the common one",
          { { "0000:24:00.0", LEFT "/0000:23:00.0", 0x20b5 }, { "0000:25:00.0", LEFT "/0000:23:04.0", 0x20b5 },
            { "0000:34:00.0", RIGHT "/0000:33:00.0", 0x20b5 } },
          { "0000:22:00.0 0000:10:01.0", "0000:22:00.0 0000:10:01.0", "0000:20:00.0 0000:10:01.0" }, "a100-0 pcie-switch pci 3" },
        { "cards with a bridge of their own share none", { { "0000:53:00.0", CARD_A, 0x20b5 }, { "0000:63:00.0", CARD_B, 0x20b5 } },
          { "-", "-" }, "a100-0 numa sysfs 2" },
        { "a switch shared with another vendor's device alone joins nothing",
          { { "0000:24:00.0", TOP "/0000:21:00.0", 0x20b5 }, { "0000:25:00.0", TOP "/0000:21:04.0", 0x22a3 } },
          { "-" }, "a100-0 numa sysfs 1" },
};
/* clang-format on */

static void the_nearest_switch_is_found(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
                struct inventory inventory;

                print_message("%s\n", trees[i].what);
                build(trees[i].boards, NULL, &inventory);
                for (size_t d = 0; trees[i].places[d] != NULL; d++) {
                        const struct device *device = &inventory.devices[d];
                        char place[64] = "-";

                        if (device->pci_switch[0] != '\0')
                                (void) text_format(place, sizeof(place), "%s %s", device->pci_switch,
                                                   device->pci_port);
                        assert_string_equal(place, trees[i].places[d]);
                }
                expect_groups(&inventory, trees[i].groups);
                inventory_free(&inventory);
        }
}

static void wiring_is_compared(void **state)
{
        struct inventory a, b;

        (void) state;
        build(cards, SAID("11", LINK("21", "4")), &a);
        build(cards, SAID("11", LINK("21", "4")), &b);
        assert_true(inventory_same(&a, &b) && inventory_wired_same(&a, &b));
        inventory_free(&b);
        build(cards, SAID("11", LINK("21", "3")), &b);
        assert_true(inventory_same(&a, &b) && !inventory_wired_same(&a, &b));
        inventory_free(&b);
        inventory_free(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_come_back_or_are_refused),
                cmocka_unit_test(a_file_is_taken_whole_or_not_at_all),
                cmocka_unit_test(links_draw_the_groups),
                cmocka_unit_test(a_board_without_its_driver_stays_in_the_domain),
                cmocka_unit_test(a_given_word_goes_before_the_trees),
                cmocka_unit_test(the_nearest_switch_is_found),
                cmocka_unit_test(wiring_is_compared),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
