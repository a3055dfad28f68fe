/* GET /v1/explain and POST /v1/whatif: a request, an answer from scheduler-extender/explain/, a reply. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/state.h"

static void reply_json(struct http_reply *reply, json_t *json)
{
        reply->body = json == NULL ? NULL : json_dumps(json, JSON_INDENT(1));
        json_decref(json);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory");
        else
                reply->body_bytes = strlen(reply->body);
}

/* GET /v1/explain?namespace=NS&pod=NAME */
void explain_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        const char *namespace_ = http_request_query(request, "namespace"),
                   *name = http_request_query(request, "pod");
        uint64_t begin = extender_begin();
        const struct ledger_pod *pod = NULL;
        struct err err = { 0 };
        json_t *json;

        if (name == NULL || name[0] == '\0') {
                http_reply_error(reply, 400,
                                 "explain: pod=NAME is missing; namespace=NS is \"default\" if left out");
        } else {
                pod = ledger_pods_find(cluster_ledger(x->cluster),
                                       namespace_ == NULL ? "default" : namespace_, name);
                if (pod == NULL)
                        http_reply_error(reply, 404, "explain: there is no pod %s/%s",
                                         namespace_ == NULL ? "default" : namespace_, name);
        }
        if (pod != NULL) {
                json = explain_pod(x->cluster, pod, extender_now(x), &err);
                if (json != NULL)
                        (void) json_object_set_new(
                                json, "cacheAgeSeconds",
                                json_real((double) store_age_usec(cluster_store(x->cluster),
                                                                  extender_begin() / 1000) /
                                          1e6));
                reply_json(reply, json);
        }
        extender_end(x, VERB_EXPLAIN, begin, pod == NULL);
}

/* POST /v1/whatif */
void whatif_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        uint64_t begin = extender_begin();
        struct err err = { 0 };
        json_error_t where;
        json_t *context = json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, &where);
        json_t *answer = NULL;
        int r;

        if (context == NULL)
                r = err_set(&err, -EBADMSG, "line %d, column %d: %s", where.line, where.column, where.text);
        else if (!json_is_object(context))
                r = err_set(&err, -EBADMSG, "the question must be an object");
        else
                r = whatif(x->cluster, context, extender_now(x), &answer, &err);
        json_decref(context);
        if (r < 0)
                http_reply_error(reply, r == -ENOMEM ? 503 : 400, "whatif: %s", err.msg);
        else
                reply_json(reply, answer);
        extender_end(x, VERB_WHATIF, begin, r < 0);
}
