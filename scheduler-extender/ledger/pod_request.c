/* Facts, job, class, weights and gang of a pod, worked out one after the other. */
#include "scheduler-extender/ledger/pod_request.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_members.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/groups/group_pass.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_neighbours.h"
#include "scheduler-extender/wire/pod_node_match.h"

static int find_job(struct cluster *c, struct pod_request *in)
{
        if (in->facts.job == NULL || in->facts.job[0] == '\0')
                return 0;
        in->job = ledger_jobs_refer(c->ledger, in->facts.namespace_, in->facts.job);
        return in->job == NULL ? -ENOMEM : 0;
}

/* The class rule counts the whole job: the TrainingJob's chips, else what the pod says of its gang. */
static void count_class_chips(struct pod_request *in)
{
        uint64_t chips = request_chips(&in->request) + device_asks_least(&in->asks);

        if (in->job != NULL && in->job->training != NULL)
                in->request.class_chips =
                        job_worker_chips(in->job->training) + job_server_chips(in->job->training);
        else if (in->facts.kind_count == 0)
                in->request.class_chips = chips * (in->request.gang_size > 1 ? in->request.gang_size : 1);
}

/* The pod as the ledger has it; NULL = the store does not know it (yet). */
static const struct ledger_pod *self_of(const struct cluster *c, const struct pod_request *in)
{
        const struct ledger_pod *self = ledger_pods_find(c->ledger, in->facts.namespace_, in->facts.name);

        return self != NULL && strcmp(self->uid, in->facts.uid) == 0 ? self : NULL;
}

static void fill_context(struct cluster *c, struct pod_request *in, uint64_t now_usec)
{
        in->context = (struct rules_context){
                .ledger = c->ledger,
                .rules = &c->options.rules,
                .request = &in->request,
                .job = in->job,
                .self = self_of(c, in),
                .namespace_ = in->facts.namespace_,
                .created_usec = in->facts.created_usec,
                .now_usec = now_usec,
                .devices = in->devices,
                .asks = in->asks.count > 0 ? &in->asks : NULL,
        };
        rules_prepare(&in->context);
}

static int weigh(struct cluster *c, struct pod_request *in)
{
        unsigned placement = in->request.placement != PLACEMENT_DEFAULT
                                     ? in->request.placement
                                     : (unsigned) c->options.rules.placement;
        int r;

        in->weighting.fastest = placement == PLACEMENT_FASTEST;
        in->weighting.programs.table = c->programs;
        in->weighting.programs.table_count = c->program_count;
        r = weighting_build(c->ledger, in->job, in->context.self, &in->request, &in->weighting);
        in->context.weighting = r == 0 ? &in->weighting : NULL;
        return r < 0 ? r : 0;
}

enum purpose { PURPOSE_TRIAL, PURPOSE_LOOK, PURPOSE_FILTER, PURPOSE_BIND };

static enum purpose purpose_of(bool keep, enum purpose purpose)
{
        return keep ? purpose : PURPOSE_LOOK;
}

/* Return: 1 = a lease was made; 0; -ENOMEM. */
static int plan_gang(struct cluster *c, enum purpose purpose, struct pod_request *in)
{
        bool cycle = in->request.group == REQUEST_GROUP_CYCLE && in->request.gang_size > 1;
        struct gang_demand demand = { .kinds = in->facts.kinds,
                                      .kind_count = in->facts.kind_count,
                                      .keep = purpose != PURPOSE_LOOK && !cycle };
        int r;

        if (purpose == PURPOSE_TRIAL)
                return 0;
        if (!cycle || in->job == NULL || purpose == PURPOSE_LOOK)
                return gang_prepare(c->ledger, &in->context, in->job, &demand);
        if (purpose == PURPOSE_BIND)
                return group_pass_commit(c->ledger, &in->context, in->job);
        r = group_pass_begin(c->ledger, &in->context, in->job, &demand);
        in->in_pass = r > 0;
        return r > 0 ? 0 : r;
}

/* The rest of a request whose facts are known and whose job is referred to. */
static int prepare(struct cluster *c, uint64_t now_usec, enum purpose purpose, struct pod_request *in,
                   struct err *err)
{
        int r;

        in->request = in->facts.request;
        ledger_chips_only(c->ledger, &in->request);
        claims_members_ask(c, in->job, self_of(c, in), &in->asks, &in->request);
        count_class_chips(in);
        fill_context(c, in, now_usec);
        in->request.lone = gang_members_are_lone(in->job, in->context.self, &in->request);
        in->request.lacking = gang_members_are_lacking(in->job, in->context.self, &in->request,
                                                       in->facts.kinds, in->facts.kind_count);
        if (weigh(c, in) < 0)
                return err_set(err, -ENOMEM, "no memory to weigh the shares");
        r = plan_gang(c, purpose, in);
        if (r < 0)
                return err_set(err, r, "no memory to plan the gang");
        in->leased = r > 0;
        if (in->leased && weigh(c, in) < 0) /* the members planned by now count */
                return err_set(err, -ENOMEM, "no memory to weigh the shares");
        return 0;
}

/* What a gang's member demands that the store does not know (yet): the others are planned like it. */
static void hold_texts(struct cluster *c, const json_t *pod, struct pod_request *in)
{
        CLEANUP(text_free) struct text match = { 0 }, labels = { 0 }, demands = { 0 };
        struct request *held = &in->held;

        pod_node_match(pod, &match);
        pod_neighbours_labels(pod, &labels);
        pod_neighbours_demands(pod, &demands);
        held->match = match.failed
                              ? NODE_MATCH_ANY
                              : node_match_hold(&c->ledger->matches, match.data == NULL ? "" : match.data);
        held->labels = neighbours_hold_labels(&c->ledger->neighbours, labels.failed ? NULL : labels.data);
        held->demands = neighbours_hold_demands(&c->ledger->neighbours, demands.failed ? NULL : demands.data);
        in->facts.request.match = held->match;
        in->facts.request.labels = held->labels;
        in->facts.request.demands = held->demands;
}

static void find_texts(struct cluster *c, const json_t *pod, struct pod_request *in)
{
        const struct ledger_pod *self = self_of(c, in);

        if (self != NULL) {
                in->facts.request.match = self->request.match;
                in->facts.request.demands = self->request.demands;
        } else if (in->job != NULL && in->facts.request.gang_size > 1) {
                hold_texts(c, pod, in);
        }
}

int pod_request_begin(struct cluster *cluster, const json_t *pod, uint64_t now_usec, bool keep_lease,
                      struct pod_request *ret, struct err *err)
{
        int r;

        memset(ret, 0, offsetof(struct pod_request, weighting.rows)); /* rows are many, and counted */
        ret->asks.count = 0;
        r = pod_json_decode(pod, &cluster->options.policy, cluster->ledger, false, &ret->facts, err);
        if (r < 0)
                return r;
        if (find_job(cluster, ret) < 0)
                return err_set(err, -ENOMEM, "no memory");
        find_texts(cluster, pod, ret);
        ret->devices = cluster_claims_asked(cluster, ret->facts.namespace_, pod, &ret->asks);
        return prepare(cluster, now_usec, purpose_of(keep_lease, PURPOSE_FILTER), ret, err);
}

static int begin_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                     enum purpose purpose, struct pod_request *ret, struct err *err)
{
        memset(ret, 0, offsetof(struct pod_request, weighting.rows));
        (void) text_format(ret->namespace_, sizeof(ret->namespace_), "%.*s", (int) (pod->name - pod->key) - 1,
                           pod->key);
        ret->facts = (struct ledger_pod_facts){
                .namespace_ = ret->namespace_,
                .name = pod->name,
                .uid = pod->uid,
                .request = pod->request,
                .created_usec = pod->created_usec,
                .kind_count = pod->kind_count,
        };
        if (pod->kind_count > 0)
                memcpy(ret->facts.kinds, pod->kinds, pod->kind_count * sizeof(*pod->kinds));
        ret->job = pod->job;
        if (ret->job != NULL)
                ret->job->references++;
        ret->asks.count = 0;
        if (purpose != PURPOSE_BIND || cluster->tried != NULL) /* a bind's claims have been allocated */
                ret->devices = cluster_claims_asked_by(cluster, pod->key, &ret->asks);
        return prepare(cluster, now_usec, purpose, ret, err);
}

int pod_request_begin_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                          bool keep_lease, struct pod_request *ret, struct err *err)
{
        return begin_pod(cluster, pod, now_usec, purpose_of(keep_lease, PURPOSE_BIND), ret, err);
}

int pod_request_begin_trial(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                            struct pod_request *ret)
{
        return begin_pod(cluster, pod, now_usec, PURPOSE_TRIAL, ret, NULL);
}

void pod_request_end(struct cluster *cluster, struct pod_request *pod_request)
{
        if (pod_request->in_pass)
                group_pass_end(cluster->ledger, pod_request->job);
        pod_request->in_pass = false;
        if (pod_request->job != NULL)
                ledger_jobs_release(cluster->ledger, pod_request->job);
        pod_request->job = NULL;
        ledger_jobs_release_texts(cluster->ledger, &pod_request->held);
        pod_request->held = (struct request){ 0 };
}

bool pod_request_is_gang(const struct pod_request *pod_request)
{
        return pod_request->job != NULL && pod_request->request.item_count > 0 &&
               (pod_request->request.gang_size > 1 || pod_request->facts.kind_count > 0);
}
