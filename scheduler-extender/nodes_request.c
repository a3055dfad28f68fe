/* What filter and prioritize have in common: read the message, ask the request, answer or refuse. */
#include <errno.h>

#include "scheduler-extender/state.h"

void nodes_request(struct extender *x, enum verb verb, const struct http_request *request,
                   struct http_reply *reply, nodes_answer_fn *answer)
{
        struct ledger *ledger = cluster_ledger(x->cluster);
        const char *name = verb == VERB_FILTER ? "filter" : "prioritize";
        struct extender_args args;
        struct err err = { 0 };
        uint64_t begin = extender_begin();
        int r = extender_args_decode(request->body, request->body_bytes, &ledger->roster, &args, &err);

        if (r == 0)
                r = answer(x, &args, reply, &err);
        if (r == 0 && reply->body == NULL)
                r = -ENOMEM;
        extender_args_free(&args);
        if (r == -ENOMEM)
                http_reply_error(reply, 503, "%s: no memory", name);
        else if (r < 0)
                http_reply_error(reply, r == -E2BIG ? 413 : 400, "%s: %s", name, err.msg);
        extender_end(x, verb, begin, r < 0);
}
