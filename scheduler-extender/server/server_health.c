/* Read, in step, unreadable: a cluster's own words as answers to probes. */
#include "scheduler-extender/server/server_health.h"

#include "base/cleanup.h"
#include "base/text.h"

bool server_health_is_old(struct cluster *cluster, const struct server_options *options, uint64_t now_usec)
{
        uint64_t limit = (uint64_t) options->cache_limit_sec * 1000000;

        return limit > 0 && store_age_usec(cluster_store(cluster), STORE_ALL_KINDS, now_usec) > limit;
}

void server_health_alive(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_text(reply, 200, "text/plain", "ok\n");
}

void server_health_ready(struct cluster *cluster, struct http_reply *reply)
{
        CLEANUP(text_free) struct text page = { 0 };

        if (!cluster_is_ready(cluster)) {
                http_reply_text(reply, 503, "text/plain", "the first complete lists are not in yet\n");
                return;
        }
        text_append(&page, "ok\n");
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
                const char *example;
                size_t count = cluster_unreadable(cluster, (enum store_kind) kind, &example);

                if (count > 0)
                        text_printf(&page, "unreadable: %zu of kind %s, such as %s\n", count,
                                    store_kind_name((enum store_kind) kind), example);
        }
        http_reply_text(reply, 200, "text/plain", page.failed ? "ok\n" : page.data);
}
