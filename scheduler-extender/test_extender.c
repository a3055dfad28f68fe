/* An extender from its options to its end, on a directory, asked over HTTP: what it answers to good and to
 * bad requests, and what it refuses to begin with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/loop.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/server/settings.h"
#include "tests/support/dir_store.h"
#include "tests/support/patience.h"

#define INVENTORY(NAME)                                                                                      \
        "{\"apiVersion\":\"remuda.dev/"                                                                      \
        "v1alpha1\",\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"" NAME                            \
        "\"},\"status\":{\"generation\":1,\"bootID\":\"b\",\"nodeClass\":\"any\",\"pool\":\"regular\","      \
        "\"devices\":[],\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":\"cuda\",\"model\":"   \
        "\"H100\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\",\"total\":8,\"healthy\":8,\"free\":0," \
        "\"tflopsBf16\":100,\"memoryBytes\":85899345920}]}}"
#define POD(NAME, MORE)                                                                                      \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" NAME                             \
        "\",\"namespace\":\"default\",\"uid\":\"u-" NAME "\"" MORE                                           \
        "},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/"               \
        "gpu\":\"2\"}}}]}}"
#define ARGS(NAME) "{\"Pod\":" POD(NAME, "") ",\"NodeNames\":[\"a\",\"b\",\"z\"]}"
#define BIND(NAME, UID, NODE)                                                                                \
        "{\"PodName\":\"" NAME "\",\"PodNamespace\":\"default\",\"PodUID\":\"" UID "\",\"Node\":\"" NODE "\"}"

struct bed {
        struct dir_store *folder;
        struct extender_options options;
        struct extender *extender;
        struct http_client *client;
        char spec[80], url[160];
        struct text said;
        bool answered;
        unsigned status;
        char body[65536];
};

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        (void) priority;
        text_printf(&((struct bed *) userdata)->said, "%s %s\n", event, text);
}

static struct bed *begin(void)
{
        struct bed *b = calloc(1, sizeof(*b));

        assert_non_null(b);
        b->folder = dir_store_new();
        dir_store_write(b->folder, "a.json", INVENTORY("a"));
        dir_store_write(b->folder, "b.json", INVENTORY("b"));
        dir_store_write(b->folder, "p.json", POD("p", ""));
        dir_store_write(b->folder, "q.json", POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"));
        (void) text_format(b->spec, sizeof(b->spec), "dir:%s", b->folder->path);
        extender_options_default(&b->options);
        b->options.server.store = b->spec;
        b->options.server.listen = "127.0.0.1:0";
        b->options.server.log = on_log;
        b->options.server.log_userdata = b;
        return b;
}

static void open_extender(struct bed *b)
{
        struct http_client_options client = { .base_url = b->url };
        struct err err = { 0 };

        if (extender_new(b->folder->loop, &b->options, &b->extender, &err) < 0)
                fail_msg("%s", err.msg);
        (void) text_format(b->url, sizeof(b->url), "http://%s", extender_address(b->extender));
        assert_int_equal(http_client_new(b->folder->loop, &client, &b->client, NULL), 0);
}

static void end(struct bed *b)
{
        http_client_free(b->client);
        extender_free(b->extender);
        dir_store_free(b->folder);
        text_free(&b->said);
        free(b);
}

static void on_answer(void *userdata, const struct http_call_result *result)
{
        struct bed *b = userdata;

        b->answered = true;
        b->status = result->error != 0 ? 0 : result->status;
        (void) text_format(b->body, sizeof(b->body), "%.*s", (int) result->body_bytes,
                           result->body == NULL ? "" : result->body);
}

static unsigned ask(struct bed *b, const char *path, const char *body)
{
        struct http_call_options call = { .method = body == NULL ? "GET" : "POST",
                                          .path = path,
                                          .body = body,
                                          .body_bytes = body == NULL ? 0 : strlen(body),
                                          .content_type = "application/json",
                                          .timeout_usec = 20000000,
                                          .done = on_answer,
                                          .userdata = b };

        b->answered = false;
        assert_int_equal(http_call_start(b->client, &call, NULL), 0);
        for (uint64_t end = clock_monotonic_usec() + patience_usec(); !b->answered;) {
                if (clock_monotonic_usec() > end)
                        fail_msg("no answer to %s", path);
                (void) sd_event_run(b->folder->loop, 20000);
        }
        return b->status;
}

static void await_ready(struct bed *b)
{
        for (uint64_t end = clock_monotonic_usec() + patience_usec(); ask(b, "/leaderz", NULL) != 200;)
                if (clock_monotonic_usec() > end)
                        fail_msg("never ready: %s", b->body);
}

/* clang-format off */
static const struct { const char *path, *body; unsigned status; const char *says; } requests[] = {
        { "/healthz",              NULL,                                200, "" },
        { "/readyz",               NULL,                                200, "" },
        { "/metrics",              NULL,                                200, "remuda_extender_requests_total" },
        { "/scheduler/filter",     ARGS("p"),                           200, "NodeUnknown" },
        { "/scheduler/filter",     "{\"Pod\":7}",                       400, "filter: " },
        { "/scheduler/filter",     "",                                  400, "filter: " },
        { "/scheduler/prioritize", ARGS("p"),                           200, "\"Score\":10" },
        { "/scheduler/prioritize", "[]",                                400, "prioritize: " },
        { "/scheduler/bind",       "{",                                 400, "bind: " },
        { "/scheduler/bind",       BIND("who", "u", "a"),               200, "the pod is not in the store" },
        { "/scheduler/bind",       BIND("p", "another", "a"),           200, "the pod of that name has another uid" },
        { "/scheduler/bind",       BIND("p", "u-p", "z"),               200, "NodeUnknown" },
        { "/scheduler/bind",       BIND("p", "u-p", "a"),               200, "\"Error\":\"\"" },
        { "/scheduler/bind",       BIND("p", "u-p", "a"),               200, "\"Error\":\"\"" },
        { "/scheduler/bind",       BIND("p", "u-p", "b"),               200, "the pod is bound to another node" },
        { "/v1/explain",           NULL,                                400, "pod=NAME is missing" },
        { "/v1/explain?pod=",      NULL,                                400, "pod=NAME is missing" },
        { "/v1/explain?pod=who",   NULL,                                404, "there is no pod default/who" },
        { "/v1/explain?namespace=x&pod=p", NULL,                        404, "there is no pod x/p" },
        { "/v1/explain?pod=q",     NULL,                                200, "cacheAgeSeconds" },
        { "/v1/whatif",            "{\"pods\":",                        400, "whatif: line 1" },
        { "/v1/whatif",            "[]",                                400, "whatif: the question must be an object" },
        { "/v1/whatif",            "{}",                                400, "whatif: " },
        { "/v1/whatif",            "{\"items\":[" POD("new", "") "]}",  200, "new" },
        { "/none",                 NULL,                                404, "" },
};
/* clang-format on */

static void requests_are_answered_or_refused(void **state)
{
        struct bed *b = begin();

        (void) state;
        open_extender(b);
        await_ready(b);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
                if (ask(b, requests[i].path, requests[i].body) != requests[i].status ||
                    strstr(b->body, requests[i].says) == NULL)
                        fail_msg("%zu %s %s: %u %s", i, requests[i].path,
                                 requests[i].body == NULL ? "" : requests[i].body, b->status, b->body);
        end(b);
}

/* Before the first lists are in nobody is told anything that may be wrong. */
static void nothing_is_answered_before_all_is_read(void **state)
{
        struct bed *b = begin();

        (void) state;
        for (int i = 0; i < 300; i++) { /* more than is read in one go */
                char name[20], text[1200];

                (void) text_format(name, sizeof(name), "n%d.json", i);
                (void) text_format(text, sizeof(text), "%s", INVENTORY("n"));
                dir_store_write(b->folder, name, text);
        }
        open_extender(b);
        if (ask(b, "/readyz", NULL) == 503)
                assert_int_equal(ask(b, "/healthz", NULL), 200);
        await_ready(b);
        end(b);
}

/* clang-format off */
static const struct { const char *what; struct server_options options; int result; const char *says; } refusals[] = {
        { "no such folder",      { .store = "dir:/no/such/folder" },                        -ENOENT, "/no/such/folder" },
        { "no such store",       { .store = "file:x" },                                     -EINVAL, "is no store" },
        { "no such placement",   { .placement = "best" },                                   -EINVAL, "--placement: 'best' is none" },
        { "no such overflow",    { .overflow = "both:101" },                                -EINVAL, "--overflow: must be" },
        { "no such file",        { .config = "/no/such/file" },                             -ENOENT, "--config" },
        { "no such table",       { .programs = "/no/such/file" },                           -ENOENT, "/no/such/file" },
        { "no such address",     { .listen = "nowhere" },                                   -EINVAL, "nowhere" },
        { "a key without more",  { .tls_cert = "/no/such/file" },                           -EINVAL, "TLS needs a certificate and its key" },
};
static const struct { const char *text, *says; } configs[] = {
        { "[]",                                  "must be an object" },
        { "emergencyNamespace: [a]",             "emergencyNamespace" },
        { "emergencyNamespaces: a",              "emergencyNamespaces: must be" },
        { "emergencyNamespaces: [1]",            "emergencyNamespaces[0]: must be a string" },
        { "emergencyPriorityClasses: [[]]",      "emergencyPriorityClasses[0]: must be a string" },
        { "managedResources: [{}]",              "managedResources[0]: must be a string" },
        { "a: [",                                "line" },
};
/* clang-format on */

static void what_cannot_be_is_refused_at_the_beginning(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct bed *b = begin();
                struct server_options *o = &b->options.server;
                const struct server_options *wrong = &refusals[i].options;
                struct err err = { 0 };
                int r;

                o->store = wrong->store != NULL ? wrong->store : o->store;
                o->placement = wrong->placement != NULL ? wrong->placement : o->placement;
                o->overflow = wrong->overflow != NULL ? wrong->overflow : o->overflow;
                o->listen = wrong->listen != NULL ? wrong->listen : o->listen;
                o->config = wrong->config;
                o->programs = wrong->programs;
                o->tls_cert = wrong->tls_cert;
                r = extender_new(b->folder->loop, &b->options, &b->extender, &err);
                if (r != refusals[i].result || strstr(err.msg, refusals[i].says) == NULL)
                        fail_msg("%s: %d %s", refusals[i].what, r, err.msg);
                end(b);
        }
}

static void a_configuration_says_which_field_is_wrong(void **state)
{
        struct bed *b = begin();
        char path[120], names[SETTINGS_LIST_MAX * 3];
        struct settings settings;
        struct err err = { 0 };

        (void) state;
        (void) text_format(path, sizeof(path), "%s/config.yaml", b->folder->path);
        b->options.server.config = path;
        for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
                dir_store_write(b->folder, "config.yaml", configs[i].text);
                if (settings_read(&b->options.server, &settings, &err) != -EINVAL ||
                    strstr(err.msg, configs[i].says) == NULL || strstr(err.msg, "--config") == NULL)
                        fail_msg("%s: want '%s', got '%s'", configs[i].text, configs[i].says, err.msg);
                settings_free(&settings);
        }
        dir_store_write(
                b->folder, "config.yaml",
                "emergencyNamespaces: [ops]\nemergencyPriorityClasses: [now]\nmanagedResources: [x.y/z]\n");
        b->options.server.emergency_namespaces = "a,,b,";
        assert_int_equal(settings_read(&b->options.server, &settings, &err), 0);
        assert_int_equal(settings.emergency_namespace_count, 3);
        assert_string_equal(settings.emergency_namespaces[1], "b");
        assert_string_equal(settings.emergency_namespaces[2], "ops");
        assert_string_equal(settings.managed_resources[0], "x.y/z");
        settings_free(&settings);
        for (size_t i = 0; i < sizeof(names); i++)
                names[i] = i % 2 == 0 ? 'x' : ',';
        names[sizeof(names) - 1] = '\0';
        b->options.server.emergency_namespaces = names;
        assert_int_equal(settings_read(&b->options.server, &settings, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "more than 64 names"));
        settings_free(&settings);
        end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_answered_or_refused),
                cmocka_unit_test(nothing_is_answered_before_all_is_read),
                cmocka_unit_test(what_cannot_be_is_refused_at_the_beginning),
                cmocka_unit_test(a_configuration_says_which_field_is_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
