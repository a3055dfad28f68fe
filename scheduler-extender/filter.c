/* The filter verb: decode, judge every node, leave a lease for a gang, encode. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/state.h"
#include "scheduler-extender/wire/extender_reply.h"

/* Names that were sent before keep their mark; each of the others is counted by its reason. */
static int judge_nodes(struct extender *x, struct extender_args *args, const struct rules_context *context)
{
        CLEANUP(free_p) uint8_t *verdicts = malloc(args->node_count + 1);
        int r = verdicts == NULL ? -ENOMEM
                                 : candidates_judge(context, cluster_ledger(x->cluster), args->nodes,
                                                    args->node_count, verdicts);

        for (size_t i = 0; r == 0 && i < args->node_count; i++) {
                if (args->verdicts[i] == EXTENDER_ARGS_AGAIN)
                        continue;
                args->verdicts[i] = verdicts[i];
                x->metrics.rejected[verdicts[i]]++;
        }
        return r;
}

/* A TrainingJob's lease is the controller's plan, also just after a start. */
static void prepare_lease(struct extender *x, const json_t *pod)
{
        struct json_field root = json_field_root(pod), metadata = json_field_get(&root, "metadata"),
                          labels = json_field_get(&metadata, "labels");
        const char *namespace_ = "default", *job = NULL;

        (void) json_field_string(&metadata, "namespace", &namespace_, NULL);
        (void) json_field_string(&labels, POD_LABEL_JOB, &job, NULL);
        controller_prepare_lease(x->jobs, namespace_, job);
}

/* request -> decode -> request -> judge -> encode */
static int filter(struct extender *x, struct extender_args *args, struct http_reply *reply, struct err *err)
{
        const char *refusal = extender_refuses(x);
        struct pod_request pod_request;
        int r = 0;

        if (refusal == NULL) {
                prepare_lease(x, args->pod);
                r = pod_request_begin(x->cluster, args->pod, extender_now(x), extender_is_leader(x),
                                      &pod_request, err);
                if (r == 0 && pod_request_is_gang(&pod_request))
                        refusal = leader_refuses(x);
                reply->close = refusal != NULL;
                if (r == 0 && refusal == NULL)
                        r = judge_nodes(x, args, &pod_request.context);
                x->metrics.leases_made += pod_request.leased;
                pod_request_end(x->cluster, &pod_request);
        }
        if (r == 0)
                reply->body = extender_reply_filter(args, refusal, &reply->body_bytes);
        return r;
}

void filter_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        nodes_request(userdata, VERB_FILTER, request, reply, filter);
}
