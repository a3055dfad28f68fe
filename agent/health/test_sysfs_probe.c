/* A function's own counters, row by row: what two looks at its files find, and what is no news. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/health/sysfs_probe.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"

#define AT   "/sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/"
#define PORT "/sys/devices/pci0000:17/0000:17:00.0/"
#define LINK                                                                                                 \
        "/sys/bus/pci/devices/0000:18:00.0 -> ../../../devices/pci0000:17/0000:17:00.0/0000:18:00.0\n"       \
        "/sys/bus/pci/devices/0000:17:00.0 -> ../../../devices/pci0000:17/0000:17:00.0\n"
#define WIDTH(now, most) AT "current_link_width = " now "\n" AT "max_link_width = " most "\n"
#define SPEED(now, most) AT "current_link_speed = " now "\n" AT "max_link_speed = " most "\n"

/* clang-format off */
static const struct {
        const char *what, *before, *now; /* before: NULL = nobody has looked */
        const char *rule;                /* of what is found; "" = all is well */
        enum finding_level level;
} rows[] = {
        { "nothing to read",                 NULL, "", "", FINDING_GOOD },
        { "a whole link",                    NULL, WIDTH("16", "16"), "", FINDING_GOOD },
        { "half a link",                     NULL, WIDTH("8", "16"), "link-width", FINDING_DEGRADED },
        { "a dead link",                     NULL, WIDTH("0", "16"), "link-dead", FINDING_BAD },
        { "a width that is none",            NULL, WIDTH("63", "16"), "link-dead", FINDING_BAD },
        { "no promise",                      NULL, WIDTH("0", "0"), "", FINDING_GOOD },
        { "a promise that is none",          NULL, WIDTH("0", "255"), "", FINDING_GOOD },
        { "a width that is no number",       NULL, WIDTH("x", "16"), "", FINDING_GOOD },
        { "no width now",                    NULL, AT "max_link_width = 16\n", "", FINDING_GOOD },
        { "an idle link is slow",            NULL, WIDTH("16", "16") SPEED("2.5 GT/s PCIe", "16.0 GT/s PCIe"), "", FINDING_GOOD },
        { "a speed that is not known",       NULL, WIDTH("16", "16") SPEED("Unknown", "16.0 GT/s PCIe"), "", FINDING_GOOD },
        { "fatal errors",                    AT "aer_dev_fatal |\n\tUndefined 0\n\tTOTAL_ERR_FATAL 1\n", AT "aer_dev_fatal |\n\tTOTAL_ERR_FATAL 2\n", "aer-fatal", FINDING_BAD },
        { "as many as before",               AT "aer_dev_fatal = TOTAL_ERR_FATAL 2\n", AT "aer_dev_fatal = TOTAL_ERR_FATAL 2\n", "", FINDING_GOOD },
        { "fatal errors before the agent",   NULL, AT "aer_dev_fatal = TOTAL_ERR_FATAL 2\n", "", FINDING_GOOD },
        { "errors at the port above",        PORT "aer_dev_fatal = TOTAL_ERR_FATAL 0\n", PORT "aer_dev_fatal = TOTAL_ERR_FATAL 1\n", "aer-fatal", FINDING_BAD },
        { "errors that were not corrected",  AT "aer_dev_nonfatal = TOTAL_ERR_NONFATAL 0\n", AT "aer_dev_nonfatal = TOTAL_ERR_NONFATAL 1\n", "aer-nonfatal", FINDING_DEGRADED },
        { "some that were",                  AT "aer_dev_correctable = TOTAL_ERR_COR 0\n", AT "aer_dev_correctable = TOTAL_ERR_COR 99\n", "", FINDING_GOOD },
        { "many that were",                  AT "aer_dev_correctable = TOTAL_ERR_COR 0\n", AT "aer_dev_correctable = TOTAL_ERR_COR 100\n", "aer-correctable", FINDING_DEGRADED },
        { "no total",                        AT "aer_dev_fatal = 0\n", AT "aer_dev_fatal = RxErr 7\n", "", FINDING_GOOD },
        { "a total without a number",        AT "aer_dev_fatal = TOTAL_ERR_FATAL 0\n", AT "aer_dev_fatal = TOTAL_ERR_FATAL x\n", "", FINDING_GOOD },
        { "a total alone",                   AT "aer_dev_fatal = TOTAL_ERR_FATAL 0\n", AT "aer_dev_fatal = TOTAL_ERR_FATAL\n", "", FINDING_GOOD },
        { "memory errors",                   AT "ras/umc_err_count |\n\tue: 0\n\tce: 0\n", AT "ras/umc_err_count |\n\tue: 1\n\tce: 0\n", "ras-uncorrectable", FINDING_BAD },
        { "memory errors before the agent",  NULL, AT "ras/umc_err_count |\n\tue: 1\n\tce: 0\n", "ras-uncorrectable", FINDING_DEGRADED },
        { "corrected ones",                  AT "ras/gfx_err_count |\n\tue: 0\n\tce: 1\n", AT "ras/gfx_err_count |\n\tue: 0\n\tce: 101\n", "ras-correctable", FINDING_DEGRADED },
        { "a file without counts",           AT "ras/gfx_err_count = 0\n", AT "ras/gfx_err_count = x\n", "", FINDING_GOOD },
        { "pages that wait",                 NULL, AT "ras/gpu_vram_bad_pages = 0x1 : 0x1000 : P\n", "ras-bad-pages", FINDING_DEGRADED },
        { "pages that could not be retired", NULL, AT "ras/gpu_vram_bad_pages |\n\t0x1 : 0x1000 : P\n\t0x2 : 0x1000 : F\n", "ras-bad-pages", FINDING_BAD },
        { "pages that were",                 NULL, AT "ras/gpu_vram_bad_pages = 0x1 : 0x1000 : R\n", "", FINDING_GOOD },
};
/* clang-format on */

static struct tree *open_machine(const char *lines)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct tree *tree = NULL;
        struct err err = { 0 };

        text_printf(&text, "# remuda machine 1\n%s%s" AT "vendor = 0x10de\n", LINK, lines);
        if (tree_machine_open_bytes("row", text.data, text.size_bytes, &tree, &err) < 0)
                fail_msg("%s: %s", lines, err.msg);
        return tree;
}

static void look(const char *lines, const struct agent_config *config, const struct device *device,
                 struct judge_counters *counters, struct finding *finding)
{
        struct tree *tree = open_machine(lines);

        sysfs_probe(tree, config, device, counters, finding);
        tree_close(tree);
}

static void two_looks_find_what_is_new(void **state)
{
        static const struct device device = { .pci = "0000:18:00.0" };
        const struct agent_config config = { .rule_level_count = 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct judge_counters counters = { .known = false };
                struct finding finding = { .level = FINDING_GOOD };

                if (rows[i].before != NULL)
                        look(rows[i].before, &config, &device, &counters, &finding);
                finding = (struct finding){ .level = FINDING_GOOD };
                look(rows[i].now, &config, &device, &counters, &finding);
                if (finding.level != rows[i].level || strcmp(finding.rule, rows[i].rule) != 0)
                        fail_msg("%s: %d %s", rows[i].what, finding.level, finding.rule);
        }
}

static void the_configuration_decides_what_a_rule_weighs(void **state)
{
        static const struct device device = { .pci = "0000:18:00.0" };
        static const char slow[] = WIDTH("8", "16") SPEED("2.5 GT/s PCIe", "16.0 GT/s PCIe");
        struct agent_config config;
        struct judge_counters counters = { .known = false };
        struct finding finding = { .level = FINDING_GOOD };
        static const char text[] = "health: {rules: {link-width: ignore, link-speed: degraded}}\n";

        (void) state;
        assert_int_equal(agent_config_parse("agent.yaml", text, strlen(text), &config, NULL), 0);
        look(slow, &config, &device, &counters, &finding);
        assert_string_equal(finding.rule, "link-speed");
        assert_int_equal(finding.level, FINDING_DEGRADED);
        agent_config_free(&config);
}

static void what_is_no_function_is_not_looked_at(void **state)
{
        static const struct device processor = { .pci = "" }, gone = { .pci = "0000:99:00.0" };
        const struct agent_config config = { .rule_level_count = 0 };
        struct judge_counters counters = { .known = false };
        struct finding finding = { .level = FINDING_GOOD };
        struct tree *tree = open_machine(AT "driver/module/version = 535.1\n");
        char version[16];

        (void) state;
        look(WIDTH("0", "16"), &config, &processor, &counters, &finding);
        assert_false(counters.known);
        look(WIDTH("0", "16"), &config, &gone, &counters, &finding);
        assert_true(counters.known);
        assert_int_equal(finding.level, FINDING_GOOD);
        sysfs_probe_driver_version(tree, &(struct device){ .pci = "0000:18:00.0" }, version, sizeof(version));
        assert_string_equal(version, "535.1");
        sysfs_probe_driver_version(tree, &gone, version, sizeof(version));
        assert_string_equal(version, "");
        sysfs_probe_driver_version(tree, &processor, version, sizeof(version));
        assert_string_equal(version, "");
        tree_close(tree);
}

static void a_version_is_the_modules_or_the_vendors(void **state)
{
#define NVRM(text) "/proc/driver/nvidia/version |\n\t" text "\n\tGCC version:  gcc 12.2.0\n"
        static const char *const versions[][2] = {
                { NVRM("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC "
                       "2024"),
                  "550.90.07" },
                { NVRM("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build"),
                  "590.48.01" },
                { NVRM("NVRM version: NVIDIA UNIX x86_64 Kernel Module"), "" },
                { AT "driver/module/version = 535.1\n" NVRM("Module  550.90.07"), "535.1" },
                { "/proc/driver/nvidia/version = nothing\n", "" },
        };
        const struct device device = { .pci = "0000:18:00.0", .vendor = "nvidia" },
                            other = { .pci = "0000:18:00.0", .vendor = "amd" };
        char version[64];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                struct tree *tree = open_machine(versions[i][0]);

                sysfs_probe_driver_version(tree, &device, version, sizeof(version));
                assert_string_equal(version, versions[i][1]);
                sysfs_probe_driver_version(tree, &other, version, sizeof(version));
                assert_string_equal(version, i == 3 ? "535.1" : "");
                tree_close(tree);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_looks_find_what_is_new),
                cmocka_unit_test(the_configuration_decides_what_a_rule_weighs),
                cmocka_unit_test(what_is_no_function_is_not_looked_at),
                cmocka_unit_test(a_version_is_the_modules_or_the_vendors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
