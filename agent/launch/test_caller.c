/* Caller: cgroups of pods, of users, of nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/launch/caller.h"
#include "base/cleanup.h"
#include "base/text.h"

#define UID "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

/* clang-format off */
static const struct { const char *what, *cgroup, *uid; } cgroups[] = {
        { "systemd driver", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/cri-containerd-ab.scope\n", UID },
        { "cgroupfs driver", "0::/kubepods/besteffort/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/ab\n", UID },
        { "version 1", "5:devices:/kubepods/pod1B4E28BA-2fa1-11d2-883f-0016d3cca427/ab\n4:cpu:/\n", UID },
        { "seen from a pod of its own cgroup namespace", "0::/../../burstable/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/ab\n", UID },
        { "likewise, systemd driver", "0::/../../../kubepods-besteffort.slice/kubepods-besteffort-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/x.scope\n", UID },
        { "likewise, no pod", "0::/../../../../system.slice/ssh.service\n", "" },
        { "a user's own folder that plays one", "0::/user.slice/user-1000.slice/user@1000.service/kubepods/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427\n", "" },
        { "a pod that plays another one", "0::/kubepods/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/ab/pod00000000-0000-0000-0000-000000000000\n", UID },
        { "no pod", "0::/system.slice/ssh.service\n", "" },
        { "a name that plays one", "0::/user.slice/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427\n", "" },
        { "cut short", "0::/kubepods/pod1b4e28ba-2fa1-11d2\n", "" },
        { "no uid", "0::/kubepods/podxxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx/ab\n", "" },
        { "empty", "", "" },
};
/* clang-format on */

static void a_pod_is_known_by_its_cgroup(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
                char uid[40];

                caller_pod_uid(cgroups[i].cgroup, uid, sizeof(uid));
                if (strcmp(uid, cgroups[i].uid) != 0)
                        fail_msg("%s: want '%s', got '%s'", cgroups[i].what, cgroups[i].uid, uid);
        }
}

static void write_file(const char *path, const char *text)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_int_equal(fputs(text, f) >= 0, 1);
}

static void root_in_a_pod_is_that_pod(void **state)
{
        char folder[] = "/tmp/remuda-caller-XXXXXX", path[128], logs[64];
        struct err err = { 0 };
        struct caller c;

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) text_format(path, sizeof(path), "%s/7", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        (void) text_format(logs, sizeof(logs), "%s/logs", folder);
        assert_int_equal(mkdir(logs, 0700), 0);
        (void) text_format(path, sizeof(path), "%s/team-a_train-0_" UID, logs);
        assert_int_equal(mkdir(path, 0700), 0);
        (void) text_format(path, sizeof(path), "%s/7/cgroup", folder);

        write_file(path, cgroups[0].cgroup);
        assert_int_equal(caller_identify(folder, logs, 7, 0, 0, "no-such-group", &c, &err), 0);
        assert_false(c.trusted);
        assert_string_equal(c.pod_uid, UID);
        assert_string_equal(c.pod_namespace, "team-a");
        assert_string_equal(c.pod, "train-0");

        write_file(path, "0::/system.slice/ssh.service\n");
        assert_int_equal(caller_identify(folder, logs, 7, 0, 0, "no-such-group", &c, &err), 0);
        assert_true(c.trusted);
        assert_int_equal(caller_identify(folder, logs, 7, 1000, 1000, "no-such-group", &c, &err), 0);
        assert_false(c.trusted);
        assert_int_equal(caller_identify(folder, logs, 0, 0, 0, "root", &c, &err), -ESRCH);
        assert_int_equal(caller_identify(folder, logs, 9, 0, 0, "root", &c, &err), -ESRCH);

        (void) unlink(path);
        (void) text_format(path, sizeof(path), "%s/team-a_train-0_" UID, logs);
        (void) rmdir(path);
        (void) rmdir(logs);
        (void) text_format(path, sizeof(path), "%s/7", folder);
        (void) rmdir(path);
        (void) rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_is_known_by_its_cgroup),
                cmocka_unit_test(root_in_a_pod_is_that_pod),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
