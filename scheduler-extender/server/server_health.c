/* Read, in step, unreadable: a cluster's own words as answers to probes. */
#include "scheduler-extender/server/server_health.h"

#include "base/cleanup.h"
#include "base/text.h"

/* The kind, of `which`, that the store is out of step with for longer than `limit`; STORE_KIND_COUNT = none.
 */
static enum store_kind old_kind(struct cluster *cluster, unsigned which, uint64_t limit, uint64_t now_usec)
{
        enum store_kind kind = 0;

        while (kind < STORE_KIND_COUNT &&
               store_age_usec(cluster_store(cluster), which & 1u << kind, now_usec) <= limit)
                kind++;
        return kind;
}

const char *server_health_refuses(struct cluster *cluster, const struct server_options *options,
                                  uint64_t now_usec)
{
        static char sentence[96];
        uint64_t limit = (uint64_t) options->cache_limit_sec * 1000000;
        enum store_kind old;

        if (!cluster_is_ready(cluster))
                return "the cluster's nodes and pods are not read yet; try again";
        if (limit == 0 || options->fail_open)
                return NULL;
        old = old_kind(cluster, CLUSTER_NEEDED_KINDS, limit, now_usec);
        if (old == STORE_KIND_COUNT)
                return NULL;
        (void) text_format(sentence, sizeof(sentence),
                           "lost touch with the store for longer than --cache-limit (%s)",
                           store_kind_name(old));
        return sentence;
}

const char *server_health_refuses_commit(struct cluster *cluster, const struct server_options *options,
                                         struct leader *leader, uint64_t now_usec)
{
        const char *refusal = server_health_refuses(cluster, options, now_usec);

        return refusal != NULL ? refusal : leader_refuses(leader);
}

void server_health_leads(const char *refusal, struct http_reply *reply)
{
        http_reply_text(reply, refusal == NULL ? 200 : 503, "text/plain", refusal == NULL ? "ok\n" : refusal);
}

void server_health_alive(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_text(reply, 200, "text/plain", "ok\n");
}

void server_health_ready(struct cluster *cluster, uint64_t now_usec, const char *more,
                         struct http_reply *reply)
{
        CLEANUP(text_free) struct text page = { 0 };

        if (!cluster_is_ready(cluster)) {
                http_reply_text(reply, 503, "text/plain", "the first complete lists are not in yet\n");
                return;
        }
        text_append(&page, "ok\n");
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
                uint64_t age = store_age_usec(cluster_store(cluster), 1u << kind, now_usec);
                const char *example;
                size_t count = cluster_unreadable(cluster, (enum store_kind) kind, &example);

                if (age >= 1000000)
                        text_printf(&page, "old: %s, for %llu s\n", store_kind_name((enum store_kind) kind),
                                    (unsigned long long) (age / 1000000));
                if (count > 0)
                        text_printf(&page, "unreadable: %zu of kind %s, such as %s\n", count,
                                    store_kind_name((enum store_kind) kind), example);
        }
        if (more != NULL)
                text_append(&page, more);
        http_reply_text(reply, 200, "text/plain", page.failed ? "ok\n" : page.data);
}
