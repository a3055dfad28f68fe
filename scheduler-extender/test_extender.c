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
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/server/settings.h"
#include "tests/support/extender_bed.h"

#define POD(NAME, MORE)       EXTENDER_BED_POD(NAME, MORE)
#define BIND(NAME, UID, NODE) EXTENDER_BED_BIND(NAME, UID, NODE)
#define ARGS(NAME)            "{\"Pod\":" POD(NAME, "") ",\"NodeNames\":[\"a\",\"b\",\"z\"]}"

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
        struct extender_bed *b = extender_bed_new();

        (void) state;
        extender_bed_open(b);
        extender_bed_ready(b);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
                if (extender_bed_ask(b, requests[i].path, requests[i].body) != requests[i].status ||
                    strstr(b->body, requests[i].says) == NULL)
                        fail_msg("%zu %s %s: %u %s", i, requests[i].path,
                                 requests[i].body == NULL ? "" : requests[i].body, b->status, b->body);
        extender_bed_free(b);
}

/* Before the first lists are in nobody is told anything that may be wrong. */
static void nothing_is_answered_before_all_is_read(void **state)
{
        struct extender_bed *b = extender_bed_new();

        (void) state;
        for (int i = 0; i < 300; i++) { /* more than is read in one go */
                char name[20], text[1200];

                (void) text_format(name, sizeof(name), "n%d.json", i);
                (void) text_format(text, sizeof(text), "%s", EXTENDER_BED_INVENTORY("n"));
                dir_store_write(b->folder, name, text);
        }
        extender_bed_open(b);
        if (extender_bed_ask(b, "/readyz", NULL) == 503)
                assert_int_equal(extender_bed_ask(b, "/healthz", NULL), 200);
        extender_bed_ready(b);
        extender_bed_free(b);
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
                struct extender_bed *b = extender_bed_new();
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
                extender_bed_free(b);
        }
}

#define JOB_ON_THE_RESERVE                                                                                   \
        "{\"addNodes\":[" EXTENDER_BED_INVENTORY_OF(                                                         \
                "r", "reserved", "B200") "],\"items\":[{\"apiVersion\":\"remuda.dev/"                        \
                                         "v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{"                \
                                         "\"name\":\"j\"},\"spec\":{\"priorityClassName\":\"%s\","           \
                                         "\"workers\":[{\"model\":\"B200\","                                 \
                                         "\"chips\":%d}]}}]}"

/* The reserve is for emergencies: by class, whatever the job says of its urgency. */
static void an_emergency_by_class_is_one_in_a_what_if_too(void **state)
{
        static const struct {
                const char *class;
                int chips;
                const char *says;
                bool reserved;
        } jobs[] = {
                { "now", 2, "\"waiting\": 0", false },
                { "now", 9, "\"waiting\": 1", false }, /* there are eight */
                { "later", 2, "\"waiting\": 1", true },
        };
        struct extender_bed *b = extender_bed_new();
        char path[120], body[2000];

        (void) state;
        (void) text_format(path, sizeof(path), "%s/config.yaml", b->folder->path);
        dir_store_write(b->folder, "config.yaml", "emergencyPriorityClasses: [now]\n");
        b->options.server.config = path;
        extender_bed_open(b);
        extender_bed_ready(b);
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
                (void) text_format(body, sizeof(body), JOB_ON_THE_RESERVE, jobs[i].class, jobs[i].chips);
                if (extender_bed_ask(b, "/v1/whatif", body) != 200 || strstr(b->body, jobs[i].says) == NULL ||
                    (strstr(b->body, "ReservedPool") != NULL) != jobs[i].reserved)
                        fail_msg("%s %d: %s", jobs[i].class, jobs[i].chips, b->body);
        }
        extender_bed_free(b);
}

/* Whether it carries the jobs out itself or not: why one does not go on is in its status. */
static void who_holds_a_job_is_known(void **state)
{
        (void) state;
        for (int on = 0; on < 2; on++) {
                struct extender_bed *b = extender_bed_new();
                const struct ledger_job *job;

                b->options.jobs = on ? "on" : "off";
                extender_bed_open(b);
                extender_bed_ready(b);
                assert_true((b->extender->jobs != NULL) == on);
                extender_bed_to_memory(b);
                memory_store_merge(
                        b->memory, "TrainingJob default/held",
                        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{"
                        "\"name\":\"held\",\"namespace\":\"default\",\"uid\":\"u-held\",\"generation\":1},"
                        "\"spec\":{\"globalBatch\":64,\"workers\":[{\"model\":\"H100\",\"chips\":1}],"
                        "\"programs\":{"
                        "\"cuda\":{\"image\":\"x:1\",\"command\":[\"/"
                        "t\"]}}},\"status\":{\"phase\":\"Suspended\","
                        "\"reason\":\"WaitingForQueue\",\"message\":\"waits in queue 'team'\"}}");
                memory_store_tell(b->memory);
                job = ledger_jobs_find(cluster_ledger(b->extender->cluster), "default", "held");
                assert_non_null(job);
                assert_non_null(job->words);
                assert_string_equal(job->words->reason, "WaitingForQueue");
                extender_bed_free(b);
        }
}

static void a_configuration_says_which_field_is_wrong(void **state)
{
        struct extender_bed *b = extender_bed_new();
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
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_answered_or_refused),
                cmocka_unit_test(nothing_is_answered_before_all_is_read),
                cmocka_unit_test(what_cannot_be_is_refused_at_the_beginning),
                cmocka_unit_test(an_emergency_by_class_is_one_in_a_what_if_too),
                cmocka_unit_test(who_holds_a_job_is_known),
                cmocka_unit_test(a_configuration_says_which_field_is_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
