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
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* A machine with one process, of number 7, in the cgroup of the row; who it is at the socket is said by
 * `peer`. */
struct machine {
        char folder[64], cgroup[128], own[128], logs[128], pod[256];
};

static void machine_make(struct machine *m, const char *cgroup)
{
        char path[128];

        (void) text_copy(m->folder, sizeof(m->folder), "/tmp/remuda-caller-XXXXXX");
        assert_non_null(mkdtemp(m->folder));
        for (size_t i = 0; i < 3; i++) {
                static const char *const folders[] = { "7", "self", "logs" };

                (void) text_format(path, sizeof(path), "%s/%s", m->folder, folders[i]);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        (void) text_format(m->logs, sizeof(m->logs), "%s/logs", m->folder);
        (void) text_format(m->pod, sizeof(m->pod), "%s/team-a_train-0_" UID, m->logs);
        assert_int_equal(mkdir(m->pod, 0700), 0);
        (void) text_format(m->cgroup, sizeof(m->cgroup), "%s/7/cgroup", m->folder);
        (void) text_format(m->own, sizeof(m->own), "%s/self/cgroup", m->folder);
        write_file(m->cgroup, cgroup);
        write_file(m->own, "0::/system.slice/remuda-agent.service\n");
}

static void machine_remove(const struct machine *m)
{
        char path[128];

        (void) unlink(m->cgroup);
        (void) unlink(m->own);
        (void) rmdir(m->pod);
        (void) rmdir(m->logs);
        (void) text_format(path, sizeof(path), "%s/7", m->folder);
        (void) rmdir(path);
        (void) text_format(path, sizeof(path), "%s/self", m->folder);
        (void) rmdir(path);
        (void) rmdir(m->folder);
}

static int pidfd_of(pid_t pid)
{
        return (int) syscall(SYS_pidfd_open, pid, 0);
}

static int identify(const struct machine *m, uid_t uid, struct caller *ret)
{
        struct peer peer = { .pid = 7, .uid = uid, .gid = uid, .pidfd = pidfd_of(getpid()) };
        struct err err = { 0 };
        int r = caller_identify(m->folder, m->logs, &peer, "no-such-group", ret, &err);

        peer_close(&peer);
        return r;
}

static void root_in_a_pod_is_that_pod(void **state)
{
        struct machine m;
        struct caller c;

        (void) state;
        machine_make(&m, cgroups[0].cgroup);
        assert_int_equal(identify(&m, 0, &c), 0);
        assert_false(c.trusted);
        assert_string_equal(c.pod_uid, UID);
        assert_string_equal(c.pod_namespace, "team-a");
        assert_string_equal(c.pod, "train-0");
        machine_remove(&m);
}

/* An agent in a pod, by a runtime that gives it the host's view of cgroups: who came into its container by
 * `kubectl exec` is of it; the pod's other containers, and those of other pods, are not. */
static void who_is_in_the_agents_container_is_of_it(void **state)
{
        static const char own[] = "0::/kubepods/burstable/pod" UID "/ab\n";
        struct machine m;
        struct caller c = { 0 };

        (void) state;
        machine_make(&m, own);
        write_file(m.own, own);
        assert_int_equal(identify(&m, 0, &c), 0);
        assert_true(c.trusted && c.pod_uid[0] == '\0');
        assert_int_equal(identify(&m, 1000, &c), 0);
        assert_false(c.trusted);
        write_file(m.own, "0::/kubepods/burstable/pod" UID "/cd\n");
        assert_int_equal(identify(&m, 0, &c), 0);
        assert_false(c.trusted);
        assert_string_equal(c.pod_uid, UID);
        machine_remove(&m);
}

/* clang-format off */
static const struct { const char *what, *cgroup; bool host; } places[] = {
        { "a service",               "0::/system.slice/ssh.service\n", true },
        { "a login",                 "0::/user.slice/user-0.slice/session-1.scope\n", true },
        { "the root",                "0::/\n", true },
        { "a service, from a pod",   "0::/../../../system.slice/ssh.service\n", true },
        { "version 1",               "12:pids:/user.slice\n1:name=systemd:/user.slice/user-0.slice\n0::/user.slice\n", true },
        { "version 1, not systemd's","4:memory:/somewhere\n1:name=systemd:/\n0::/\n", true },
        { "the agent's own",         "0::/system.slice/remuda-agent.service\n", true },
        { "a static pod, systemd",   "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice/cri-containerd-ab.scope\n", false },
        { "a static pod, cgroupfs",  "0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/ab\n", false },
        { "a static pod, from a pod","0::/../../pod0123456789abcdef0123456789abcdef/ab\n", false },
        { "docker",                  "0::/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope\n", false },
        { "docker, version 1",       "4:memory:/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n1:name=systemd:/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", false },
        { "rootless",                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope\n", false },
        { "podman, a machine",       "0::/machine.slice/libpod-ab.scope\n", false },
        { "the agent's sibling",     "0::/../cri-containerd-ab.scope\n", false },
        { "a name that begins alike","0::/system.slices/x\n", false },
        { "nothing",                 "\n", false },
};
/* clang-format on */

static void who_cannot_be_named_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct machine m;
                struct caller c = { 0 };
                int r;

                machine_make(&m, places[i].cgroup);
                r = identify(&m, 0, &c);
                if (r != (places[i].host ? 0 : -EACCES) || c.trusted != places[i].host)
                        fail_msg("%s: %d, trusted %d", places[i].what, r, c.trusted);
                if (places[i].host && (identify(&m, 1000, &c) != 0 || c.trusted))
                        fail_msg("%s: not root, and trusted", places[i].what);
                machine_remove(&m);
        }
}

/* clang-format off */
static const struct {
        const char *status; /* of the process; NULL = it cannot be read */
        gid_t gid;
        bool trusted;
} members[] = {
        { NULL,                                          0,    true  }, /* by its own */
        { NULL,                                          1000, false },
        { "Name:\tx\nGroups:\t4 24 0 \nVmPeak:\t1\n", 1000, true  },
        { "Name:\tx\nGroups:\t4 24 \n0\n",             1000, false },
        { "Name:\tx\nGroups:\t\n",                     1000, false },
        { "Name:\tx\n",                                  1000, false },
};
/* clang-format on */

static void who_is_in_the_group_by_any_of_his_is_trusted(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                struct peer peer = { .pid = 7, .uid = 1000, .gid = members[i].gid };
                struct caller c = { 0 };
                struct machine m;
                char status[96];

                machine_make(&m, "0::/user.slice/user-1000.slice/session-1.scope\n");
                assert_true(text_format(status, sizeof(status), "%s/7/status", m.folder));
                if (members[i].status != NULL)
                        write_file(status, members[i].status);
                peer.pidfd = pidfd_of(getpid());
                assert_int_equal(caller_identify(m.folder, m.logs, &peer, "root", &c, NULL), 0);
                peer_close(&peer);
                if (c.trusted != members[i].trusted)
                        fail_msg("row %zu: %d", i, c.trusted);
                (void) unlink(status);
                machine_remove(&m);
        }
}

static void a_pod_whose_folder_is_not_there_has_no_name(void **state)
{
        static const char *const folders[] = { ("lonely_" UID), "a_b_other", "a-b" };

        (void) state;
        for (size_t i = 0; i <= ARRAY_SIZE(folders); i++) {
                struct machine m;
                struct caller c = { 0 };

                machine_make(&m, cgroups[0].cgroup);
                assert_int_equal(rmdir(m.pod), 0);
                if (i < ARRAY_SIZE(folders)) {
                        (void) text_format(m.pod, sizeof(m.pod), "%s/%s", m.logs, folders[i]);
                        assert_int_equal(mkdir(m.pod, 0700), 0);
                } else
                        assert_int_equal(rmdir(m.logs), 0); /* no folder of pods at all */
                assert_int_equal(identify(&m, 0, &c), 0);
                assert_string_equal(c.pod_uid, UID);
                assert_string_equal(c.pod, "");
                machine_remove(&m);
        }
}

/* Between connect() and the look into /proc the number went to another process: root's, of the host. */
static void who_has_ended_is_nobody(void **state)
{
        struct peer peer = { .pid = 7, .pidfd = -1 };
        struct machine m;
        struct caller c;
        struct err err = { 0 };
        pid_t child = fork();

        (void) state;
        if (child == 0)
                _exit(0);
        machine_make(&m, "0::/system.slice/ssh.service\n");
        peer.pidfd = pidfd_of(child);
        (void) waitpid(child, NULL, 0);
        assert_int_equal(caller_identify(m.folder, m.logs, &peer, "root", &c, &err), -ESRCH);
        peer_close(&peer);
        /* a kernel that gives no pidfd: the time of its start is another one */
        peer = (struct peer){ .pid = 7, .pidfd = -1, .start_ticks = 1 };
        assert_int_equal(caller_identify(m.folder, m.logs, &peer, "root", &c, &err), -ESRCH);
        peer.pid = 0;
        assert_int_equal(caller_identify(m.folder, m.logs, &peer, "root", &c, &err), -ESRCH);
        peer.pid = 9;
        assert_int_equal(caller_identify(m.folder, m.logs, &peer, "root", &c, &err), -ESRCH);
        machine_remove(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_is_known_by_its_cgroup),
                cmocka_unit_test(root_in_a_pod_is_that_pod),
                cmocka_unit_test(who_is_in_the_agents_container_is_of_it),
                cmocka_unit_test(who_cannot_be_named_is_refused),
                cmocka_unit_test(who_is_in_the_group_by_any_of_his_is_trusted),
                cmocka_unit_test(a_pod_whose_folder_is_not_there_has_no_name),
                cmocka_unit_test(who_has_ended_is_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
