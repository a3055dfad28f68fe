/* Questions: a pod's facts, its job, its shares and its gang, before nodes are judged. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/wire/pod_node_match.h"

static int find_job(struct cluster *c, struct inquiry *in)
{
        if (in->facts.job == NULL || in->facts.job[0] == '\0')
                return 0;
        in->job = ledger_hold_job(c->ledger, in->facts.namespace_, in->facts.job);
        return in->job == NULL ? -ENOMEM : 0;
}

/* The class rule counts the whole job: the TrainingJob's chips, else what the pod says of its gang. */
static void count_class_chips(struct inquiry *in)
{
        uint32_t chips = ask_chips(&in->ask);

        if (in->job != NULL && in->job->training != NULL)
                in->ask.class_chips =
                        job_worker_chips(in->job->training) + job_server_chips(in->job->training);
        else if (in->facts.kind_count == 0)
                in->ask.class_chips = (uint64_t) chips * (in->ask.gang_size > 1 ? in->ask.gang_size : 1);
}

static void ask_question(struct cluster *c, struct inquiry *in, uint64_t now_usec)
{
        const struct ledger_pod *self = ledger_find_pod(c->ledger, in->facts.namespace_, in->facts.name);

        if (self != NULL && strcmp(self->uid, in->facts.uid) != 0)
                self = NULL;
        in->question = (struct question){
                .ledger = c->ledger,
                .rules = &c->options.rules,
                .ask = &in->ask,
                .job = in->job,
                .self = self,
                .created_usec = in->facts.created_usec,
                .now_usec = now_usec,
        };
        question_prepare(&in->question);
}

static int weigh(struct cluster *c, struct inquiry *in)
{
        int r;

        in->weighting.table = c->programs;
        in->weighting.table_count = c->program_count;
        r = weighting_build(c->ledger, in->job, in->question.self, &in->ask, &in->weighting);
        in->question.weighting = r == 0 ? &in->weighting : NULL;
        return r < 0 ? r : 0;
}

/* The rest of a question whose facts are known and whose job is referred to. */
static int prepare(struct cluster *c, uint64_t now_usec, bool keep_lease, struct inquiry *in, struct err *err)
{
        struct gang_request request = { .kinds = in->facts.kinds,
                                        .kind_count = in->facts.kind_count,
                                        .keep = keep_lease };
        int r;

        in->ask = in->facts.ask;
        ledger_chips_only(c->ledger, &in->ask);
        count_class_chips(in);
        ask_question(c, in, now_usec);
        if (weigh(c, in) < 0)
                return err_set(err, -ENOMEM, "no memory to weigh the shares");
        r = gang_prepare(c->ledger, &in->question, in->job, &request);
        if (r < 0)
                return err_set(err, r, "no memory to plan the gang");
        in->leased = r > 0;
        if (in->leased && weigh(c, in) < 0) /* the members planned by now count */
                return err_set(err, -ENOMEM, "no memory to weigh the shares");
        return 0;
}

/* Where a gang's member may go that the store does not know (yet): the others are planned like it. */
static void find_match(struct cluster *c, const json_t *pod, struct inquiry *in)
{
        CLEANUP(text_free) struct text match = { 0 };
        const struct ledger_pod *self = ledger_find_pod(c->ledger, in->facts.namespace_, in->facts.name);

        if (self != NULL && strcmp(self->uid, in->facts.uid) == 0) {
                in->facts.ask.match = self->ask.match;
        } else if (in->job != NULL && in->facts.ask.gang_size > 1) {
                pod_node_match(pod, &match);
                in->match = match.failed ? NODE_MATCH_ANY
                                         : node_match_hold(&c->ledger->matches,
                                                           match.data == NULL ? "" : match.data);
                in->facts.ask.match = in->match;
        }
}

int inquiry_begin(struct cluster *cluster, const json_t *pod, uint64_t now_usec, bool keep_lease,
                  struct inquiry *ret, struct err *err)
{
        int r;

        memset(ret, 0, offsetof(struct inquiry, weighting.rows)); /* rows are many, and counted */
        r = pod_decode(pod, &cluster->options.policy, &cluster->ledger->symbols, false, &ret->facts, err);
        if (r < 0)
                return r;
        if (find_job(cluster, ret) < 0)
                return err_set(err, -ENOMEM, "no memory");
        find_match(cluster, pod, ret);
        return prepare(cluster, now_usec, keep_lease, ret, err);
}

int inquiry_begin_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                      bool keep_lease, struct inquiry *ret, struct err *err)
{
        memset(ret, 0, offsetof(struct inquiry, weighting.rows));
        (void) text_format(ret->namespace_, sizeof(ret->namespace_), "%.*s", (int) (pod->name - pod->key) - 1,
                           pod->key);
        ret->facts = (struct pod_facts){
                .namespace_ = ret->namespace_,
                .name = pod->name,
                .uid = pod->uid,
                .ask = pod->ask,
                .created_usec = pod->created_usec,
                .kind_count = pod->kind_count,
        };
        if (pod->kind_count > 0)
                memcpy(ret->facts.kinds, pod->kinds, pod->kind_count * sizeof(*pod->kinds));
        ret->job = pod->job;
        if (ret->job != NULL)
                ret->job->references++;
        return prepare(cluster, now_usec, keep_lease, ret, err);
}

void inquiry_end(struct cluster *cluster, struct inquiry *inquiry)
{
        if (inquiry->job != NULL)
                ledger_release_job(cluster->ledger, inquiry->job);
        inquiry->job = NULL;
        node_match_release(&cluster->ledger->matches, inquiry->match);
        inquiry->match = NODE_MATCH_ANY;
}

bool inquiry_is_gang(const struct inquiry *inquiry)
{
        return inquiry->job != NULL && inquiry->ask.item_count > 0 &&
               (inquiry->ask.gang_size > 1 || inquiry->facts.kind_count > 0);
}
