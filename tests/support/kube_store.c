/* See kube_store.h. The server is a child process, told by POST /_admin what to hold and how to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "io/loop.h"
#include "tests/support/kube_store.h"

void kube_store_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct kube_store *f = userdata;
        char name[600];

        (void) text_format(name, sizeof(name), "%s %s", store_kind_name(kind), key);
        f->deliveries++;
        if (object == NULL) {
                f->gone++;
                assert_int_equal(json_object_del(f->objects, name), 0);
        } else
                (void) json_object_set_new(f->objects, name, json_deep_copy(object));
}

static void on_synced(void *userdata, enum store_kind kind)
{
        ((struct kube_store *) userdata)->synced[kind]++;
}

void kube_store_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) kind;
        (void) json_array_append_new(((struct kube_store *) userdata)->troubles, json_string(sentence));
}

void kube_store_answer(void *userdata, int result, const char *sentence)
{
        struct kube_store *f = userdata;

        f->answers++;
        f->result = result;
        f->succeeded += result == 0;
        (void) text_copy(f->sentence, sizeof(f->sentence), sentence);
}

void kube_store_run_for(struct kube_store *f, uint64_t usec)
{
        for (uint64_t end = clock_monotonic_usec() + usec; clock_monotonic_usec() < end;)
                (void) sd_event_run(f->loop, 10000);
}

bool kube_store_has(struct kube_store *f, const char *object)
{
        return json_object_get(f->objects, object) != NULL;
}

bool kube_store_said(struct kube_store *f, const char *part)
{
        size_t index;
        json_t *said;

        json_array_foreach(f->troubles, index,
                           said) if (strstr(json_string_value(said), part) != NULL) return true;
        return false;
}

const char *kube_store_field(struct kube_store *f, const char *object, const char *outer, const char *inner)
{
        const char *value = json_string_value(
                json_object_get(json_object_get(json_object_get(f->objects, object), outer), inner));

        return value != NULL ? value : "";
}

static void on_admin(void *userdata, const struct http_call_result *result)
{
        struct kube_store *f = userdata;

        if (result->error != 0 || result->status != 200)
                fail_msg("the fake API server: %d %s %u", result->error, result->sentence, result->status);
        f->stats = json_loadb(result->body, result->body_bytes, 0, NULL);
}

void kube_store_admin(struct kube_store *f, const char *fmt, ...)
{
        char body[2048];
        va_list ap;
        struct http_call_options options = { .method = "POST",
                                             .path = "/_admin",
                                             .content_type = "application/json",
                                             .body = body,
                                             .done = on_admin,
                                             .userdata = f };

        va_start(ap, fmt);
        (void) vsnprintf(body, sizeof(body), fmt, ap);
        va_end(ap);
        options.body_bytes = strlen(body);
        json_decref(f->stats);
        f->stats = NULL;
        assert_int_equal(http_call_start(f->admin, &options, NULL), 0);
        KUBE_STORE_WAIT(f, f->stats != NULL);
}

void kube_store_put_pod(struct kube_store *f, const char *name, const char *uid, const char *node)
{
        kube_store_admin(f,
                         "{\"op\":\"put\",\"path\":\"" KUBE_STORE_PODS
                         "\",\"object\":{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{%s%s%s}}}",
                         name, uid, node != NULL ? "\"nodeName\":\"" : "", node != NULL ? node : "",
                         node != NULL ? "\"" : "");
}

unsigned kube_store_count_requests(struct kube_store *f, const char *part)
{
        unsigned count = 0;
        size_t index;
        json_t *line;

        kube_store_admin(f, "{\"op\":\"stats\"}");
        json_array_foreach(json_object_get(f->stats, "requests"), index, line) count +=
                strstr(json_string_value(line), part) != NULL;
        return count;
}

void kube_store_write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void start_server(struct kube_store *f)
{
        int fds[2];
        char port[16] = "";

        assert_int_equal(pipe(fds), 0);
        f->pid = fork();
        if (f->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(fds[1], 1);
                (void) execlp("python3", "python3", "tests/fake-apiserver", (char *) NULL);
                _exit(127);
        }
        (void) close(fds[1]);
        assert_true(read(fds[0], port, sizeof(port) - 1) > 0);
        (void) close(fds[0]);
        f->port = (unsigned) strtoul(port, NULL, 10);
}

struct kube_store *kube_store_new(void)
{
        struct kube_store *f = calloc(1, sizeof(*f));
        char url[64], config[600];
        struct http_client_options options = { .base_url = url };

        f->commits = -1;
        start_server(f);
        (void) text_copy(f->folder, sizeof(f->folder), "/tmp/remuda-kube-XXXXXX");
        assert_non_null(mkdtemp(f->folder));
        (void) text_format(f->config, sizeof(f->config), "%s/config", f->folder);
        (void) text_format(f->token, sizeof(f->token), "%s/token", f->folder);
        kube_store_write_file(f->token, "first\n");
        (void) text_format(url, sizeof(url), "http://127.0.0.1:%u", f->port);
        (void) text_format(config, sizeof(config),
                           "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                           "clusters: [{name: k, cluster: {server: '%s/'}}]\nusers: [{name: u, user: "
                           "{tokenFile: token}}]\n",
                           url);
        kube_store_write_file(f->config, config);
        assert_int_equal(loop_new(&f->loop, NULL), 0);
        assert_int_equal(http_client_new(f->loop, &options, &f->admin, NULL), 0);
        f->objects = json_object();
        f->troubles = json_array();
        return f;
}

static bool may_commit(void *userdata)
{
        struct kube_store *f = userdata;

        return f->commits-- > 0;
}

void kube_store_open(struct kube_store *f, unsigned kinds, const char *node)
{
        struct store_options options = { .spec = "kubernetes",
                                         .kubeconfig = f->config,
                                         .kinds = kinds,
                                         .field_selector_node = node,
                                         .changed = kube_store_changed,
                                         .synced = on_synced,
                                         .trouble = kube_store_trouble,
                                         .namespaces = f->namespaces,
                                         .namespace_count = f->namespace_count,
                                         .silence_usec = f->silence_usec,
                                         .may_commit = f->commits < 0 ? NULL : may_commit,
                                         .commit_usec = 5000000,
                                         .userdata = f };
        struct err err = { 0 };

        if (store_open(f->loop, &options, &f->store, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(f->deliveries, 0);
}

void kube_store_open_pods(struct kube_store *f)
{
        kube_store_open(f, 1u << STORE_POD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 &&
                                   store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) == 0);
}

void kube_store_free(struct kube_store *f)
{
        char command[100];

        store_close(f->store);
        http_client_free(f->admin);
        sd_event_unref(f->loop);
        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
        json_decref(f->objects);
        json_decref(f->troubles);
        json_decref(f->stats);
        (void) text_format(command, sizeof(command), "rm -rf %s", f->folder);
        assert_int_equal(system(command), 0);
        free(f);
}

void kube_store_bind(struct kube_store *f, const char *name, const char *uid, const char *node)
{
        int before = f->answers;

        store_bind(f->store, &(struct store_binding){ "default", name, uid, node, NULL }, kube_store_answer,
                   f);
        assert_int_equal(f->answers, before);
        KUBE_STORE_WAIT(f, f->answers == before + 1);
}
