#include <errno.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "core/score.h"
#include "scheduler-extender/state.h"

/* Scores of the nodes that take the pod; the others keep 0. */
static int score_nodes(struct extender *x, struct extender_args *args, const struct question *question)
{
        CLEANUP(free_p)
        struct ledger_node **nodes = malloc((args->node_count + 1) * sizeof(struct ledger_node *));
        CLEANUP(free_p) struct score_tuple *tuples = malloc((args->node_count + 1) * sizeof(*tuples));
        CLEANUP(free_p) uint8_t *scores = malloc(args->node_count + 1);
        size_t fitting = 0;

        if (nodes == NULL || tuples == NULL || scores == NULL || resolve_nodes(x, args, nodes) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < args->node_count; i++) {
                struct extender_node *node = &args->nodes[i];

                prefetch_node(nodes, i, args->node_count);
                if (node->verdict == EXTENDER_NODE_AGAIN || nodes[i] == NULL)
                        continue;
                node->score = rules_judge(question, nodes[i]) == REASON_NONE;
                if (node->score > 0)
                        score_tuple(question, nodes[i], &tuples[fitting++]);
        }
        if (score_rank(tuples, fitting, scores) < 0)
                return -ENOMEM;
        fitting = 0;
        for (size_t i = 0; i < args->node_count; i++)
                if (args->nodes[i].score > 0)
                        args->nodes[i].score = scores[fitting++];
        return 0;
}

static int prioritize(struct extender *x, struct extender_args *args, struct http_reply *reply,
                      struct err *err)
{
        struct inquiry inquiry;
        int r = inquiry_begin(x->cluster, args->pod, extender_now(x), false, &inquiry, err);

        if (r == 0)
                r = score_nodes(x, args, &inquiry.question);
        inquiry_end(x->cluster, &inquiry);
        if (r < 0)
                return r;
        reply->body = extender_prioritize_encode(args, &reply->body_bytes);
        return reply->body == NULL ? -ENOMEM : 0;
}

void prioritize_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        struct extender_args args;
        struct err err = { 0 };
        uint64_t begin = extender_begin();
        int r = extender_args_decode(request->body, request->body_bytes, &args, &err);

        if (r == 0)
                r = prioritize(x, &args, reply, &err);
        extender_args_free(&args);
        if (r < 0)
                http_reply_error(reply,
                                 r == -ENOMEM  ? 503
                                 : r == -E2BIG ? 413
                                               : 400,
                                 "prioritize: %s", r == -ENOMEM ? "no memory" : err.msg);
        extender_end(x, VERB_PRIORITIZE, begin, r < 0);
}
