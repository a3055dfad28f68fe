/* Kubeconfigs as kubectl writes them, in one file and in several, and what is said of each that cannot be
 * used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/kubernetes/kubeconfig.h"

#define CONTEXT                                                                                              \
        "current-context: c\n"                                                                               \
        "contexts: [{name: b}, {name: c, context: {cluster: k, user: u}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:1/'}}]\n"

/* clang-format off */
static const struct {
        const char *text, *says;
        int result;
} refused[] = {
        { "a: [",                                       "kubeconfig '",                                  -EBADMSG },
        { "{}",                                         "current-context: is missing",                   -EBADMSG },
        { "current-context: ''",                        "current-context: is missing",                   -EBADMSG },
        { "current-context: 7",                         "current-context: is missing",                   -EBADMSG },
        { "current-context: c",                         "there is no context 'c'",                       -EBADMSG },
        { "current-context: c\ncontexts: [{name: c}]",  "there is no context 'c'",                       -EBADMSG },
        { "current-context: c\ncontexts: [{name: c, context: {}}]", "there is no cluster ''",            -EBADMSG },
        { CONTEXT,                                      "context 'c': there is no cluster 'k'",          -EBADMSG },
        { CONTEXT "clusters: [{name: 7}, {name: k}]",   "there is no cluster 'k'",                       -EBADMSG },
        { CONTEXT "clusters: [{name: k, cluster: {}}]", "cluster 'k': server: is missing",               -EBADMSG },
        { CONTEXT "clusters: [{name: k, cluster: {server: ''}}]", "must begin with https://",            -EBADMSG },
        { CONTEXT "clusters: [{name: k, cluster: {server: 'ftp://h'}}]", "must begin with https://",     -EBADMSG },
        { CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: '%'}}]",
                                                        "certificate-authority-data: is not base64",     -EBADMSG },
        { CONTEXT CLUSTER "users: [{name: u, user: {exec: {command: x}}}]",   "user 'u': exec: is not supported", -ENOTSUP },
        { CONTEXT CLUSTER "users: [{name: u, user: {token: t, as: x}}]",          "user 'u': as: is not supported", -ENOTSUP },
        { CONTEXT CLUSTER "users: [{name: u, user: {token: t, as-groups: [x]}}]", "user 'u': as-groups: is not supported", -ENOTSUP },
        { CONTEXT CLUSTER "users: [{name: u, user: {password: x}}]",          "password: is not supported", -ENOTSUP },
        { CONTEXT CLUSTER "users: [{name: u, user: {token: 7}}]",             "token: must be",          -EBADMSG },
        { CONTEXT CLUSTER "users: [{name: u, user: {client-certificate-data: '%'}}]", "client-certificate-data: is not base64", -EBADMSG },
        { CONTEXT CLUSTER "users: [{name: u, user: {client-key-data: '%'}}]", "client-key-data: is not base64", -EBADMSG },
        { "current-context: c\ncontexts: [{name: c, context: {cluster: k, namespace: 7}}]\n" CLUSTER, "namespace: must be", -EBADMSG },
};
/* clang-format on */

/* A folder with the files "a" and "b", and nothing of the environment. */
static int make_place(void **state)
{
        static char place[64];

        (void) text_copy(place, sizeof(place), "/tmp/remuda-kubeconfig-XXXXXX");
        *state = mkdtemp(place);
        return *state == NULL || unsetenv("KUBECONFIG") < 0 || unsetenv("KUBERNETES_SERVICE_HOST") < 0 ||
               setenv("HOME", place, 1) < 0;
}

static int remove_place(void **state)
{
        char command[100];

        (void) text_format(command, sizeof(command), "rm -rf %s", (const char *) *state);
        return system(command);
}

static const char *write_file(void **state, const char *name, const char *bytes)
{
        static char paths[2][128];
        char *path = paths[name[0] == 'b'];
        FILE *file;

        (void) text_format(path, 128, "%s/%s", (const char *) *state, name);
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(bytes, file) >= 0);
        assert_int_equal(fclose(file), 0);
        return path;
}

static void what_cannot_be_used_is_said(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct kubeconfig config;
                struct err err = { 0 };
                int r = kubeconfig_load(write_file(state, "a", refused[i].text), &config, &err);

                if (r != refused[i].result || strstr(err.msg, refused[i].says) == NULL)
                        fail_msg("%s\nwant %d '%s'\ngot %d '%s'", refused[i].text, refused[i].result,
                                 refused[i].says, r, err.msg);
                kubeconfig_free(&config);
        }
}

static void all_that_is_understood(void **state)
{
        struct kubeconfig c;
        struct err err = { 0 };
        const char *path = write_file(
                state, "a",
                "current-context: c\n"
                "contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://h:1', certificate-authority: ca/x, "
                "tls-server-name: s, "
                "proxy-url: 'http://p', insecure-skip-tls-verify: true, certificate-authority-data: QUJD}}]\n"
                "users: [{name: u, user: {token: t, tokenFile: /t, client-certificate: cc, client-key: '', "
                "client-certificate-data: QUJD, client-key-data: QUJE}}]\n");
        char beside[200];

        if (kubeconfig_load(path, &c, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(c.server, "http://h:1");
        (void) text_format(beside, sizeof(beside), "%s/ca/x", (const char *) *state);
        assert_string_equal(c.ca_file, beside); /* relative to the file */
        (void) text_format(beside, sizeof(beside), "%s/cc", (const char *) *state);
        assert_string_equal(c.certificate_file, beside);
        assert_string_equal(c.token_file, "/t");
        assert_null(c.key_file); /* empty = not written */
        assert_string_equal(c.ca_pem, "ABC");
        assert_string_equal(c.certificate_pem, "ABC");
        assert_string_equal(c.key_pem, "ABD");
        assert_string_equal(c.token, "t");
        assert_string_equal(c.tls_server_name, "s");
        assert_string_equal(c.proxy, "http://p");
        assert_string_equal(c.namespace_, "n");
        assert_true(c.insecure);
        kubeconfig_free(&c);
        assert_int_equal(chdir(*state), 0);
        write_file(state, "b",
                   CONTEXT
                   "clusters: [{name: k, cluster: {server: 'https://h/', certificate-authority: x}}]");
        assert_int_equal(kubeconfig_load("b", &c, NULL), 0);
        assert_string_equal(c.ca_file, "x"); /* of this folder, as the file is */
        kubeconfig_free(&c);
        assert_int_equal(chdir("/"), 0);
}

/* As kubectl: who is not there is left out, the first that defines something wins. */
static void several_files(void **state)
{
        struct kubeconfig c;
        struct err err = { 0 };
        char list[400];

        write_file(state, "a", CONTEXT);
        write_file(state, "b", "current-context: d\n" CLUSTER);
        (void) text_format(list, sizeof(list), "%s/none:%s/a:%s/b", (const char *) *state,
                           (const char *) *state, (const char *) *state);
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        if (kubeconfig_load(NULL, &c, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(c.server, "https://h:1");
        assert_string_equal(c.namespace_, "default");
        kubeconfig_free(&c);
        write_file(state, "b", "a: [");
        assert_int_equal(kubeconfig_load(NULL, &c, &err), -EBADMSG);
        kubeconfig_free(&c);
        (void) text_format(list, sizeof(list), "%s/b:%s/a", (const char *) *state, (const char *) *state);
        assert_int_equal(kubeconfig_load(list, &c, &err), -EBADMSG); /* nor is one behind it looked at */
        assert_non_null(strstr(err.msg, "/b"));
        kubeconfig_free(&c);
        (void) text_format(list, sizeof(list), "%s/none:%s/nor", (const char *) *state,
                           (const char *) *state);
        assert_int_equal(kubeconfig_load(list, &c, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "none of the kubeconfig files"));
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        assert_int_equal(kubeconfig_load(NULL, &c, &err), -ENOENT);
        assert_int_equal(setenv("KUBECONFIG", "", 1), 0);
}

static void more_files_than_are_read_are_refused(void **state)
{
        struct kubeconfig c;
        struct err err = { 0 };
        struct text list = { 0 };

        for (int i = 0; i < 16; i++)
                text_printf(&list, "%s/a:", (const char *) *state);
        write_file(state, "a", CONTEXT CLUSTER);
        write_file(state, "b", "{}");
        assert_int_equal(kubeconfig_load(list.data, &c, &err), 0);
        kubeconfig_free(&c);
        text_printf(&list, "%s/b", (const char *) *state);
        assert_int_equal(kubeconfig_load(list.data, &c, &err), -E2BIG);
        assert_non_null(strstr(err.msg, "more than 16 files: '"));
        assert_non_null(strstr(err.msg, "/b' is too many"));
        kubeconfig_free(&c);
        text_free(&list);
}

static void where_it_is_looked_for(void **state)
{
        struct kubeconfig c;
        struct err err = { 0 };
        char path[128];

        assert_int_equal(unsetenv("KUBECONFIG"), 0);
        assert_int_equal(kubeconfig_load(NULL, &c, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "there is no ~/.kube/config"));
        assert_int_equal(setenv("KUBECONFIG", "", 1), 0);               /* as if there were none */
        assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "h", 1), 0); /* and no port: this is no pod */
        (void) text_format(path, sizeof(path), "%s/none", (const char *) *state);
        assert_int_equal(kubeconfig_load(path, &c, &err), -ENOENT);
        assert_int_equal(kubeconfig_load(NULL, &c, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "there is no ~/.kube/config"));
        (void) text_format(path, sizeof(path), "%s/.kube", (const char *) *state);
        assert_int_equal(mkdir(path, 0700), 0);
        write_file(state, ".kube/config", CONTEXT CLUSTER);
        assert_int_equal(kubeconfig_load(NULL, &c, &err), 0);
        assert_string_equal(c.server, "https://h:1");
        kubeconfig_free(&c);
        assert_int_equal(unsetenv("HOME"), 0);
        assert_int_equal(kubeconfig_load(NULL, &c, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "set KUBECONFIG"));
}

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static void put(const char *path, const char *bytes)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "we");

        if (file == NULL || fputs(bytes, file) < 0)
                _exit(3);
}

/* In a pod: what Kubernetes mounts and sets. Return: of the process, 0 = as it should be. */
static int in_a_pod(const char *host, const char *server, bool namespace_)
{
        struct kubeconfig c;

        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "/var/run/", "tmpfs", 0, NULL) < 0)
                return 2;
        (void) mkdir("/var/run/secrets", 0755);
        (void) mkdir("/var/run/secrets/kubernetes.io", 0755);
        (void) mkdir(ACCOUNT, 0755);
        if (setenv("KUBERNETES_SERVICE_HOST", host, 1) < 0 ||
            kubeconfig_load(NULL, &c, NULL) != -ENOENT || /* no port */
            setenv("KUBERNETES_SERVICE_PORT", "443", 1) < 0 ||
            kubeconfig_load(NULL, &c, NULL) != -ENOENT) /* no token */
                return 1;
        put(ACCOUNT "/token", "t");
        if (namespace_)
                put(ACCOUNT "/namespace", "team");
        if (kubeconfig_load(NULL, &c, NULL) != 0 || strcmp(c.server, server) != 0 ||
            strcmp(c.ca_file, ACCOUNT "/ca.crt") != 0 || strcmp(c.token_file, ACCOUNT "/token") != 0 ||
            strcmp(c.namespace_, namespace_ ? "team" : "default") != 0)
                return 1;
        kubeconfig_free(&c);
        return 0;
}

static void a_pod_has_its_service_account(void **state)
{
        static const struct {
                const char *host, *server;
                bool namespace_;
        } pods[] = {
                { "10.0.0.1", "https://10.0.0.1:443", true },
                { "fd00::1", "https://[fd00::1]:443", false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                pid_t child = fork();
                int status = -1;

                if (child == 0)
                        _exit(in_a_pod(pods[i].host, pods[i].server, pods[i].namespace_));
                assert_int_equal(waitpid(child, &status, 0), child);
                if (WEXITSTATUS(status) == 2)
                        skip(); /* needs root: a mount of its own */
                assert_int_equal(status, 0);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_used_is_said),
                cmocka_unit_test(all_that_is_understood),
                cmocka_unit_test(several_files),
                cmocka_unit_test(more_files_than_are_read_are_refused),
                cmocka_unit_test(where_it_is_looked_for),
                cmocka_unit_test(a_pod_has_its_service_account),
        };

        return cmocka_run_group_tests(tests, make_place, remove_place);
}
