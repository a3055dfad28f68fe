/* What people ask: explain and whatif, worked out as JSON by a child, answered and counted here. */
#include "scheduler-extender/verbs_explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/snapshot.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/explain/explain_job.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/explain/whatif_question.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define RETRY_SECONDS 2
#define STATUS_BYTES  4 /* of a child's answer: "200 ", and then the body */

struct question {
        struct extender *extender;
        enum verb verb;
        struct http_pending *pending;
        uint64_t begin_nsec;
        const struct ledger_pod *pod; /* for the child alone: it has the ledger of that time */
        const struct ledger_job *job; /* likewise; one of the two */
        unsigned flags;
        char *body; /* owned */
        size_t body_bytes;
};

static void put_answer(struct text *ret, json_t *json)
{
        CLEANUP(free_p) char *body = json == NULL ? NULL : json_dumps(json, JSON_INDENT(1));

        json_decref(json);
        if (body == NULL)
                ret->failed = true; /* no memory */
        text_printf(ret, "200 %s", body == NULL ? "" : body);
}

static void put_refusal(struct text *ret, const char *verb, const struct err *err)
{
        json_t *json = json_pack("{s:o}", "error", json_sprintf("%s: %s", verb, err->msg));
        CLEANUP(free_p) char *body = json == NULL ? NULL : json_dumps(json, 0);

        json_decref(json);
        text_printf(ret, "%s %s",
                    err->code == -ENOMEM   ? "503"
                    : err->code == -ENOENT ? "404"
                                           : "400",
                    body == NULL ? "{}" : body);
}

/* Who has answered, as people are told. */
static void put_asked(json_t *json, const struct extender *x)
{
        (void) json_object_set_new(json, "asked", json_sprintf("extender %s", extender_address(x)));
}

/* In the child. */
static void work_explain(void *userdata, struct text *ret)
{
        const struct question *q = userdata;
        struct extender *x = q->extender;
        struct err err = { 0 };
        json_t *json = q->job != NULL ? explain_job(x->cluster, q->job, extender_now(x), q->flags, &err)
                                      : explain_pod(x->cluster, q->pod, extender_now(x), q->flags, &err);

        if (json == NULL && err.code != 0) {
                put_refusal(ret, "explain", &err);
                return;
        }
        put_asked(json, x);
        (void) json_object_set_new(
                json, "cacheAgeSeconds",
                json_real((double) store_age_usec(cluster_store(x->cluster), STORE_ALL_KINDS,
                                                  clock_monotonic_usec()) /
                          1e6));
        put_answer(ret, json);
}

/* In the child. */
static void work_whatif(void *userdata, struct text *ret)
{
        const struct question *q = userdata;
        struct err err = { 0 };
        json_t *asked = NULL, *answer = NULL;
        int r = whatif_question_read(q->body != NULL ? q->body : "", q->body_bytes, &asked, &err);

        if (r == 0)
                r = whatif(q->extender->cluster, asked, extender_now(q->extender), &answer, &err);
        json_decref(asked);
        if (r < 0)
                put_refusal(ret, "whatif", &err);
        else {
                put_asked(answer, q->extender);
                put_answer(ret, answer);
        }
}

static void answer(void *userdata, int result, char *text, size_t bytes)
{
        struct question *q = userdata;
        struct http_reply reply = { .retry_after_sec = 0 };
        uint64_t status = 503;

        if (result == 0 && bytes > STATUS_BYTES) {
                text[STATUS_BYTES - 1] = '\0';
                (void) text_parse_uint64(text, &status);
                memmove(text, text + STATUS_BYTES, bytes - STATUS_BYTES);
                reply.status = (unsigned) status;
                reply.body = TAKE(text);
                reply.body_bytes = bytes - STATUS_BYTES;
        } else if (result == -ETIMEDOUT) {
                http_reply_error(&reply, 503, "it was not worked out within %d s: ask for less, or try again",
                                 EXTENDER_SNAPSHOT_SECONDS);
        } else {
                http_reply_error(&reply, 503, "whoever worked it out was ended: try again");
        }
        if (status == 503)
                reply.retry_after_sec = RETRY_SECONDS;
        free(text);
        extender_end(q->extender, q->verb, q->begin_nsec, status != 200);
        http_resume(q->pending, &reply);
        free(q->body);
        free(q);
}

static void refuse(struct question *q, struct http_reply *reply, int r)
{
        if (r == -EBUSY)
                http_reply_error(reply, 503, "%d questions are being worked out: try again", SNAPSHOTS_MAX);
        else
                http_reply_error(reply, 503, "no process for the question: %s", strerrordesc_np(-r));
        reply->retry_after_sec = RETRY_SECONDS;
        extender_end(q->extender, q->verb, q->begin_nsec, true);
        free(q->body);
        free(q);
}

/* @question is copied; its body is taken over. */
static void ask(const struct question *question, snapshot_work *work, const struct http_request *request,
                struct http_reply *reply)
{
        struct question *q = malloc(sizeof(*q));
        int r;

        if (q == NULL) {
                free(question->body);
                extender_end(question->extender, question->verb, question->begin_nsec, true);
                http_reply_error(reply, 503, "no memory");
                return;
        }
        *q = *question;
        r = snapshot_run(q->extender->snapshots, work, answer, q);
        if (r < 0)
                refuse(q, reply, r);
        else
                q->pending = http_suspend(request);
}

/* GET /v1/explain?namespace=NS&pod=NAME[&all=1], or &job=NAME */
void verbs_explain_pod(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        const struct ledger *ledger = cluster_ledger(x->cluster);
        const char *namespace_ = http_request_query(request, "namespace"),
                   *pod = http_request_query(request, "pod"), *job = http_request_query(request, "job");
        struct question question = { .extender = x,
                                     .verb = VERB_EXPLAIN,
                                     .begin_nsec = clock_monotonic_nsec() };

        if (namespace_ == NULL)
                namespace_ = "default";
        if (pod != NULL && pod[0] != '\0')
                question.pod = ledger_pods_find(ledger, namespace_, pod);
        else if (job != NULL && job[0] != '\0')
                question.job = ledger_jobs_find(ledger, namespace_, job);
        else
                http_reply_error(reply, 400,
                                 "explain: pod=NAME is missing, or job=NAME; namespace=NS is \"default\" if "
                                 "left out");
        question.flags = http_request_query(request, "all") != NULL ? EXPLAIN_ALL : 0;
        if (question.pod != NULL || question.job != NULL) {
                ask(&question, work_explain, request, reply);
                return;
        }
        if (reply->status == 0)
                http_reply_error(reply, 404, "explain: there is no %s %s/%s", pod != NULL ? "pod" : "job",
                                 namespace_, pod != NULL ? pod : job);
        extender_end(x, VERB_EXPLAIN, question.begin_nsec, true);
}

/* POST /v1/whatif */
void verbs_explain_whatif(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct question question = { .extender = userdata,
                                     .verb = VERB_WHATIF,
                                     .begin_nsec = clock_monotonic_nsec(),
                                     .body = malloc(request->body_bytes + 1),
                                     .body_bytes = request->body_bytes };

        if (question.body != NULL) {
                memcpy(question.body, request->body, request->body_bytes);
                question.body[request->body_bytes] = '\0';
        } else {
                question.body_bytes = 0;
        }
        ask(&question, work_whatif, request, reply);
}
