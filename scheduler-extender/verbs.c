/* What kube-scheduler asks: filter (decode, judge every node, leave a lease for a gang, encode) and
 * prioritize (score every node). */
#include "scheduler-extender/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/groups/group_pass.h"
#include "scheduler-extender/ledger/pod_request.h"
#include "scheduler-extender/wire/extender_reply.h"
#include "store/leader.h"

/* 0 with a reply; -ENOMEM; -EBADMSG or -E2BIG with a sentence. */
typedef int answer_fn(struct extender *extender, struct extender_args *args, struct http_reply *reply,
                      struct err *err);

/* What filter and prioritize have in common: read the message, answer or refuse. */
static void answer_nodes(struct extender *x, enum verb verb, const struct http_request *request,
                         struct http_reply *reply, answer_fn *answer)
{
        struct ledger *ledger = cluster_ledger(x->cluster);
        const char *name = verb == VERB_FILTER ? "filter" : "prioritize";
        struct extender_args args;
        struct err err = { 0 };
        uint64_t begin_nsec = clock_monotonic_nsec();
        int r = extender_args_decode(request->body, request->body_bytes, &ledger->roster, &x->names, &args,
                                     &err);

        if (r == 0)
                r = answer(x, &args, reply, &err);
        if (r == 0 && reply->body == NULL)
                r = -ENOMEM;
        extender_args_free(&args);
        if (r == -ENOMEM)
                http_reply_error(reply, 503, "%s: no memory", name);
        else if (r < 0)
                http_reply_error(reply, r == -E2BIG ? 413 : 400, "%s: %s", name, err.msg);
        extender_end(x, verb, begin_nsec, r < 0);
}

/* Of the nodes that fit a gang's plan names some, or the shortlist. */
static int name_best(struct extender *x, const struct rules_context *context,
                     const struct extender_args *args, uint8_t *verdicts)
{
        candidates_keep_to_plan(context, args->nodes, args->node_count, verdicts);
        return x->options->shortlist == 0
                       ? 0
                       : candidates_shorten(context, cluster_ledger(x->cluster), args->nodes,
                                            args->node_count, x->options->shortlist, verdicts);
}

/* Names that were sent before keep their mark; each of the others is counted by its reason. */
static int judge_nodes(struct extender *x, struct extender_args *args, const struct pod_request *pod_request)
{
        const struct rules_context *context = &pod_request->context;
        CLEANUP(free_p) uint8_t *verdicts = malloc(args->node_count + 1);
        struct ledger *ledger = cluster_ledger(x->cluster);
        int r = verdicts == NULL ? -ENOMEM
                                 : candidates_judge(context, ledger, args->nodes, args->node_count, verdicts);

        if (r == 0 && pod_request->in_pass)
                r = group_pass_choose(ledger, context, args->nodes, args->node_count, verdicts);
        else if (r == 0)
                r = name_best(x, context, args, verdicts);
        for (size_t i = 0; r == 0 && i < args->node_count; i++) {
                if (args->verdicts[i] == EXTENDER_ARGS_AGAIN)
                        continue;
                args->verdicts[i] = verdicts[i];
                if (verdicts[i] == CANDIDATE_LEFT_OUT)
                        x->metrics.left_out++;
                else
                        x->metrics.rejected[verdicts[i]]++;
        }
        return r;
}

/* decode -> request -> judge -> encode */
static int filter(struct extender *x, struct extender_args *args, struct http_reply *reply, struct err *err)
{
        const char *refusal = extender_refuses(x);
        struct pod_request pod_request;
        int r = 0;

        if (refusal == NULL) {
                r = pod_request_begin(x->cluster, args->pod, extender_now(x), leader_leads(x->leader),
                                      &pod_request, err);
                if (r == 0 && pod_request_is_gang(&pod_request))
                        refusal = leader_refuses(x->leader);
                reply->close = refusal != NULL;
                if (r == 0 && refusal == NULL)
                        r = judge_nodes(x, args, &pod_request);
                x->metrics.leases_made += pod_request.leased;
                if (pod_request.leased)
                        extender_think_again(x); /* of its namespace's share less is left for holds */
                pod_request_end(x->cluster, &pod_request);
        }
        if (r == 0) {
                FAILPOINT("extender.filter");
                reply->body = extender_reply_filter(args, refusal, &reply->body_bytes);
        }
        return r;
}

void verbs_filter(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        answer_nodes(userdata, VERB_FILTER, request, reply, filter);
}

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

void verbs_prioritize(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        answer_nodes(userdata, VERB_PRIORITIZE, request, reply, prioritize);
}
