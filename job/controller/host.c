/* The job controller put together: settings, leader, cluster, controller, HTTP. */
#include "job/controller/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "io/process_metrics.h"
#include "job/controller/controller.h"
#include "scheduler-extender/server/server_health.h"
#include "scheduler-extender/server/server_listen.h"
#include "store/leader.h"

#define AT(member) offsetof(struct server_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "listen", .type = OPTION_STRING, .offset = AT(listen), .value = "ADDR:PORT",
          .default_ = "127.0.0.1:9522", .help = "health and metrics; port 0 = any free one" },
        SERVER_OPTIONS_ROWS(AT),
        { .name = "namespaces", .type = OPTION_STRING, .offset = AT(namespaces), .value = "A,B",
          .help = "read and write jobs, pods and Secrets there alone; else everywhere" },
        { 0 },
};
/* clang-format on */

const struct option_program host_program = {
        .name = "remuda-controller",
        .summary = "Carries TrainingJobs out: plans them, makes their pods, watches and repairs them.",
        .environment_prefix = "REMUDA_CONTROLLER_",
        .environment = &environ,
        .after = "See remuda-controller(8) for what it writes, and with which rights.",
        .specs = specs,
};

struct host {
        sd_event *loop;
        const struct server_options *options;
        struct settings settings;
        struct leader *leader; /* NULL: alone by order */
        struct cluster *cluster;
        struct controller *jobs;
        struct server_listen listen;
        sd_event_source *every_second;
};

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        const struct host *h = userdata;

        if (h->options->log != NULL)
                h->options->log(h->options->log_userdata, priority, event, text);
}

static void on_trouble(void *userdata, const char *sentence)
{
        char line[600];

        (void) text_format(line, sizeof(line), "trouble=\"%.560s\"", sentence);
        on_log(userdata, LOG_WARNING, "store", line);
}

static bool is_read(void *userdata)
{
        return cluster_is_ready(((struct host *) userdata)->cluster);
}

static uint64_t age_usec(const struct host *h)
{
        return store_age_usec(cluster_store(h->cluster), STORE_ALL_KINDS, loop_now_usec(h->loop));
}

static const char *refuses(struct host *h)
{
        return server_health_refuses_commit(h->cluster, h->options, h->leader, loop_now_usec(h->loop));
}

static bool leads(void *userdata)
{
        return refuses(userdata) == NULL;
}

static void on_changed(void *userdata)
{
        controller_think(((struct host *) userdata)->jobs);
}

static void on_refreshed(void *userdata)
{
        leader_refreshed(((struct host *) userdata)->leader);
}

static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        controller_observe(((struct host *) userdata)->jobs, kind, key, object);
}

static void on_synced(void *userdata, enum store_kind kind)
{
        controller_synced(((struct host *) userdata)->jobs, kind);
}

static void on_leading(void *userdata, bool leading)
{
        (void) leading;
        controller_lead(((struct host *) userdata)->jobs);
}

static void read_anew(void *userdata)
{
        cluster_refresh(((struct host *) userdata)->cluster);
}

static bool is_idle(void *userdata)
{
        (void) userdata;
        return true; /* what is written twice is found out: names follow from the status */
}

static void every_second(void *userdata)
{
        struct host *h = userdata;

        leader_look(h->leader);
        cluster_every_second(h->cluster);
}

static const char *namespace_trouble(const struct host *h, size_t i)
{
        return store_namespace_trouble(cluster_store(h->cluster), h->settings.namespaces[i]);
}

static void readyz_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const struct host *h = userdata;
        CLEANUP(text_free) struct text denied = { 0 };

        (void) request;
        for (size_t i = 0; i < h->settings.namespace_count; i++)
                if (namespace_trouble(h, i) != NULL)
                        text_printf(&denied,
                                    "not read: namespace %s, which is not there or gives us no rights: %s\n",
                                    h->settings.namespaces[i], namespace_trouble(h, i));
        server_health_ready(h->cluster, loop_now_usec(h->loop), denied.data, reply);
}

static void leaderz_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) request;
        server_health_leads(refuses(userdata), reply);
}

static void put_namespaces(const struct host *h, struct text *page)
{
        if (h->settings.namespace_count > 0)
                metrics_family(page, "remuda_controller_namespace_denied", METRIC_GAUGE,
                               "1 while a namespace of --namespaces is not there or gives no rights");
        for (size_t i = 0; i < h->settings.namespace_count; i++)
                metrics_sample_uint64(page, "remuda_controller_namespace_denied",
                                      METRIC_LABELS({ "namespace", h->settings.namespaces[i] }),
                                      namespace_trouble(h, i) != NULL);
}

static void metrics_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct host *h = userdata;
        struct text page = { 0 };

        (void) request;
        metrics_gauge(&page, "remuda_controller_ready", "1 once the first complete lists are in", is_read(h));
        metrics_gauge(&page, "remuda_controller_leader", "1 while this replica carries jobs out", leads(h));
        metrics_gauge(&page, "remuda_controller_cache_age_seconds", "How long ago the store was last in step",
                      (double) age_usec(h) / 1e6);
        put_namespaces(h, &page);
        controller_metrics(h->jobs, &page);
        http_server_metrics(h->listen.own, "remuda_controller_tls_certificate_expiry_seconds",
                            "remuda_controller_tls_reloads_total", &page);
        process_metrics_append(&page);
        reply->content_type = METRICS_CONTENT_TYPE;
        reply->body = text_take(&page, &reply->body_bytes);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory");
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/leaderz", .handler = leaderz_handler },
#define OPEN_ROUTES 1 /* from here on */
        { .method = "GET", .path = "/healthz", .handler = server_health_alive },
        { .method = "GET", .path = "/readyz", .handler = readyz_handler },
        { .method = "GET", .path = "/metrics", .handler = metrics_handler, .shared = true },
        { 0 },
};

static int open_leader(struct host *h, struct err *err)
{
        struct leader_options options = settings_leader(h->options, LEADER_CONTROLLER);

        options.ready = is_read;
        options.refresh = read_anew;
        options.idle = is_idle;
        options.log = on_log;
        options.userdata = h;
        return h->options->no_leader_elect ? 0 : leader_open(h->loop, &options, &h->leader, err);
}

static int open_cluster(struct host *h, struct err *err)
{
        struct cluster_options options = settings_cluster(&h->settings, h->options);

        options.reads_classes = true;
        options.reads_queues = strcmp(h->options->kueue, "on") == 0;
        options.reads_budgets = controller_options_of(h->options, &h->settings).budgets;
        options.changed = on_changed;
        options.trouble = on_trouble;
        options.refreshed = on_refreshed;
        options.may_commit = leads;
        options.observed = on_observed;
        options.kind_synced = on_synced;
        options.userdata = h;
        return cluster_open(h->loop, &options, &h->cluster, err);
}

static int open_jobs(struct host *h, struct err *err)
{
        struct controller_options options = controller_options_of(h->options, &h->settings);

        options.cluster = h->cluster;
        options.leads = leads;
        options.log = on_log;
        options.userdata = h;
        return controller_new(h->loop, &options, &h->jobs, err);
}

static int listen_http(struct host *h, struct err *err)
{
        const struct server_listen_pages pages = { .routes = routes,
                                                   .open_routes = routes + OPEN_ROUTES,
                                                   .userdata = h };

        return server_listen_open(h->loop, h->options, &pages, &h->listen, err);
}

int host_new(sd_event *loop, const struct server_options *options, struct host **ret, struct err *err)
{
        struct host *h = calloc(1, sizeof(*h));
        char line[300];
        int r;

        if (h == NULL)
                return err_set(err, -ENOMEM, "no memory");
        h->loop = sd_event_ref(loop);
        h->options = options;
        r = settings_read(options, &h->settings, err);
        if (r == 0)
                r = open_leader(h, err);
        if (r == 0)
                r = open_cluster(h, err);
        if (r == 0)
                r = open_jobs(h, err);
        if (r == 0)
                r = listen_http(h, err);
        if (r == 0)
                r = leader_campaign(h->leader, http_server_address(h->listen.own), err);
        if (r == 0)
                r = leader_watch(h->leader, on_leading, h);
        if (r == 0)
                r = loop_every(loop, 200000, 1000000, every_second, h, &h->every_second);
        if (r < 0) {
                host_free(h);
                return r;
        }
        (void) text_format(line, sizeof(line), "%s store=%s", server_listen_words(&h->listen).text,
                           options->store);
        on_log(h, LOG_INFO, "listening", line);
        *ret = h;
        return 0;
}

void host_free(struct host *h)
{
        if (h == NULL)
                return;
        sd_event_source_disable_unref(h->every_second);
        leader_resign(h->leader);
        cluster_close(h->cluster); /* answers what is being written */
        controller_free(h->jobs);
        leader_close(h->leader);
        server_listen_close(&h->listen);
        settings_free(&h->settings);
        sd_event_unref(h->loop);
        free(h);
}
