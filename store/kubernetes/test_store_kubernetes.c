/* Reflectors and writes against an API server that fails in every way it can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/loop.h"
#include "store/store.h"

#define PODS  "/api/v1/namespaces/default/pods"
#define NODES "/api/v1/nodes"

/* A store on an API server that plays faults (tests/fake-apiserver), and everything the store said. */
struct fixture {
        pid_t pid;
        unsigned port;
        sd_event *loop;
        struct store *store;
        struct http_client *admin;
        json_t *stats; /* of the last admin call */
        char folder[64], config[100], token[100];
        json_t *objects, *troubles;
        unsigned deliveries, gone, synced[STORE_KIND_COUNT];
        int answers, result, succeeded, changes;
        char sentence[512];
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct fixture *f = userdata;
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
        ((struct fixture *) userdata)->synced[kind]++;
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) kind;
        (void) json_array_append_new(((struct fixture *) userdata)->troubles, json_string(sentence));
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct fixture *f = userdata;

        f->answers++;
        f->result = result;
        f->succeeded += result == 0;
        (void) text_copy(f->sentence, sizeof(f->sentence), sentence);
}

/* Runs the loop until `what` holds; fails the test when it does not within 20 s. */
#define WAIT_UNTIL(f, what)                                                                                  \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + 20000000;                                           \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_) {                                                 \
                                char *all_ = json_dumps((f)->troubles, 0);                                   \
                                fail_msg("never came: %s; troubles %s", #what, all_);                        \
                        }                                                                                    \
                        (void) sd_event_run((f)->loop, 20000);                                               \
                }                                                                                            \
        } while (false)

static void run_for(struct fixture *f, uint64_t usec)
{
        for (uint64_t end = clock_monotonic_usec() + usec; clock_monotonic_usec() < end;)
                (void) sd_event_run(f->loop, 10000);
}

static bool has(struct fixture *f, const char *object)
{
        return json_object_get(f->objects, object) != NULL;
}

static const char *field(struct fixture *f, const char *object, const char *outer, const char *inner)
{
        const char *value = json_string_value(
                json_object_get(json_object_get(json_object_get(f->objects, object), outer), inner));

        return value != NULL ? value : "";
}

static void on_admin(void *userdata, const struct http_call_result *result)
{
        struct fixture *f = userdata;

        if (result->error != 0 || result->status != 200)
                fail_msg("the fake API server: %d %s %u", result->error, result->sentence, result->status);
        f->stats = json_loadb(result->body, result->body_bytes, 0, NULL);
}

static void admin(struct fixture *f, const char *fmt, ...)
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
        WAIT_UNTIL(f, f->stats != NULL);
}

static void put_pod(struct fixture *f, const char *name, const char *uid, const char *node)
{
        admin(f,
              "{\"op\":\"put\",\"path\":\"" PODS
              "\",\"object\":{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{%s%s%s}}}",
              name, uid, node != NULL ? "\"nodeName\":\"" : "", node != NULL ? node : "",
              node != NULL ? "\"" : "");
}

static unsigned count_requests(struct fixture *f, const char *part)
{
        unsigned count = 0;
        size_t index;
        json_t *line;

        admin(f, "{\"op\":\"stats\"}");
        json_array_foreach(json_object_get(f->stats, "requests"), index, line) count +=
                strstr(json_string_value(line), part) != NULL;
        return count;
}

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void start_server(struct fixture *f)
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

static struct fixture *fixture_new(void)
{
        struct fixture *f = calloc(1, sizeof(*f));
        char url[64], config[600];
        struct http_client_options options = { .base_url = url };

        start_server(f);
        (void) text_copy(f->folder, sizeof(f->folder), "/tmp/remuda-kube-XXXXXX");
        assert_non_null(mkdtemp(f->folder));
        (void) text_format(f->config, sizeof(f->config), "%s/config", f->folder);
        (void) text_format(f->token, sizeof(f->token), "%s/token", f->folder);
        write_file(f->token, "first\n");
        (void) text_format(url, sizeof(url), "http://127.0.0.1:%u", f->port);
        (void) text_format(config, sizeof(config),
                           "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                           "clusters: [{name: k, cluster: {server: '%s/'}}]\nusers: [{name: u, user: "
                           "{tokenFile: token}}]\n",
                           url);
        write_file(f->config, config);
        assert_int_equal(loop_new(&f->loop, NULL), 0);
        assert_int_equal(http_client_new(f->loop, &options, &f->admin, NULL), 0);
        f->objects = json_object();
        f->troubles = json_array();
        return f;
}

static void open_store(struct fixture *f, unsigned kinds, const char *node)
{
        struct store_options options = { .spec = "kubernetes",
                                         .kubeconfig = f->config,
                                         .kinds = kinds,
                                         .field_selector_node = node,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .trouble = on_trouble,
                                         .userdata = f };
        struct err err = { 0 };

        if (store_open(f->loop, &options, &f->store, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(f->deliveries, 0);
}

static void open_pods(struct fixture *f)
{
        open_store(f, 1u << STORE_POD, NULL);
        WAIT_UNTIL(f, f->synced[STORE_POD] == 1 && store_age_usec(f->store, clock_monotonic_usec()) == 0);
}

static void fixture_free(struct fixture *f)
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

static void bind_pod(struct fixture *f, const char *name, const char *uid, const char *node)
{
        int before = f->answers;

        store_bind(f->store, &(struct store_binding){ "default", name, uid, node, NULL }, on_answer, f);
        assert_int_equal(f->answers, before);
        WAIT_UNTIL(f, f->answers == before + 1);
}

static void lists_and_watches(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        admin(f, "{\"op\":\"put\",\"path\":\"" NODES "\",\"object\":{\"metadata\":{\"name\":\"n1\"}}}");
        open_store(f, 1u << STORE_POD | 1u << STORE_NODE, NULL);
        WAIT_UNTIL(f, f->synced[STORE_POD] == 1 && f->synced[STORE_NODE] == 1);
        assert_true(has(f, "Pod default/a"));
        assert_true(has(f, "Node n1"));
        put_pod(f, "b", "u-b", "n1");
        WAIT_UNTIL(f, has(f, "Pod default/b"));
        put_pod(f, "a", "u-a", "n2");
        WAIT_UNTIL(f, strcmp(field(f, "Pod default/a", "spec", "nodeName"), "n2") == 0);
        admin(f, "{\"op\":\"delete\",\"path\":\"" PODS "/a\"}");
        WAIT_UNTIL(f, !has(f, "Pod default/a"));
        fixture_free(f);
}

static void a_long_list_comes_in_pages(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        for (int i = 0; i < 1100; i += 1) {
                char name[16], uid[16];

                if (i >= 3 && i < 1097)
                        continue; /* few requests, and yet three pages: see below */
                (void) text_format(name, sizeof(name), "p%04d", i);
                (void) text_format(uid, sizeof(uid), "u%d", i);
                put_pod(f, name, uid, NULL);
        }
        admin(f, "{\"op\":\"fault\",\"match\":\"continue=\",\"times\":1,\"do\":\"status\",\"code\":410,"
                 "\"reason\":\"Expired\"}");
        open_pods(f);
        assert_int_equal(json_object_size(f->objects), 6);
        fixture_free(f);
}

static void only_the_pods_of_one_node(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "mine", "u1", "n1");
        put_pod(f, "other", "u2", "n2");
        open_store(f, 1u << STORE_POD, "n1");
        WAIT_UNTIL(f, f->synced[STORE_POD] == 1);
        assert_true(has(f, "Pod default/mine"));
        assert_false(has(f, "Pod default/other"));
        fixture_free(f);
}

static void a_dropped_watch_resumes_where_it_was(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        open_pods(f);
        admin(f, "{\"op\":\"drop\"}");
        put_pod(f, "b", "u-b", NULL);
        WAIT_UNTIL(f, has(f, "Pod default/b"));
        admin(f, "{\"op\":\"end\"}"); /* a clean end, as every few minutes */
        put_pod(f, "c", "u-c", NULL);
        WAIT_UNTIL(f, has(f, "Pod default/c"));
        assert_int_equal(f->deliveries, 3);               /* nothing twice */
        assert_int_equal(count_requests(f, "limit="), 1); /* and no second list */
        fixture_free(f);
}

static void history_that_is_gone_means_a_new_list(void **state)
{
        static const char *const how[] = { "status", "event" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
                struct fixture *f = fixture_new();

                put_pod(f, "a", "u-a", NULL);
                put_pod(f, "b", "u-b", NULL);
                put_pod(f, "c", "u-c", NULL);
                open_pods(f);
                admin(f, "{\"op\":\"fault\",\"match\":\"watch=1\",\"times\":1,\"do\":\"close\"}");
                admin(f, "{\"op\":\"drop\"}");
                admin(f, "{\"op\":\"delete\",\"path\":\"" PODS "/a\"}");
                put_pod(f, "b", "u-b2", NULL); /* another pod of that name */
                admin(f, "{\"op\":\"compact\",\"how\":\"%s\"}", how[i]);
                WAIT_UNTIL(f, f->synced[STORE_POD] == 2);
                assert_false(has(f, "Pod default/a"));
                assert_string_equal(field(f, "Pod default/b", "metadata", "uid"), "u-b2");
                assert_int_equal(f->gone, 2);       /* a, and the old b before the new one */
                assert_int_equal(f->deliveries, 6); /* c was not delivered again */
                put_pod(f, "d", "u-d", NULL);
                WAIT_UNTIL(f, has(f, "Pod default/d"));
                fixture_free(f);
        }
}

static void bookmarks_keep_the_place(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        open_pods(f);
        WAIT_UNTIL(f, count_requests(f, "watch=") >= 1);
        run_for(f, 200000); /* the server has the watch open: a bookmark goes to open ones alone */
        admin(f, "{\"op\":\"compact\"}");  /* history up to here is gone */
        admin(f, "{\"op\":\"bookmark\"}"); /* but the watch was told a newer place */
        run_for(f, 600000);
        admin(f, "{\"op\":\"drop\"}");
        put_pod(f, "b", "u-b", NULL);
        WAIT_UNTIL(f, has(f, "Pod default/b"));
        assert_int_equal(count_requests(f, "limit="), 1);
        fixture_free(f);
}

static void events_may_come_in_any_pieces(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_store(f, 1u << STORE_POD, NULL);
        WAIT_UNTIL(f, f->synced[STORE_POD] == 1);
        admin(f, "{\"op\":\"split\",\"bytes\":7}");
        for (int i = 0; i < 5; i++) {
                char name[8];

                (void) text_format(name, sizeof(name), "p%d", i);
                put_pod(f, name, name, "a-node-with-a-long-name");
        }
        WAIT_UNTIL(f, json_object_size(f->objects) == 5);
        fixture_free(f);
}

static void a_rotated_token_is_read_again(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        admin(f, "{\"op\":\"tokens\",\"tokens\":[\"first\"]}");
        put_pod(f, "a", "u-a", NULL);
        open_pods(f);
        write_file(f->token, "second\n");
        admin(f, "{\"op\":\"tokens\",\"tokens\":[\"second\"]}");
        bind_pod(f, "a", "u-a", "n1");
        assert_int_equal(f->result, 0);
        admin(f, "{\"op\":\"tokens\",\"tokens\":[\"third\"]}"); /* and with no valid one */
        bind_pod(f, "a", "u-a", "n1");
        assert_int_equal(f->result, -EACCES);
        fixture_free(f);
}

static void a_kind_that_is_not_installed_is_empty_until_it_is(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_store(f, 1u << STORE_TRAINING_JOB, NULL);
        WAIT_UNTIL(f, f->synced[STORE_TRAINING_JOB] == 1);
        assert_int_equal(json_array_size(f->troubles), 1);
        assert_true(store_age_usec(f->store, clock_monotonic_usec()) == 0);
        admin(f, "{\"op\":\"put\",\"path\":\"/apis/remuda.dev/v1alpha1/namespaces/default/"
                 "trainingjobs\",\"object\":{\"metadata\":{\"name\":\"j\"}}}");
        WAIT_UNTIL(f, has(f, "TrainingJob default/j"));
        fixture_free(f);
}

static void an_unwell_server_makes_the_store_old_not_empty(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        open_pods(f);
        admin(f, "{\"op\":\"fault\",\"match\":\"watch=1\",\"times\":3,\"do\":\"status\",\"code\":500}");
        admin(f, "{\"op\":\"drop\"}");
        WAIT_UNTIL(f, store_age_usec(f->store, clock_monotonic_usec()) > 100000);
        assert_true(has(f, "Pod default/a"));
        WAIT_UNTIL(f, store_age_usec(f->store, clock_monotonic_usec()) == 0);
        assert_int_equal(f->deliveries, 1);
        fixture_free(f);
}

static void binds_end_well_or_say_why(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        put_pod(f, "b", "u-b", "n9");
        open_pods(f);
        bind_pod(f, "a", "u-a", "n1");
        assert_int_equal(f->result, 0);
        WAIT_UNTIL(f, strcmp(field(f, "Pod default/a", "spec", "nodeName"), "n1") == 0);
        bind_pod(f, "a", "u-a", "n1"); /* again */
        assert_int_equal(f->result, 0);
        bind_pod(f, "a", "u-a", "n2");
        assert_int_equal(f->result, -EALREADY);
        assert_string_equal(f->sentence, "pod 'default/a' is bound to node 'n1'");
        bind_pod(f, "a", "u-other", "n1");
        assert_int_equal(f->result, -ESTALE);
        bind_pod(f, "b", "u-b", "n9");
        assert_int_equal(f->result, 0);
        bind_pod(f, "none", "u", "n1");
        assert_int_equal(f->result, -ENOENT);
        bind_pod(f, "../x", "u", "n1");
        assert_int_equal(f->result, -EINVAL);
        bind_pod(f, "a", "u-a", "");
        assert_int_equal(f->result, -EINVAL);
        fixture_free(f);
}

static void binds_survive_faults(void **state)
{
        static const char *const faults[] = {
                "\"do\":\"lost\",\"times\":1",
                "\"do\":\"close\",\"times\":1",
                "\"do\":\"close\",\"times\":3",
                "\"do\":\"status\",\"code\":500,\"times\":2",
                "\"do\":\"status\",\"code\":409,\"reason\":\"Conflict\",\"times\":2",
                "\"do\":\"status\",\"code\":429,\"retry_after\":1,\"times\":1",
                "\"do\":\"lost\",\"times\":2",
        };
        struct fixture *f = fixture_new();

        (void) state;
        open_pods(f);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%zu", i);
                put_pod(f, name, name, NULL);
                admin(f, "{\"op\":\"fault\",\"match\":\"POST .*%s/binding\",%s}", name, faults[i]);
                bind_pod(f, name, name, "n1");
                if (f->result != 0)
                        fail_msg("%s: %d %s", faults[i], f->result, f->sentence);
        }
        put_pod(f, "q", "u-q", NULL);
        admin(f, "{\"op\":\"fault\",\"match\":\"POST "
                 ".*q/binding\",\"do\":\"status\",\"code\":500,\"times\":100}");
        bind_pod(f, "q", "u-q", "n1"); /* it gives up in the end, and says that the pod is not bound */
        assert_int_equal(f->result, -EAGAIN);
        fixture_free(f);
}

static void many_binds_at_once(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        for (int i = 0; i < 200; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                put_pod(f, name, name, NULL);
        }
        open_pods(f);
        admin(f, "{\"op\":\"fault\",\"match\":\"/binding\",\"times\":10,\"do\":\"lost\"}");
        admin(f, "{\"op\":\"fault\",\"match\":\"/binding\",\"times\":10,\"do\":\"close\"}");
        for (int i = 0; i < 200; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                store_bind(f->store,
                           &(struct store_binding){ "default", name, name, i % 2 ? "n1" : "n2", NULL },
                           on_answer, f);
        }
        WAIT_UNTIL(f, f->answers == 200);
        assert_int_equal(f->succeeded, 200);
        WAIT_UNTIL(f, strcmp(field(f, "Pod default/p199", "spec", "nodeName"), "n1") == 0);
        admin(f, "{\"op\":\"stats\"}");
        assert_in_range(json_integer_value(json_object_get(f->stats, "connections")), 1,
                        150); /* kept alive, not one each */
        fixture_free(f);
}

static void a_put_makes_the_object_and_its_status(void **state)
{
        struct fixture *f = fixture_new();
        json_t *inventory = json_pack("{s:s, s:{s:s, s:s}, s:{s:s}}", "kind", "NodeAccelerators", "metadata",
                                      "name", "n1", "resourceVersion", "7", "status", "pool", "regular");

        (void) state;
        open_store(f, 1u << STORE_INVENTORY, NULL);
        WAIT_UNTIL(f, f->synced[STORE_INVENTORY] == 1);
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, on_answer, f);
        WAIT_UNTIL(f, f->answers == 1);
        assert_int_equal(f->result, 0);
        (void) json_object_set_new(json_object_get(inventory, "status"), "pool", json_string("reserved"));
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, on_answer, f);
        WAIT_UNTIL(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        WAIT_UNTIL(f, strcmp(field(f, "NodeAccelerators n1", "status", "pool"), "reserved") == 0);
        assert_int_equal(count_requests(f, "PATCH /apis/remuda.dev/v1alpha1/nodeaccelerators/n1/status"),
                         3); /* 404, made, changed */
        assert_int_equal(count_requests(f, "PATCH /apis/remuda.dev/v1alpha1/nodeaccelerators/n1?"), 1);
        json_decref(inventory);
        fixture_free(f);
}

/* Somebody else writes between our reading and our writing. */
static json_t *change_late(void *userdata, const json_t *object, struct err *err)
{
        struct fixture *f = userdata;
        json_t *changed = object == NULL ? json_pack("{s:{s:s}}", "metadata", "name", "speeds")
                                         : json_deep_copy(object);

        (void) err;
        if (f->changes++ < 2) { /* the loop is busy with us: another program says it */
                char command[400];

                (void) text_format(
                        command, sizeof(command),
                        "curl -s -o /dev/null -H 'Content-Type: application/json' "
                        "http://127.0.0.1:%u/_admin -d '{\"op\":\"put\",\"path\":"
                        "\"/apis/remuda.dev/v1alpha1/speedtables\",\"object\":{\"metadata\":{\"name\":"
                        "\"speeds\"},\"theirs%d\":\"kept\"}}'",
                        f->port, f->changes);
                assert_int_equal(system(command), 0);
        }
        (void) json_object_set_new(changed, "ours", json_string("kept"));
        return changed;
}

static json_t *change_nothing(void *userdata, const json_t *object, struct err *err)
{
        (void) userdata;
        if (object == NULL)
                (void) err_set(err, -ENOENT, "there is none");
        return NULL;
}

static void a_change_is_made_to_what_is_there(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_store(f, 1u << STORE_SPEED_TABLE, NULL);
        WAIT_UNTIL(f, f->synced[STORE_SPEED_TABLE] == 1);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_nothing, on_answer, f);
        WAIT_UNTIL(f, f->answers == 1);
        assert_int_equal(f->result, -ENOENT);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_late, on_answer, f);
        WAIT_UNTIL(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        assert_int_equal(f->changes, 3); /* 409 to the POST, 409 to the first PUT */
        WAIT_UNTIL(f, json_object_get(json_object_get(f->objects, "SpeedTable speeds"), "ours") != NULL);
        assert_non_null(json_object_get(json_object_get(f->objects, "SpeedTable speeds"), "theirs2"));
        admin(f, "{\"op\":\"fault\",\"match\":\"PUT \",\"times\":1,\"do\":\"close\"}");
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_late, on_answer, f);
        WAIT_UNTIL(f, f->answers == 3);
        assert_int_equal(f->result, 0);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "../x", change_late, on_answer, f);
        WAIT_UNTIL(f, f->answers == 4);
        assert_int_equal(f->result, -EINVAL);
        fixture_free(f);
}

static void patches_creates_deletes_evictions(void **state)
{
        struct fixture *f = fixture_new();
        json_t *patch = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", 0, NULL);
        json_t *pod = json_loads("{\"metadata\":{\"name\":\"made\"},\"spec\":{}}", 0, NULL);

        (void) state;
        admin(f, "{\"op\":\"put\",\"path\":\"" NODES "\",\"object\":{\"metadata\":{\"name\":\"n1\"}}}");
        open_store(f, 1u << STORE_POD | 1u << STORE_NODE, NULL);
        WAIT_UNTIL(f, f->synced[STORE_POD] == 1 && f->synced[STORE_NODE] == 1);
        store_patch(f->store, STORE_NODE, NULL, "n1", patch, on_answer, f);
        WAIT_UNTIL(f, f->answers == 1);
        assert_int_equal(f->result, 0);
        WAIT_UNTIL(f, json_object_get(json_object_get(json_object_get(f->objects, "Node n1"), "metadata"),
                                      "labels") != NULL);
        store_create(f->store, STORE_POD, "default", pod, on_answer, f);
        WAIT_UNTIL(f, f->answers == 2 && has(f, "Pod default/made"));
        assert_int_equal(f->result, 0);
        store_create(f->store, STORE_POD, "default", pod, on_answer, f);
        WAIT_UNTIL(f, f->answers == 3);
        assert_int_equal(f->result, -EEXIST);
        store_evict(f->store, "default", "made", "wrong", 5, on_answer, f);
        WAIT_UNTIL(f, f->answers == 4);
        assert_int_equal(f->result, -ESTALE);
        admin(f, "{\"op\":\"fault\",\"match\":\"eviction\",\"times\":1,\"do\":\"status\",\"code\":429,"
                 "\"reason\":\"TooManyRequests\"}");
        store_evict(f->store, "default", "made", NULL, 5, on_answer, f);
        WAIT_UNTIL(f, f->answers == 5);
        assert_int_equal(f->result, -EBUSY); /* a disruption budget forbids */
        store_evict(f->store, "default", "made", NULL, 5, on_answer, f);
        WAIT_UNTIL(f, f->answers == 6);
        assert_int_equal(f->result, 0);
        admin(f, "{\"op\":\"fault\",\"match\":\"DELETE\",\"times\":1,\"do\":\"lost\"}");
        store_delete(f->store, STORE_POD, "default", "made", NULL, 0, on_answer, f);
        WAIT_UNTIL(f, f->answers == 7);
        assert_true(f->result == 0 || f->result == -ENOENT); /* the reply was lost: gone either way */
        store_delete(f->store, STORE_POD, "default", "made", NULL, 0, on_answer, f);
        WAIT_UNTIL(f, f->answers == 8);
        assert_int_equal(f->result, -ENOENT);
        json_decref(patch);
        json_decref(pod);
        fixture_free(f);
}

static void an_event_is_said_once(void **state)
{
        struct fixture *f = fixture_new();
        struct store_event event = { "Pod",       "default",        "a", "u-a", "Warning",
                                     "ChipsBusy", "held by others", NULL };

        (void) state;
        open_pods(f);
        for (int i = 0; i < 5; i++)
                store_event(f->store, &event);
        event.reason = "WrongModel";
        store_event(f->store, &event);
        for (int i = 0; i < 4; i++) { /* a part of an object has its own */
                event.field = i % 2 == 0 ? "status.devices{GPU-1}" : "status.devices{GPU-2}";
                store_event(f->store, &event);
        }
        run_for(f, 200000);
        assert_int_equal(count_requests(f, "POST /apis/events.k8s.io/v1/namespaces/default/events"), 4);
        assert_int_equal(json_array_size(f->troubles), 0);
        fixture_free(f);
}

static void closing_answers_what_waits(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        put_pod(f, "a", "u-a", NULL);
        put_pod(f, "b", "u-b", NULL);
        open_pods(f);
        admin(f, "{\"op\":\"fault\",\"match\":\"a/binding\",\"times\":1,\"do\":\"delay\",\"seconds\":3}");
        admin(f, "{\"op\":\"fault\",\"match\":\"b/binding\",\"times\":100,\"do\":\"close\"}");
        store_bind(f->store, &(struct store_binding){ "default", "a", "u-a", "n1", NULL }, on_answer, f);
        store_bind(f->store, &(struct store_binding){ "default", "b", "u-b", "n1", NULL }, on_answer, f);
        run_for(f, 300000);
        store_close(f->store);
        f->store = NULL;
        assert_int_equal(f->answers, 2);
        assert_int_equal(f->result, -ECANCELED);
        fixture_free(f);
}

static void no_server_is_not_fatal(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
        open_store(f, 1u << STORE_POD, NULL);
        run_for(f, 500000);
        assert_true(json_array_size(f->troubles) >= 1);
        assert_true(store_age_usec(f->store, clock_monotonic_usec()) > 300000);
        fixture_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_and_watches),
                cmocka_unit_test(a_long_list_comes_in_pages),
                cmocka_unit_test(only_the_pods_of_one_node),
                cmocka_unit_test(a_dropped_watch_resumes_where_it_was),
                cmocka_unit_test(history_that_is_gone_means_a_new_list),
                cmocka_unit_test(bookmarks_keep_the_place),
                cmocka_unit_test(events_may_come_in_any_pieces),
                cmocka_unit_test(a_rotated_token_is_read_again),
                cmocka_unit_test(a_kind_that_is_not_installed_is_empty_until_it_is),
                cmocka_unit_test(an_unwell_server_makes_the_store_old_not_empty),
                cmocka_unit_test(binds_end_well_or_say_why),
                cmocka_unit_test(binds_survive_faults),
                cmocka_unit_test(many_binds_at_once),
                cmocka_unit_test(a_put_makes_the_object_and_its_status),
                cmocka_unit_test(a_change_is_made_to_what_is_there),
                cmocka_unit_test(patches_creates_deletes_evictions),
                cmocka_unit_test(an_event_is_said_once),
                cmocka_unit_test(closing_answers_what_waits),
                cmocka_unit_test(no_server_is_not_fatal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
