/* containerd config: the one table whose enable_cdi counts, however it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/doctor/containerd_config.h"

#define V2        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n"
#define FILE_NAME "  \"/etc/containerd/conf.d/what-a-vendor-has-installed-beside-all-others.toml\",\n"
#define LONG      FILE_NAME FILE_NAME FILE_NAME FILE_NAME
#define V3        "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\n"

static void the_kubelets_plugin_alone_counts(void **state)
{
        static const struct {
                const char *text;
                enum containerd_config_cdi cdi;
        } rows[] = {
                { "", CONTAINERD_CONFIG_UNSAID },
                { V2 "  enable_cdi = true\n", CONTAINERD_CONFIG_ON },
                { V2 "enable_cdi=true # as of 1.7\n", CONTAINERD_CONFIG_ON },
                { V2 "\tenable_cdi = false\n", CONTAINERD_CONFIG_OFF },
                { V2 "# enable_cdi = true\n", CONTAINERD_CONFIG_UNSAID },
                { V2 "enable_cdi_not = true\n", CONTAINERD_CONFIG_UNSAID },
                { V3 "enable_cdi = false", CONTAINERD_CONFIG_OFF },
                { "[plugins.cri]\nenable_cdi = true", CONTAINERD_CONFIG_ON },
                { "version = 2\nenable_cdi = true\n", CONTAINERD_CONFIG_UNSAID },
                { V2 "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nenable_cdi = true\n",
                  CONTAINERD_CONFIG_UNSAID },
                { "[plugins.\"io.containerd.nri.v1.nri\"]\nenable_cdi = true\n" V2 "enable_cdi = false\n",
                  CONTAINERD_CONFIG_OFF },
                { V2 "enable_cdi = true\n[debug]\nenable_cdi = false\n", CONTAINERD_CONFIG_ON },
                { "[ plugins . \"io.containerd.grpc.v1.cri\" ]\r\nenable_cdi = true\r\n",
                  CONTAINERD_CONFIG_ON },
                { "plugins.\"io.containerd.grpc.v1.cri\".enable_cdi = true\n", CONTAINERD_CONFIG_ON },
                { "[plugins]\n\"io.containerd.grpc.v1.cri\".enable_cdi = true\n", CONTAINERD_CONFIG_ON },
                { V2 "x = [\n \"enable_cdi = true\",\n]\n", CONTAINERD_CONFIG_UNSAID },
                { V2 "x = \"a # b\"\nenable_cdi = true", CONTAINERD_CONFIG_ON },
                { V2 "x = [", CONTAINERD_CONFIG_UNSAID },
                { "[[", CONTAINERD_CONFIG_UNSAID },
                { "=\n=", CONTAINERD_CONFIG_UNSAID },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (containerd_config_cdi(rows[i].text) != rows[i].cdi)
                        fail_msg("%s", rows[i].text);
}

static void folders_are_read_that_are_listed_or_not_said(void **state)
{
        static const struct {
                const char *text, *folder;
                bool reads;
        } rows[] = {
                { V2 "enable_cdi = true\n", "/var/run/cdi", true },
                { V2 "enable_cdi = true\n", "/run/cdi//", true },
                { V2 "enable_cdi = true\n", "/etc/cdi", true },
                { V2 "enable_cdi = true\n", "/opt/cdi", false },
                { V2 "cdi_spec_dirs = [\"/var/opt/cdi\"]\n", "/opt/cdi", false },
                { V2 "cdi_spec_dirs = [\"/opt/cdi\"]\n", "/opt/cdi", true },
                { V2 "cdi_spec_dirs = [\"/run/cdi\"]\n", "/var/run/cdi/", true },
                { V2 "cdi_spec_dirs = [\"/etc/cdi\", \"/var/run/cdi\"]\n", "/var/run/cdi", true },
                { V2 "cdi_spec_dirs = [\"/etc/cdi\", \"/run/cdi\"]\n", "/var/run/cdi", true },
                { V2 "cdi_spec_dirs = ['/var/run/cdi/']\n", "/run/cdi", true },
                { V2 "cdi_spec_dirs = [\n  \"/etc/cdi\", # ours\n  \"/var/run/cdi\",\n]\n", "/var/run/cdi",
                  true },
                { V2 "cdi_spec_dirs = [\"/etc/cdi\"]\n", "/var/run/cdi", false },
                { V2 "cdi_spec_dirs = [\"/var/run/cdi2\"]\n", "/var/run/cdi", false },
                { V2 "cdi_spec_dirs = [\"/host/var/run/cdi\"]\n", "/var/run/cdi", false },
                { V2 "cdi_spec_dirs = []\n", "/var/run/cdi", false },
                { "[x]\ncdi_spec_dirs = []\n", "/var/run/cdi", true },
                { "imports = [\n" LONG LONG LONG LONG "]\n" V2 "cdi_spec_dirs = []\n", "/var/run/cdi",
                  false },
                { V3 "cdi_spec_dirs = [\"/etc/cdi\"]\n", "/etc/cdi", true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (containerd_config_reads(rows[i].text, rows[i].folder) != rows[i].reads)
                        fail_msg("%s: %s", rows[i].folder, rows[i].text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_kubelets_plugin_alone_counts),
                cmocka_unit_test(folders_are_read_that_are_listed_or_not_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
