/* The prioritize verb: decode, score every node, encode. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/state.h"
#include "scheduler-extender/wire/extender_reply.h"

static int prioritize(struct extender *x, struct extender_args *args, struct http_reply *reply,
                      struct err *err)
{
        CLEANUP(free_p) uint8_t *scores = malloc(args->node_count + 1);
        struct pod_request pod_request;
        int r = pod_request_begin(x->cluster, args->pod, extender_now(x), false, &pod_request, err);

        if (r == 0)
                r = scores == NULL ? -ENOMEM
                                   : candidates_score(&pod_request.context, cluster_ledger(x->cluster),
                                                      args->nodes, args->node_count, scores);
        pod_request_end(x->cluster, &pod_request);
        if (r == 0)
                reply->body = extender_reply_prioritize(args, scores, &reply->body_bytes);
        return r;
}

void prioritize_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        nodes_request(userdata, VERB_PRIORITIZE, request, reply, prioritize);
}
