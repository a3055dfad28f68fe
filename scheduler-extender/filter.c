#include <errno.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "scheduler-extender/state.h"

static int judge_nodes(struct extender *x, struct extender_args *args, const struct question *question)
{
        CLEANUP(free_p)
        struct ledger_node **nodes = malloc((args->node_count + 1) * sizeof(struct ledger_node *));

        if (nodes == NULL || resolve_nodes(x, args, nodes) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < args->node_count; i++) {
                struct extender_node *node = &args->nodes[i];

                prefetch_node(nodes, i, args->node_count);
                if (node->verdict == EXTENDER_NODE_AGAIN)
                        continue;
                node->verdict = (uint8_t) rules_judge(question, nodes[i]);
                x->metrics.rejected[node->verdict]++;
        }
        return 0;
}

/* request -> decode -> question -> judge -> encode */
static int filter(struct extender *x, struct extender_args *args, struct http_reply *reply, struct err *err)
{
        const char *refusal = extender_refuses(x);
        struct inquiry inquiry;
        int r;

        if (refusal != NULL) {
                reply->body = extender_filter_encode(args, refusal, &reply->body_bytes);
                return reply->body == NULL ? -ENOMEM : 0;
        }
        r = inquiry_begin(x->cluster, args->pod, extender_now(x), true, &inquiry, err);
        if (r == 0)
                r = judge_nodes(x, args, &inquiry.question);
        x->metrics.leases_made += inquiry.leased;
        inquiry_end(x->cluster, &inquiry);
        if (r < 0)
                return r;
        reply->body = extender_filter_encode(args, NULL, &reply->body_bytes);
        return reply->body == NULL ? -ENOMEM : 0;
}

void filter_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        struct extender_args args;
        struct err err = { 0 };
        uint64_t begin = extender_begin();
        int r = extender_args_decode(request->body, request->body_bytes, &args, &err);

        if (r == 0)
                r = filter(x, &args, reply, &err);
        extender_args_free(&args);
        if (r < 0)
                http_reply_error(reply,
                                 r == -ENOMEM  ? 503
                                 : r == -E2BIG ? 413
                                               : 400,
                                 "filter: %s", r == -ENOMEM ? "no memory" : err.msg);
        extender_end(x, VERB_FILTER, begin, r < 0);
}
