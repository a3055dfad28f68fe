/* One request to a running extender, for probes: it listens on loopback, where a kubelet does not reach. */
#include "scheduler-extender/server/check.h"

#include <errno.h>

#include "base/text.h"
#include "io/http/http_client.h"
#include "io/loop.h"

#define CHECK_USEC UINT64_C(3000000)

struct check {
        sd_event *loop;
        struct err *err;
        int result;
};

static void on_answer(void *userdata, const struct http_call_result *result)
{
        struct check *check = userdata;

        if (result->error != 0)
                check->result = err_set(check->err, result->error, "no answer: %s", result->sentence);
        else if (result->status != 200)
                check->result =
                        err_set(check->err, -EAGAIN, "answered %u: %.300s", result->status, result->body);
        (void) sd_event_exit(check->loop, 0);
}

int check_running(const struct server_options *options, struct err *err)
{
        bool tls = options->tls_cert != NULL;
        struct http_client *client = NULL;
        struct check check = { .err = err };
        char url[300], path[64];
        struct http_client_options http = { .base_url = url,
                                            .certificate_file = options->tls_cert,
                                            .key_file = options->tls_key,
                                            .insecure = true }; /* we ask ourselves */
        struct http_call_options call = { .method = "GET",
                                          .path = path,
                                          .timeout_usec = CHECK_USEC,
                                          .done = on_answer,
                                          .userdata = &check };
        int r;

        (void) text_format(url, sizeof(url), "%s://%s", tls ? "https" : "http", options->listen);
        (void) text_format(path, sizeof(path), "/%s", options->check);
        r = loop_new(&check.loop, err);
        if (r == 0)
                r = http_client_new(check.loop, &http, &client, err);
        if (r == 0)
                r = http_call_start(client, &call, NULL);
        if (r == 0)
                r = loop_run(check.loop);
        http_client_free(client);
        sd_event_unref(check.loop);
        return r < 0 ? r : check.result;
}
