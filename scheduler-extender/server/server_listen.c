/* One server for those who act, and one for those who look on. */
#include "scheduler-extender/server/server_listen.h"

#include <string.h>

#include "base/text.h"

/* Onlookers are few: a scraper and a kubelet. */
#define METRICS_CONNECTIONS             256
#define METRICS_CONNECTIONS_PER_ADDRESS 64

static int listen_for_metrics(sd_event *loop, const char *address, const struct server_listen_pages *pages,
                              struct http_server **ret, struct err *err)
{
        const struct http_server_options options = {
                .address = address,
                .body_max_bytes = 1024,
                .connections_max = METRICS_CONNECTIONS,
                .connections_max_per_address = METRICS_CONNECTIONS_PER_ADDRESS,
                .routes = pages->open_routes,
                .userdata = pages->userdata,
        };
        int r = http_server_new(loop, &options, ret, err);

        return r < 0 ? err_wrap(err, r, "--metrics-listen") : 0;
}

int server_listen_open(sd_event *loop, const struct server_options *options,
                       const struct server_listen_pages *pages, struct server_listen *ret, struct err *err)
{
        const struct http_server_options own = {
                .address = options->listen,
                .loopback_only = pages->loopback_only,
                .tls = { { options->tls_cert, options->tls_key, options->client_ca }, options->client_names },
                .body_max_bytes = pages->body_max_bytes,
                .routes = pages->routes,
                .headers = pages->headers,
                .userdata = pages->userdata,
        };
        int r = http_server_new(loop, &own, &ret->own, err);

        if (r == 0 && strcmp(options->metrics_listen, "none") != 0)
                r = listen_for_metrics(loop, options->metrics_listen, pages, &ret->metrics, err);
        return r;
}

void server_listen_close(struct server_listen *listen)
{
        http_server_free(listen->own);
        http_server_free(listen->metrics);
        *listen = (struct server_listen){ .own = NULL };
}

struct server_listen_words server_listen_words(const struct server_listen *listen)
{
        struct server_listen_words words;

        (void) text_format(words.text, sizeof(words.text), "address=%s metrics=%s",
                           http_server_address(listen->own),
                           listen->metrics == NULL ? "none" : http_server_address(listen->metrics));
        return words;
}
