/* See extender_bed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/ledger/cluster_internal.h"
#include "tests/support/extender_bed.h"

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        (void) priority;
        text_printf(&((struct extender_bed *) userdata)->said, "%s %s\n", event, text);
}

struct extender_bed *extender_bed_new(void)
{
        struct extender_bed *b = calloc(1, sizeof(*b));

        assert_non_null(b);
        b->folder = dir_store_new();
        dir_store_write(b->folder, "a.json", EXTENDER_BED_INVENTORY("a"));
        dir_store_write(b->folder, "b.json", EXTENDER_BED_INVENTORY("b"));
        dir_store_write(b->folder, "p.json", EXTENDER_BED_POD("p", ""));
        dir_store_write(b->folder, "q.json",
                        EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"));
        (void) text_format(b->spec, sizeof(b->spec), "dir:%s", b->folder->path);
        extender_options_default(&b->options);
        b->options.server.store = b->spec;
        b->options.server.listen = "127.0.0.1:0";
        b->options.server.log = on_log;
        b->options.server.log_userdata = b;
        return b;
}

void extender_bed_open(struct extender_bed *b)
{
        struct http_client_options client = { .base_url = b->url };
        struct err err = { 0 };

        if (extender_new(b->folder->loop, &b->options, &b->extender, &err) < 0)
                fail_msg("%s", err.msg);
        (void) text_format(b->url, sizeof(b->url), "http://%s", extender_address(b->extender));
        assert_int_equal(http_client_new(b->folder->loop, &client, &b->client, NULL), 0);
}

void extender_bed_free(struct extender_bed *b)
{
        extender_free(b->extender);
        http_client_free(b->client);
        dir_store_free(b->folder);
        text_free(&b->said);
        free(b);
}

void extender_bed_to_memory(struct extender_bed *b)
{
        struct cluster *cluster = b->extender->cluster;

        b->memory = memory_store_replace(&cluster->store);
        cluster->options.judge_age = false; /* there are no files whose time could be looked at */
        b->options.server.store = "kubernetes";
}

static void on_answer(void *userdata, const struct http_call_result *result)
{
        struct extender_bed *b = userdata;

        b->answers++;
        b->status = result->error != 0 ? 0 : result->status;
        (void) text_format(b->body, sizeof(b->body), "%.*s", (int) result->body_bytes,
                           result->body == NULL ? "" : result->body);
}

void extender_bed_send(struct extender_bed *b, const char *path, const char *body)
{
        struct http_call_options call = { .method = body == NULL ? "GET" : "POST",
                                          .path = path,
                                          .body = body,
                                          .body_bytes = body == NULL ? 0 : strlen(body),
                                          .content_type = "application/json",
                                          .timeout_usec = patience_usec(),
                                          .done = on_answer,
                                          .userdata = b };

        assert_int_equal(http_call_start(b->client, &call, NULL), 0);
}

unsigned extender_bed_ask(struct extender_bed *b, const char *path, const char *body)
{
        unsigned before = b->answers;

        extender_bed_send(b, path, body);
        EXTENDER_BED_WAIT(b, b->answers > before);
        return b->status;
}

void extender_bed_ready(struct extender_bed *b)
{
        for (uint64_t end = clock_monotonic_usec() + patience_usec();
             extender_bed_ask(b, "/leaderz", NULL) != 200;)
                if (clock_monotonic_usec() > end)
                        fail_msg("never ready: %s", b->body);
}

bool extender_bed_said(const struct extender_bed *b, const char *words)
{
        return b->said.data != NULL && strstr(b->said.data, words) != NULL;
}

struct extender_bed *extender_bed_begin(bool any_emergency)
{
        struct extender_bed *b = extender_bed_new();

        if (any_emergency)
                b->options.server.emergency_namespaces = "*";
        else
                dir_store_remove(b->folder, "q.json");
        extender_bed_open(b);
        extender_bed_ready(b);
        EXTENDER_BED_WAIT(b, b->extender->was_ready);
        extender_bed_to_memory(b);
        return b;
}
