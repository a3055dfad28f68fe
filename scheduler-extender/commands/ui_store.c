/* A cluster that was saved, a page on it, and what-ifs worked out by a child. */
#include "scheduler-extender/commands/ui_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/loop.h"
#include "io/snapshot.h"
#include "scheduler-extender/commands/ui_runs.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/explain/whatif_question.h"
#include "scheduler-extender/page/page.h"
#include "scheduler-extender/runbooks.h"

#define WHATIF_SECONDS 10

struct ui_store {
        struct cluster_arguments arguments;
        struct cluster_arguments_opened opened;
        struct page *page;
        struct snapshot_pool *snapshots;
        struct ui_runs *runs;
        sd_event_source *every_second;
        uint64_t held_generation; /* of the ledger, when holds were last worked out */
};

struct asked {
        struct ui_store *store;
        struct http_pending *pending;
        size_t body_bytes;
        char body[]; /* NUL-terminated */
};

/* The loop is there before the cluster, and the page from the first word on. */
static struct page *page_of(struct ui_store *s)
{
        const struct page_options options = { .name = s->arguments.store, .has_runbook = runbooks_has };

        if (s->page == NULL && s->opened.loop != NULL)
                (void) page_open(s->opened.loop, &options, &s->page, &(struct err){ 0 });
        return s->page;
}

static void on_told(void *userdata, const char *node, const struct inventory *inventory)
{
        page_told(page_of(userdata), node, inventory);
}

static void on_run(void *userdata, const char *key, const json_t *object)
{
        page_observed(page_of(userdata), STORE_TRAINING_JOB, key, object);
}

/* Likewise: what the store has goes before. */
static struct ui_runs *runs_of(struct ui_store *s)
{
        if (s->runs == NULL && s->opened.loop != NULL)
                (void) ui_runs_new(s->opened.loop, store_directory(s->arguments.store), on_run, s, &s->runs);
        return s->runs;
}

static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct ui_store *s = userdata;

        if (kind == STORE_TRAINING_JOB)
                ui_runs_observed(runs_of(s), key, object);
        page_observed(page_of(s), kind, key, object);
}

static void on_changed(void *userdata)
{
        page_changed(page_of(userdata));
}

/* No store tells of holds: they follow from who waits. */
static void on_second(void *userdata)
{
        struct ui_store *s = userdata;
        struct ledger *ledger = cluster_ledger(s->opened.cluster);

        if (s->held_generation == ledger->generation)
                return;
        backfill_renew(ledger, cluster_rules(s->opened.cluster), clock_steady_usec());
        s->held_generation = ledger->generation;
}

int ui_store_new(const struct cluster_arguments *arguments, struct ui_store **ret, struct err *err)
{
        struct ui_store *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory");
        s->arguments = *arguments;
        s->arguments.told = on_told;
        s->arguments.observed = on_observed;
        s->arguments.changed = on_changed;
        s->arguments.userdata = s;
        r = cluster_arguments_open(&s->arguments, &s->opened, err);
        if (r == 0 &&
            (page_of(s) == NULL || snapshot_pool_new(s->opened.loop, WHATIF_SECONDS, &s->snapshots) < 0 ||
             loop_every(s->opened.loop, 0, 1000000, on_second, s, &s->every_second) < 0 ||
             runs_of(s) == NULL))
                r = err_set(err, -ENOMEM, "no memory");
        if (r < 0) {
                ui_store_free(s);
                return r;
        }
        page_attach(s->page, s->opened.cluster);
        *ret = s;
        return 0;
}

void ui_store_close_page(struct ui_store *s)
{
        if (s == NULL)
                return;
        sd_event_source_disable_unref(TAKE(s->every_second));
        ui_runs_free(TAKE(s->runs));
        snapshot_pool_free(TAKE(s->snapshots));
        page_close(TAKE(s->page));
}

void ui_store_free(struct ui_store *s)
{
        if (s == NULL)
                return;
        ui_store_close_page(s);
        cluster_arguments_close(&s->opened);
        free(s);
}

sd_event *ui_store_loop(const struct ui_store *s)
{
        return s->opened.loop;
}

void ui_store_get(struct ui_store *s, const struct http_request *request, struct http_reply *reply)
{
        page_answer(s->page, request, reply);
}

/* In the child: "200 " and the answer, or a status and why not. */
static void work_whatif(void *userdata, struct text *ret)
{
        struct asked *a = userdata;
        struct cluster *cluster = a->store->opened.cluster;
        json_t *question = NULL, *answer = NULL;
        CLEANUP(free_p) char *body = NULL;
        struct err err = { 0 };
        int r = whatif_question_read(a->body, a->body_bytes, &question, &err);

        if (r == 0)
                r = whatif(cluster, question, clock_steady_usec(), &answer, &err);
        if (r == 0)
                (void) json_object_set_new(answer, "asked",
                                           json_sprintf("store %s", a->store->arguments.store));
        else
                answer = json_pack("{s:o}", "error", json_sprintf("whatif: %s", err.msg));
        body = answer == NULL ? NULL : json_dumps(answer, JSON_INDENT(1));
        text_append(ret, r == 0 ? "200 " : r == -ENOENT ? "404 " : "400 ");
        text_append(ret, body != NULL ? body : "{}");
        json_decref(answer);
        json_decref(question);
}

static void on_whatif(void *userdata, int result, char *text, size_t bytes)
{
        struct asked *a = userdata;
        struct http_reply reply = { .status = 0 };

        if (result == 0 && bytes > 4) {
                reply.status = text[0] == '2' ? 200 : text[2] == '4' ? 404 : 400;
                memmove(text, text + 4, bytes - 4);
                reply.body = TAKE(text);
                reply.body_bytes = bytes - 4;
        } else {
                http_reply_error(&reply, 503, "whatif: it was not worked out: try again");
        }
        free(text);
        http_resume(a->pending, &reply);
        free(a);
}

void ui_store_whatif(struct ui_store *s, const struct http_request *request, struct http_reply *reply)
{
        struct asked *a = calloc(1, sizeof(*a) + request->body_bytes + 1);

        if (a != NULL) {
                a->store = s;
                a->body_bytes = request->body_bytes;
                memcpy(a->body, request->body, request->body_bytes);
        }
        if (a == NULL || snapshot_run(s->snapshots, work_whatif, on_whatif, a) < 0) {
                free(a);
                http_reply_error(reply, 503, "whatif: no process for the question: try again");
                return;
        }
        a->pending = http_suspend(request);
}
