/* Life of an extender: it is put together here, listens, routes requests to the verbs, and is taken apart. */
#include "scheduler-extender/extender.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "io/snapshot.h"
#include "job/plan/job_lease.h"
#include "scheduler-extender/bind.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/labels.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/lost_claims.h"
#include "scheduler-extender/metrics.h"
#include "scheduler-extender/reserve.h"
#include "scheduler-extender/runbooks.h"
#include "scheduler-extender/server/server_health.h"
#include "scheduler-extender/server/server_listen.h"
#include "scheduler-extender/settle.h"
#include "scheduler-extender/verbs.h"
#include "scheduler-extender/verbs_explain.h"
#include "scheduler-extender/wake.h"
#include "store/leader.h"

void extender_log(struct extender *x, int priority, const char *event, const char *fmt, ...)
{
        CLEANUP(free_p) char *line = NULL;
        va_list ap;

        if (x->options->server.log == NULL)
                return;
        va_start(ap, fmt);
        if (vasprintf(&line, fmt, ap) < 0)
                line = NULL;
        va_end(ap);
        if (line != NULL)
                x->options->server.log(x->options->server.log_userdata, priority, event, line);
}

uint64_t extender_now(const struct extender *x)
{
        (void) x;
        return clock_steady_usec();
}

void extender_end(struct extender *x, enum verb verb, uint64_t begin_nsec, bool refused)
{
        x->metrics.requests[verb][refused]++;
        histogram_observe(&x->metrics.seconds[verb], (double) (clock_monotonic_nsec() - begin_nsec) / 1e9);
}

const char *extender_address(const struct extender *x)
{
        return http_server_address(x->listen.own);
}

const char *extender_refuses(struct extender *x)
{
        return server_health_refuses(x->cluster, &x->options->server, loop_now_usec(x->loop));
}

static const char *refuses_commit(struct extender *x)
{
        return server_health_refuses_commit(x->cluster, &x->options->server, x->leader,
                                            loop_now_usec(x->loop));
}

static void readyz_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) request;
        server_health_ready(((struct extender *) userdata)->cluster,
                            loop_now_usec(((struct extender *) userdata)->loop), NULL, reply);
}

static void leaderz_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) request;
        server_health_leads(refuses_commit(userdata), reply);
}

static void page_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        page_answer(((struct extender *) userdata)->page, request, reply);
}

/* kube-scheduler's doors: it is no browser, and no page in one has anything to ask there. */
static bool refuses_browser(const struct http_request *request, struct http_reply *reply)
{
        if (http_request_header(request, "Origin") == NULL &&
            http_request_header(request, "Sec-Fetch-Site") == NULL)
                return false;
        http_reply_error(reply, 403,
                         "a browser asks (Origin, Sec-Fetch-Site): this door is kube-scheduler's");
        return true;
}

#define UNREADABLE_EVENTS_MAX  10 /* in so long: */
#define UNREADABLE_EVENTS_USEC (60 * UINT64_C(1000000))

static const struct http_route routes[] = {
        { .method = "POST",
          .path = "/scheduler/filter",
          .handler = verbs_filter,
          .refuses = refuses_browser },
        { .method = "POST",
          .path = "/scheduler/prioritize",
          .handler = verbs_prioritize,
          .refuses = refuses_browser },
        { .method = "POST",
          .path = "/scheduler/bind",
          .handler = bind_handler,
          .refuses = refuses_browser,
          .body_max_bytes = 65536 },
        { .method = "GET", .path = "/v1/explain", .handler = verbs_explain_pod, .refuses = page_refuses },
        { .method = "POST",
          .path = "/v1/whatif",
          .handler = verbs_explain_whatif,
          .refuses = page_refuses,
          .body_max_bytes = 16 << 20,
          .headers = page_headers },
        { .method = "GET", .path = "/leaderz", .handler = leaderz_handler },
        { .method = "GET", .path = RUNBOOKS_PATH "*", .handler = runbooks_handler },
        PAGE_ROUTES(page_handler)
#define PAGE_ASSET(path_) PAGE_ROUTE(page_handler, path_)
#include "scheduler-extender/page_paths.inc"
#define OPEN_ROUTES 3 /* from here on */
                { .method = "GET", .path = "/healthz", .handler = server_health_alive },
        { .method = "GET", .path = "/readyz", .handler = readyz_handler },
        { .method = "GET", .path = "/metrics", .handler = metrics_handler, .shared = true },
        { 0 },
};

static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct extender *x = userdata;

        if (kind == STORE_POD && object != NULL)
                bind_seen(x);
        if (kind == STORE_NODE)
                conditions_seen(x, key, object);
        page_observed(x->page, kind, key, object);
        if (x->jobs != NULL)
                controller_observe(x->jobs, kind, key, object);
        if (kind == STORE_TRAINING_JOB) /* its own controller has leased by what it decided */
                (x->jobs != NULL ? job_lease_note : job_lease_observe)(x->cluster, key, object);
}

static void on_told(void *userdata, const char *node, const struct inventory *inventory)
{
        page_told(((struct extender *) userdata)->page, node, inventory);
}

static void on_kind_synced(void *userdata, enum store_kind kind)
{
        struct extender *x = userdata;

        if (x->jobs != NULL)
                controller_synced(x->jobs, kind);
}

static void on_trouble(void *userdata, const char *sentence)
{
        extender_log(userdata, LOG_WARNING, "store", "trouble=\"%s\"", sentence);
}

#define THOUGHT_QUICK_USEC 500 /* so little may be spent on every change */
#define REST_TIMES         20  /* as long as a look took nothing is worked out */
#define REST_TIMES_WANTING 3   /* ... while emergencies wait that no look has come to */

#define HOLDS_LOOK_USEC UINT64_C(5000000)

/* What the older and the urgent are due: worked out when the ledger has changed, before the requests that
 * come after the change; but where that takes long, never for more than a twentieth of the time, or a third
 * until all emergencies have had their turn. */
static int after_change(sd_event_source *source, uint64_t due_usec, void *userdata)
{
        struct extender *x = userdata;
        struct ledger *ledger = cluster_ledger(x->cluster);
        uint64_t begin = clock_monotonic_usec(), took;
        bool all = true;
        uint32_t before;
        int binding;

        (void) due_usec;
        if (!cluster_is_ready(x->cluster) || x->thought_generation == ledger->generation)
                return 0;
        before = x->backfills;
        binding = backfill_update(ledger, cluster_rules(x->cluster), extender_now(x));
        x->emergencies = 0;
        if (leader_leads(x->leader))
                all = reserve_update(x, extender_now(x));
        x->backfills = ledger->backfill_total;
        if (x->backfills < before || binding < x->binding)
                x->wake_why = "chips are held no longer";
        x->binding = binding;
        x->thought_generation = all ? ledger->generation : ledger->generation - 1;
        took = clock_monotonic_usec() - begin;
        x->thought_usec =
                took > THOUGHT_QUICK_USEC ? begin + (all ? REST_TIMES : REST_TIMES_WANTING) * took : begin;
        (void) sd_event_source_set_time(source, x->thought_usec);
        return sd_event_source_set_enabled(source, all ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

bool extender_is_closing(const struct extender *x)
{
        return x->after_change == NULL;
}

static void think_soon(struct extender *x)
{
        uint64_t now = clock_monotonic_usec();

        if (extender_is_closing(x))
                return;
        (void) sd_event_source_set_time(x->after_change, x->thought_usec > now ? x->thought_usec : now);
        (void) sd_event_source_set_enabled(x->after_change, SD_EVENT_ONESHOT);
}

void extender_think_again(struct extender *x)
{
        x->thought_generation = UINT64_MAX;
        think_soon(x);
}

static void on_changed(void *userdata)
{
        struct extender *x = userdata;

        if (!x->was_ready)
                leader_look(x->leader);
        controller_think(x->jobs);
        page_changed(x->page);
        think_soon(x);
}

static void on_node_changed(void *userdata, const char *node, bool gained)
{
        struct extender *x = userdata;

        if (x->was_ready)
                labels_write(x, node);
        if (gained && x->was_ready)
                wake_waiting(x, node, "chips became usable");
}

static void on_node_labels(void *userdata, const char *node, const json_t *labels)
{
        labels_seen(userdata, node, labels);
}

/* After the lead was lost: what was being written then has come through by now, or never will. */
#define AUDIT_AGAIN_USEC UINT64_C(30000000)

static void on_leader(void *userdata, bool leading)
{
        struct extender *x = userdata;

        if (!leading) {
                settle_abandon(x);
                x->audit_again_usec = loop_now_usec(x->loop) + AUDIT_AGAIN_USEC;
                return;
        }
        labels_write_all(x);
        wake_waiting(x, NULL, "this replica leads now");
        extender_think_again(x); /* a follower has looked, and served nobody */
}

void extender_event(struct extender *x, enum store_kind kind, const char *key, const char *reason,
                    const char *sentence)
{
        char namespace_[256];
        struct store_event event = { .object_kind = store_kind_name(kind),
                                     .namespace_ = namespace_,
                                     .name = store_key_split(key, namespace_),
                                     .type = "Warning",
                                     .reason = reason,
                                     .message = sentence };
        const struct ledger_pod *pod;

        pod = kind == STORE_POD ? ledger_pods_find(cluster_ledger(x->cluster), namespace_, event.name) : NULL;
        event.uid = pod != NULL ? pod->uid : NULL;
        store_event(cluster_store(x->cluster), &event);
}

static void on_drifted(void *userdata, enum store_kind kind, const char *key, const char *sentence)
{
        struct extender *x = userdata;

        x->metrics.drifts++;
        extender_log(x, LOG_ERR, "drift", "kind=%s key=%s what=\"%s\"", store_kind_name(kind), key, sentence);
        extender_event(x, kind, key, "LedgerDrift", sentence);
}

/* Whoever makes a thousand such objects gets a few events: the metric counts them all. */
static void on_unreadable(void *userdata, enum store_kind kind, const char *key, const char *sentence)
{
        struct extender *x = userdata;
        uint64_t now = loop_now_usec(x->loop);

        if (!leader_leads(x->leader) || (x->unreadable_events >= UNREADABLE_EVENTS_MAX &&
                                         now - x->unreadable_usec < UNREADABLE_EVENTS_USEC))
                return;
        if (now - x->unreadable_usec >= UNREADABLE_EVENTS_USEC) {
                x->unreadable_usec = now;
                x->unreadable_events = 0;
        }
        x->unreadable_events++;
        extender_event(x, kind, key, "Unreadable", sentence);
}

static void on_refreshed(void *userdata)
{
        struct extender *x = userdata;

        x->audited_usec = loop_now_usec(x->loop);
        if (x->auditing)
                x->metrics.audits++;
        x->auditing = false;
        leader_refreshed(x->leader);
}

static void audit_when_due(struct extender *x)
{
        uint64_t now = loop_now_usec(x->loop), period = (uint64_t) x->options->audit_sec * 1000000;

        if (period == 0 || x->auditing || !x->was_ready)
                return;
        if (x->audited_usec == 0)
                x->audited_usec = now; /* the first lists were just read */
        if (now - x->audited_usec < period && (x->audit_again_usec == 0 || now < x->audit_again_usec))
                return;
        x->audit_again_usec = 0;
        x->auditing = true;
        cluster_refresh(x->cluster);
}

static void every_second(void *userdata)
{
        struct extender *x = userdata;
        size_t expired, resumed;

        if (cluster_is_ready(x->cluster) && !x->was_ready) {
                x->was_ready = true;
                labels_write_all(x);
                extender_log(x, LOG_INFO, "ready", "nodes=%u pods=%u", cluster_ledger(x->cluster)->node_count,
                             cluster_ledger(x->cluster)->pod_count);
        }
        leader_look(x->leader);
        audit_when_due(x);
        cluster_every_second(x->cluster);
        resumed =
                gang_share_resume(cluster_ledger(x->cluster), x->settings.rules.lease_usec, extender_now(x));
        expired = gang_expire(cluster_ledger(x->cluster), &x->settings.rules, extender_now(x));
        x->metrics.leases_expired += expired;
        if (expired > 0 || resumed > 0)
                wake_waiting(x, NULL, expired > 0 ? "a lease ended" : "gangs that paused may go on");
        wake_late(x);
        waiting_events_look(x);
        conditions_look(x);
        lost_claims_look(x);
        if (x->backfills + x->emergencies > 0 && clock_monotonic_usec() - x->thought_usec > HOLDS_LOOK_USEC)
                x->thought_generation = UINT64_MAX; /* holds have an end, too */
        think_soon(x);
}

static bool may_commit(void *userdata)
{
        return leader_leads(((struct extender *) userdata)->leader);
}

static bool is_read(void *userdata)
{
        return cluster_is_ready(((struct extender *) userdata)->cluster);
}

static void read_anew(void *userdata)
{
        cluster_refresh(((struct extender *) userdata)->cluster);
}

static bool is_idle(void *userdata)
{
        return ((struct extender *) userdata)->commits == 0;
}

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        extender_log(userdata, priority, event, "%s", text);
}

static int open_leader(struct extender *x, struct err *err)
{
        struct leader_options options = settings_leader(&x->options->server, LEADER_EXTENDER);

        options.beside = x->options->beside_scheduler;
        options.ready = is_read;
        options.refresh = read_anew;
        options.idle = is_idle;
        options.log = on_log;
        options.userdata = x;
        return x->options->server.no_leader_elect ? 0 : leader_open(x->loop, &options, &x->leader, err);
}

static int open_cluster(struct extender *x, struct err *err)
{
        struct cluster_options options = settings_cluster(&x->settings, &x->options->server);

        options.reads_templates = true;
        options.reads_classes = strcmp(x->options->jobs, "on") == 0;
        options.reads_queues = options.reads_classes && strcmp(x->options->server.kueue, "on") == 0;
        options.reads_budgets = options.reads_classes && strcmp(x->options->server.store, "kubernetes") == 0;
        options.changed = on_changed;
        options.node_changed = on_node_changed;
        options.node_labels = on_node_labels;
        options.trouble = on_trouble;
        options.refreshed = on_refreshed;
        options.drifted = on_drifted;
        options.unreadable = on_unreadable;
        options.may_commit = may_commit;
        options.told = on_told;
        options.observed = on_observed;
        options.kind_synced = on_kind_synced;
        options.userdata = x;
        return cluster_open(x->loop, &options, &x->cluster, err);
}

static int open_page(struct extender *x, struct err *err)
{
        const struct page_options options = { .name = "", .has_runbook = runbooks_has };
        int r = page_open(x->loop, &options, &x->page, err);

        if (r == 0)
                page_attach(x->page, x->cluster);
        return r;
}

static int listen_http(struct extender *x, struct err *err)
{
        const struct server_listen_pages pages = { .routes = routes,
                                                   .open_routes =
                                                           routes + ARRAY_SIZE(routes) - 1 - OPEN_ROUTES,
                                                   .headers = page_headers,
                                                   .body_max_bytes = (size_t) x->options->body_max_mib << 20,
                                                   .loopback_only = true,
                                                   .userdata = x };

        return server_listen_open(x->loop, &x->options->server, &pages, &x->listen, err);
}

static bool leads(void *userdata)
{
        return refuses_commit(userdata) == NULL;
}

static void leading_changed(void *userdata, bool leading)
{
        struct extender *x = userdata;

        (void) leading;
        controller_lead(x->jobs);
}

/* The job controller inside the extender: for stores in a directory, and for tests. */
static int open_jobs(struct extender *x, struct err *err)
{
        const struct server_options *o = &x->options->server;
        bool wanted = strcmp(x->options->jobs, "on") == 0;
        struct controller_options options = controller_options_of(o, &x->settings);
        int r;

        options.cluster = x->cluster;
        options.leads = leads;
        options.log = on_log;
        options.userdata = x;
        r = wanted ? controller_new(x->loop, &options, &x->jobs, err) : 0;
        if (r == 0 && wanted)
                r = leader_watch(x->leader, leading_changed, x);
        return r;
}

int extender_new(sd_event *loop, const struct extender_options *options, struct extender **ret,
                 struct err *err)
{
        struct extender *x = calloc(1, sizeof(*x));
        int r;

        if (x == NULL)
                return err_set(err, -ENOMEM, "no memory");
        x->loop = sd_event_ref(loop);
        x->options = options;
        x->reserve_steps = RESERVE_STEPS;
        for (size_t v = 0; v < VERB_COUNT; v++) {
                x->metrics.seconds[v].bounds = histogram_duration_bounds;
                x->metrics.seconds[v].bound_count = HISTOGRAM_DURATION_BOUNDS;
        }
        r = settings_read(&options->server, &x->settings, err);
        if (r == 0 && snapshot_pool_new(loop, EXTENDER_SNAPSHOT_SECONDS, &x->snapshots) < 0)
                r = err_set(err, -ENOMEM, "no memory");
        if (r == 0)
                r = open_leader(x, err);
        if (r == 0)
                r = loop_turns_open(&x->turns, loop);
        if (r >= 0)
                r = labels_open(x);
        if (r == 0)
                r = open_cluster(x, err);
        if (r == 0)
                r = open_page(x, err);
        if (r == 0)
                r = open_jobs(x, err);
        if (r == 0)
                r = sd_event_add_time(loop, &x->after_change, CLOCK_MONOTONIC, 0, 1, after_change, x);
        if (r >= 0) /* before the requests that come after the change */
                r = sd_event_source_set_priority(x->after_change, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = listen_http(x, err);
        if (r == 0)
                r = leader_campaign(x->leader, extender_address(x), err);
        if (r == 0)
                r = leader_watch(x->leader, on_leader, x);
        if (r == 0)
                r = loop_every(loop, 200000, 1000000, every_second, x, &x->every_second);
        if (r < 0) {
                extender_free(x);
                return r;
        }
        extender_log(x, LOG_INFO, "listening", "%s store=%s", server_listen_words(&x->listen).text,
                     options->server.store);
        *ret = x;
        return 0;
}

void extender_free(struct extender *x)
{
        if (x == NULL)
                return;
        sd_event_source_disable_unref(x->every_second);
        sd_event_source_disable_unref(x->after_change);
        x->after_change = NULL;
        bind_close(x);
        snapshot_pool_free(x->snapshots);
        page_close(TAKE(x->page));
        waiting_events_free(x);
        leader_resign(x->leader);
        cluster_close(x->cluster); /* answers what is being written */
        controller_free(x->jobs);
        leader_close(x->leader);
        labels_free(x);
        conditions_free(x);
        names_memory_free(&x->names);
        loop_turns_close(&x->turns);
        settle_close(x);
        server_listen_close(&x->listen);
        settings_free(&x->settings);
        sd_event_unref(x->loop);
        free(x);
}
