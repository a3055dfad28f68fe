/* HTTP: handlers that read the agent's memory, and the server that listens. */
#include "agent/http.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/metrics.h"
#include "base/metrics.h"
#include "base/text.h"
#include "io/http/http_server.h"

void http_get_inventory(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const struct agent *agent = userdata;

        (void) request;
        if (agent->published_json == NULL) {
                http_reply_error(reply, 503, "no inventory yet: %s", agent->scan_trouble);
                return;
        }
        reply->body = malloc(agent->published_json_bytes + 1);
        if (reply->body == NULL) {
                http_reply_error(reply, 503, "no memory for the inventory");
                return;
        }
        memcpy(reply->body, agent->published_json, agent->published_json_bytes + 1);
        reply->body_bytes = agent->published_json_bytes;
}

void http_get_metrics(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct text page = { 0 };

        (void) request;
        metrics_page(userdata, &page);
        reply->body = text_take(&page, &reply->body_bytes);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory for the metrics");
        else
                reply->content_type = METRICS_CONTENT_TYPE;
}

static void get_healthz(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_text(reply, 200, "text/plain", "ok\n");
}

static void get_readyz(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const struct agent *agent = userdata;

        (void) request;
        if (agent->published_json == NULL)
                http_reply_error(reply, 503, "no inventory yet: %s", agent->scan_trouble);
        else
                http_reply_text(reply, 200, "text/plain", "ok\n");
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/v1/inventory", .handler = http_get_inventory, .shared = true },
        { .method = "GET", .path = "/metrics", .handler = http_get_metrics, .shared = true },
        { .method = "GET", .path = "/healthz", .handler = get_healthz },
        { .method = "GET", .path = "/readyz", .handler = get_readyz },
        { 0 },
};

int http_open(struct agent *agent, struct err *err)
{
        const struct http_server_options options = {
                .address = agent->options->listen,
                .body_max_bytes = 65536,
                .connections_max = 512,
                .connections_max_per_address = 64,
                .idle_timeout_sec = 30,
                .routes = routes,
                .userdata = agent,
        };
        int r;

        if (strcmp(agent->options->listen, "none") == 0)
                return 0;
        r = http_server_new(agent->loop, &options, &agent->http, err);
        if (r < 0)
                return err_wrap(err, r, "--listen %s", agent->options->listen);
        log_line(&agent->log, LOG_INFO, "listening", "listening address=%s",
                 http_server_address(agent->http));
        return 0;
}
