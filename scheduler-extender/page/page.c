/* What is shown, kept up to date as the cluster tells, and told to those who look on. */
#include "scheduler-extender/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "io/clock.h"
#include "io/loop.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/page/page_agents.h"
#include "scheduler-extender/page/page_answers.h"
#include "scheduler-extender/page/page_assets.h"
#include "scheduler-extender/page/page_changes.h"
#include "scheduler-extender/page/page_detail.h"
#include "scheduler-extender/page/page_fleet.h"
#include "scheduler-extender/page/page_guard.h"
#include "scheduler-extender/page/page_kept.h"
#include "scheduler-extender/page/page_waiting.h"

#define TELL_USEC         UINT64_C(200000)    /* between two events of a kind */
#define TELL_OTHERS_USEC  UINT64_C(1000000)   /* ... of those that make viewers ask again */
#define TELL_WAITING_USEC UINT64_C(2000000)   /* ... which costs a child's time */
#define WAITING_KEEP_USEC UINT64_C(5000000)   /* an answer that took a child's time */
#define TELL_VIEWER_USEC  UINT64_C(2000)      /* ... for each who looks on: to write to one takes 20 */
#define BYTES_A_SEC       (UINT64_C(8) << 20) /* to all who look on together */
#define BEAT_SECONDS      10

const char *const page_headers[] = { "Cache-Control",
                                     "no-cache",
                                     "Content-Security-Policy",
                                     "default-src 'self'",
                                     "X-Content-Type-Options",
                                     "nosniff",
                                     "Referrer-Policy",
                                     "no-referrer",
                                     "X-Frame-Options",
                                     "DENY",
                                     NULL };

enum question { FLEET, WAITING, JOBS, AGENTS, QUESTIONS };

static const char *const names[QUESTIONS] = { "fleet", "waiting", "jobs", "agents" };

struct page {
        sd_event *loop;
        sd_event_source *tell, *every_second;
        struct cluster *cluster; /* NULL until it is attached */
        char name[254];
        bool (*has_runbook)(const char *name);
        struct page_kept kept;
        struct page_answers *answers;
        struct page_changes *changes;
        uint64_t told_version[QUESTIONS], told_usec[QUESTIONS];
        uint64_t faults_told; /* of faults.total */
        uint64_t due_usec;    /* nodes are not told before this */
        unsigned beat_sec;    /* since the last sign of life to viewers */
};

/* Of what is asked about; only grows. */
static uint64_t version_of(const struct page *p, enum question question)
{
        uint64_t generation = cluster_ledger(p->cluster)->generation;

        switch (question) {
        case FLEET:
                return p->kept.fleet_version + generation;
        case WAITING:
                return generation;
        case JOBS:
                return p->kept.jobs_version;
        default:
                return p->kept.agents_version;
        }
}

static void tell_soon(struct page *p)
{
        uint64_t now = loop_now_usec(p->loop);

        if (p->cluster != NULL && page_changes_viewers(p->changes) > 0 && !loop_is_armed(p->tell))
                loop_rearm(p->tell, p->due_usec > now ? p->due_usec - now : 1);
}

/* The last sign of life of its agent or node, on people's clock; 0 = not known. */
static uint64_t heard_usec(const struct page *p, const char *name)
{
        const struct ledger *ledger = cluster_ledger(p->cluster);
        const struct ledger_node *node = ledger_nodes_find(ledger, name, strlen(name));
        uint64_t file = store_inventory_mtime_usec(cluster_store(p->cluster), name), seen;

        if (file > 0 || node == NULL)
                return file;
        seen = ledger_seen_usec(ledger, node);
        if (seen == LIVENESS_REMOVED || seen < node->trust.agent_seen_usec)
                seen = node->trust.agent_seen_usec;
        return seen == 0 ? 0 : clock_realtime_usec() - (clock_monotonic_usec() - seen);
}

static struct page_fleet_node shown(const struct page *p, const struct page_kept_node *node)
{
        return (struct page_fleet_node){ .name = node->entry.key,
                                         .told = &node->told,
                                         .ledger = cluster_ledger(p->cluster),
                                         .claims = cluster_claims(p->cluster),
                                         .rules = cluster_rules(p->cluster),
                                         .heard_usec = heard_usec(p, node->entry.key),
                                         .has_runbook = p->has_runbook };
}

/* In the child, as the next three. */
static void work_fleet(void *userdata, struct text *ret)
{
        struct page *p = userdata;
        CLEANUP(free_p) struct name_map_entry **all = page_kept_sorted(&p->kept.nodes);
        struct json_writer w = { .text = ret, .compact = true };
        CLEANUP(page_fleet_columns_free) struct page_fleet_columns columns = { .totals = { .chips = 0 } };
        uint64_t now = clock_realtime_usec();

        if (all == NULL)
                ret->failed = true;
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", now);
        json_writer_string(&w, "cluster", p->name);
        json_writer_bool(&w, "ready", cluster_is_ready(p->cluster));
        json_writer_uint64(&w, "generation", version_of(p, FLEET));
        for (size_t i = 0; all != NULL && i < p->kept.nodes.count; i++) {
                struct page_fleet_node node = shown(p, (const struct page_kept_node *) all[i]);

                if (page_fleet_add(&columns, &node, true) < 0)
                        ret->failed = true;
        }
        page_fleet_write(&w, &columns);
        page_fleet_write_totals(&w, &columns.totals);
        page_fleet_write_faults(&w, &p->kept.faults, 0, now);
        json_writer_close(&w, '}');
}

static void work_waiting(void *userdata, struct text *ret)
{
        page_waiting_write(((struct page *) userdata)->cluster, clock_steady_usec(), clock_realtime_usec(),
                           ret);
}

static void work_jobs(void *userdata, struct text *ret)
{
        struct page *p = userdata;
        CLEANUP(free_p) struct name_map_entry **all = page_kept_sorted(&p->kept.jobs);
        struct json_writer w = { .text = ret, .compact = true };
        bool follows = false;

        if (all == NULL)
                ret->failed = true;
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", clock_realtime_usec());
        json_writer_open(&w, "jobs", '[');
        for (size_t i = 0; all != NULL && i < p->kept.jobs.count; i++) {
                const struct page_kept_job *job = (const struct page_kept_job *) all[i];

                if (job->text == NULL)
                        continue;
                text_append(ret, follows ? "," : "");
                text_append(ret, job->text);
                follows = true;
        }
        json_writer_close(&w, ']');
        json_writer_close(&w, '}');
}

static void work_agents(void *userdata, struct text *ret)
{
        struct page *p = userdata;
        CLEANUP(free_p) struct name_map_entry **all = page_kept_sorted(&p->kept.nodes);
        struct json_writer w = { .text = ret, .compact = true };

        if (all == NULL)
                ret->failed = true;
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", clock_realtime_usec());
        json_writer_string(&w, "version", REMUDA_VERSION);
        json_writer_open(&w, "agents", '[');
        for (size_t i = 0; all != NULL && i < p->kept.nodes.count; i++) {
                struct page_fleet_node node = shown(p, (const struct page_kept_node *) all[i]);

                page_agents_write(&w, &node);
        }
        json_writer_close(&w, ']');
        json_writer_close(&w, '}');
}

static const struct page_answers_question questions[QUESTIONS] = {
        [FLEET] = { .work = work_fleet, .rest_usec = TELL_OTHERS_USEC },
        [WAITING] = { .work = work_waiting, .keep_usec = WAITING_KEEP_USEC },
        [JOBS] = { .work = work_jobs, .rest_usec = TELL_OTHERS_USEC },
        [AGENTS] = { .work = work_agents, .keep_usec = TELL_OTHERS_USEC },
};

/* The nodes that have changed, PAGE_NODES_A_TIME of them; the rest is next. Return: the bytes of it all. */
static size_t tell_fleet(struct page *p)
{
        CLEANUP(text_free) struct text text = { 0 };
        CLEANUP(page_fleet_columns_free) struct page_fleet_columns columns = { .totals = { .chips = 0 } };
        struct json_writer w = { .text = &text, .compact = true };
        struct page_kept_node *node;

        page_kept_scan(&p->kept, cluster_ledger(p->cluster));
        if (p->kept.dirty == NULL && p->kept.gone.size_bytes == 0 && p->faults_told == p->kept.faults.total)
                return 0;
        json_writer_open(&w, NULL, '{');
        json_writer_uint64(&w, "generation", version_of(p, FLEET));
        for (unsigned i = 0; i < PAGE_NODES_A_TIME && (node = page_kept_next(&p->kept)) != NULL; i++) {
                struct page_fleet_node of = shown(p, node);

                if (page_fleet_add(&columns, &of, node->anew) < 0)
                        text.failed = true;
                node->anew = false;
        }
        page_fleet_write(&w, &columns);
        json_writer_open(&w, "gone", '[');
        if (p->kept.gone.data != NULL)
                text_append(&text, p->kept.gone.data);
        json_writer_close(&w, ']');
        page_fleet_write_faults(&w, &p->kept.faults, p->faults_told, clock_realtime_usec());
        json_writer_close(&w, '}');
        text_free(&p->kept.gone);
        p->faults_told = p->kept.faults.total;
        if (text.failed) /* viewers come again, and ask for all of it */
                page_changes_end(p->changes);
        return text.failed ? 0 : page_changes_send(p->changes, names[FLEET], version_of(p, FLEET), text.data);
}

/* What viewers have to ask for again. */
static void tell_others(struct page *p, uint64_t now_usec)
{
        for (enum question q = WAITING; q < QUESTIONS; q++) {
                uint64_t version = version_of(p, q),
                         rest = q == WAITING ? TELL_WAITING_USEC : TELL_OTHERS_USEC;

                if (version == p->told_version[q] || now_usec < p->told_usec[q] + rest)
                        continue;
                p->told_version[q] = version;
                p->told_usec[q] = now_usec;
                (void) page_changes_send(p->changes, names[q], version_of(p, FLEET), "{}");
        }
}

/* The more is sent, and to the more, the longer is the rest. */
static void on_tell(void *userdata)
{
        struct page *p = userdata;
        uint64_t now = loop_now_usec(p->loop), rest;
        size_t bytes;

        if (p->cluster == NULL || page_changes_viewers(p->changes) == 0)
                return;
        bytes = tell_fleet(p);
        tell_others(p, now);
        rest = bytes * UINT64_C(1000000) / BYTES_A_SEC;
        if (rest < page_changes_viewers(p->changes) * TELL_VIEWER_USEC)
                rest = page_changes_viewers(p->changes) * TELL_VIEWER_USEC;
        p->due_usec = now + (rest > TELL_USEC ? rest : TELL_USEC);
        if (p->kept.dirty != NULL)
                tell_soon(p);
}

static void on_second(void *userdata)
{
        struct page *p = userdata;

        if (p->cluster == NULL || !cluster_is_ready(p->cluster))
                return;
        page_kept_judge(&p->kept, cluster_ledger(p->cluster), cluster_rules(p->cluster),
                        clock_realtime_usec());
        if (page_changes_viewers(p->changes) == 0) {
                page_kept_clean(&p->kept, cluster_ledger(p->cluster));
                return;
        }
        if (++p->beat_sec >= BEAT_SECONDS) {
                p->beat_sec = 0;
                (void) page_changes_send(p->changes, NULL, 0, NULL);
        }
        tell_soon(p);
}

int page_open(sd_event *loop, const struct page_options *options, struct page **ret, struct err *err)
{
        struct page *p = calloc(1, sizeof(*p));
        int r = p == NULL ? -ENOMEM : 0;

        if (r == 0) {
                p->loop = sd_event_ref(loop);
                p->has_runbook = options->has_runbook;
                (void) text_copy(p->name, sizeof(p->name), options->name);
                p->changes = page_changes_new(loop);
                r = p->changes == NULL ? -ENOMEM : 0;
        }
        if (r == 0)
                r = page_answers_new(loop, questions, QUESTIONS, p, &p->answers);
        if (r == 0)
                r = loop_timer(loop, on_tell, p, &p->tell);
        if (r >= 0)
                r = loop_every(loop, 1000000, 1000000, on_second, p, &p->every_second);
        if (r < 0) {
                page_close(p);
                return err_set(err, r, "the page: %s", strerrordesc_np(-r));
        }
        *ret = p;
        return 0;
}

void page_close(struct page *p)
{
        if (p == NULL)
                return;
        sd_event_source_disable_unref(p->tell);
        sd_event_source_disable_unref(p->every_second);
        page_answers_free(p->answers);
        page_changes_free(p->changes);
        page_kept_free(&p->kept);
        sd_event_unref(p->loop);
        free(p);
}

void page_attach(struct page *p, struct cluster *cluster)
{
        p->cluster = cluster;
}

void page_told(struct page *p, const char *node, const struct inventory *inventory)
{
        if (p == NULL)
                return;
        page_kept_told(&p->kept, node, inventory, clock_realtime_usec());
        tell_soon(p);
}

void page_observed(struct page *p, enum store_kind kind, const char *key, const json_t *object)
{
        if (p == NULL || kind != STORE_TRAINING_JOB)
                return;
        page_kept_job(&p->kept, key, object, clock_realtime_usec());
        tell_soon(p);
}

void page_changed(struct page *p)
{
        if (p != NULL)
                tell_soon(p);
}

size_t page_viewers(const struct page *p)
{
        return page_changes_viewers(p->changes);
}

bool page_refuses(const struct http_request *request, struct http_reply *reply)
{
        const struct page_guard_request asked = {
                .host = http_request_header(request, "Host"),
                .origin = http_request_header(request, "Origin"),
                .fetch_site = http_request_header(request, "Sec-Fetch-Site"),
                .fetch_mode = http_request_header(request, "Sec-Fetch-Mode"),
                .certified = http_request_is_certified(request),
        };
        const char *why = page_guard_refuses(&asked);

        if (why != NULL)
                http_reply_error(reply, 403, "%s", why);
        return why != NULL;
}

static void answer_file(const struct page_assets_file *file, const struct http_request *request,
                        struct http_reply *reply)
{
        const char *has = http_request_header(request, "If-None-Match");

        *reply = (struct http_reply){ .status = 200, .content_type = file->type, .etag = file->etag };
        if (has != NULL && strstr(has, file->etag) != NULL) {
                reply->status = 304;
                return;
        }
        reply->body = malloc(file->size_bytes + 1);
        if (reply->body == NULL) {
                http_reply_error(reply, 503, "no memory");
                return;
        }
        memcpy(reply->body, file->bytes, file->size_bytes);
        reply->body_bytes = file->size_bytes;
}

static void open_changes(struct page *p, struct http_reply *reply)
{
        struct text hello = { 0 };
        struct json_writer w = { .text = &hello, .compact = true };
        char version[PAGE_ASSETS_VERSION_BYTES];

        if (page_changes_viewers(p->changes) == 0) { /* nobody was told of what has changed till now */
                page_kept_clean(&p->kept, cluster_ledger(p->cluster));
                p->faults_told = p->kept.faults.total;
                for (enum question q = FLEET; q < QUESTIONS; q++)
                        p->told_version[q] = version_of(p, q);
        }
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", clock_realtime_usec());
        page_assets_version(version);
        json_writer_string(&w, "page", version);
        json_writer_close(&w, '}');
        if (hello.failed)
                http_reply_error(reply, 503, "no memory");
        else
                page_changes_open(p->changes, hello.data, reply);
        text_free(&hello);
}

/* At once: it is one node's. */
static void answer_node(struct page *p, const struct http_request *request, struct http_reply *reply)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct json_writer w = { .text = &text, .compact = true };
        const char *name = http_request_query(request, "name");
        struct page_kept_node *node =
                name == NULL ? NULL : (struct page_kept_node *) name_map_find(&p->kept.nodes, name);
        struct page_fleet_node of;
        int r;

        if (node == NULL) {
                http_reply_error(reply, name == NULL ? 400 : 404,
                                 name == NULL ? "which node? /v1/node?name=NODE" : "no agent tells of it");
                return;
        }
        of = shown(p, node);
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", clock_realtime_usec());
        r = page_detail_write(&w, "node", &of);
        json_writer_close(&w, '}');
        if (r < 0 || text.failed) {
                http_reply_error(reply, 503, "no memory");
                return;
        }
        *reply = (struct http_reply){ .status = 200, .content_type = "application/json" };
        reply->body = text_take(&text, &reply->body_bytes);
}

void page_answer(struct page *p, const struct http_request *request, struct http_reply *reply)
{
        const struct page_assets_file *file = page_assets_find(request->path);

        if (file != NULL) {
                answer_file(file, request, reply);
                return;
        }
        if (p->cluster == NULL) {
                http_reply_error(reply, 503, "the cluster is not read yet");
                return;
        }
        for (enum question q = FLEET; q < QUESTIONS; q++)
                if (strcmp(request->path + strlen("/v1/"), names[q]) == 0) {
                        page_answers_give(p->answers, q, version_of(p, q), request, reply);
                        return;
                }
        if (strcmp(request->path, "/v1/node") == 0)
                answer_node(p, request, reply);
        else
                open_changes(p, reply);
}
