/* The job controller's program put together, on a directory: what it serves, and what it does not begin with.
 */
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
#include "job/controller/host.h"
#include "tests/support/dir_store.h"
#include "tests/support/patience.h"

struct bed {
        struct dir_store *folder;
        struct server_options options;
        struct host *host;
        char spec[80];
        struct text said;
        unsigned status;
        struct text body;
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
        (void) text_format(b->spec, sizeof(b->spec), "dir:%s", b->folder->path);
        options_default(&host_program, &b->options);
        b->options.store = b->spec;
        b->options.listen = "127.0.0.1:0";
        b->options.log = on_log;
        b->options.log_userdata = b;
        return b;
}

static void end(struct bed *b)
{
        host_free(b->host);
        dir_store_free(b->folder);
        text_free(&b->said);
        text_free(&b->body);
        free(b);
}

static void on_answer(void *userdata, const struct http_call_result *result)
{
        struct bed *b = userdata;

        b->status = result->error != 0 ? 1 : result->status;
        text_reset(&b->body);
        text_append_bytes(&b->body, result->body_bytes > 0 ? result->body : "", result->body_bytes);
}

static unsigned get(struct bed *b, const char *path)
{
        char url[160];
        const char *address = strstr(b->said.data, "address=") + strlen("address=");
        struct http_client_options options = { .base_url = url };
        struct http_call_options call = { .method = "GET", .path = path, .done = on_answer, .userdata = b };
        struct http_client *client = NULL;
        uint64_t end_usec = clock_monotonic_usec() + patience_usec();

        (void) text_format(url, sizeof(url), "http://%.*s", (int) strcspn(address, " \n"), address);
        assert_int_equal(http_client_new(b->folder->loop, &options, &client, NULL), 0);
        b->status = 0;
        assert_int_equal(http_call_start(client, &call, NULL), 0);
        while (b->status == 0) {
                if (clock_monotonic_usec() > end_usec)
                        fail_msg("no answer to %s", path);
                (void) sd_event_run(b->folder->loop, 20000);
        }
        http_client_free(client);
        return b->status;
}

static void it_serves_what_it_is_asked(void **state)
{
        struct bed *b = begin();
        struct err err = { 0 };

        (void) state;
        dir_store_write(
                b->folder, "j.json",
                "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":"
                "\"j\",\"uid\":\"u\"},\"spec\":{\"workers\":[{\"model\":\"H100\",\"chips\":2}]}}");
        dir_store_write(b->folder, "bad.json",
                        "{\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"b\"},\"spec\":7}");
        if (host_new(b->folder->loop, &b->options, &b->host, &err) < 0)
                fail_msg("%s", err.msg);
        for (uint64_t end_usec = clock_monotonic_usec() + patience_usec(); get(b, "/leaderz") != 200;)
                if (clock_monotonic_usec() > end_usec)
                        fail_msg("never leads: %s", b->body.data);
        assert_int_equal(get(b, "/readyz"), 200);
        assert_int_equal(get(b, "/healthz"), 200);
        assert_int_equal(get(b, "/none"), 404);
        for (uint64_t end_usec = clock_monotonic_usec() + patience_usec();
             get(b, "/metrics") != 200 || strstr(b->body.data, "remuda_jobs{phase=\"Pending\"} 1") == NULL ||
             strstr(b->said.data, "job job=default/j reason=Unschedulable") == NULL;)
                if (clock_monotonic_usec() > end_usec)
                        fail_msg("never there: %s", b->body.data);
        assert_non_null(strstr(b->body.data, "remuda_controller_ready 1"));
        assert_non_null(strstr(b->body.data, "remuda_jobs_leading 1"));
        assert_non_null(strstr(b->said.data, "store trouble="));
        end(b);
}

/* clang-format off */
static const struct { const char *what; struct server_options options; int result; const char *says; } refusals[] = {
        { "no such folder",  { .store = "dir:/no/such/folder" },        -ENOENT, "/no/such/folder" },
        { "no such store",   { .store = "file:x" },                     -EINVAL, "is no store" },
        { "no such table",   { .programs = "/no/such/file" },           -ENOENT, "/no/such/file" },
        { "namespaces of a directory", { .namespaces = "a" },           -EINVAL, "only with --store kubernetes" },
        { "no namespace",    { .store = "kubernetes", .namespaces = "," },         -EINVAL, "names none" },
        { "no name of one",  { .store = "kubernetes", .namespaces = "a,b.c" },     -EINVAL, "'b.c' is not the name of a namespace" },
        { "nor this",        { .store = "kubernetes", .namespaces = "a,../b" },    -EINVAL, "'../b'" },
        { "no such address", { .listen = "nowhere" },                   -EINVAL, "nowhere" },
};
/* clang-format on */

static void what_cannot_be_is_refused_at_the_beginning(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct bed *b = begin();
                const struct server_options *wrong = &refusals[i].options;
                struct err err = { 0 };
                int r;

                b->options.store = wrong->store != NULL ? wrong->store : b->options.store;
                b->options.listen = wrong->listen != NULL ? wrong->listen : b->options.listen;
                b->options.programs = wrong->programs;
                b->options.namespaces = wrong->namespaces;
                r = host_new(b->folder->loop, &b->options, &b->host, &err);
                if (r != refusals[i].result || strstr(err.msg, refusals[i].says) == NULL)
                        fail_msg("%s: %d %s", refusals[i].what, r, err.msg);
                end(b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_serves_what_it_is_asked),
                cmocka_unit_test(what_cannot_be_is_refused_at_the_beginning),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
