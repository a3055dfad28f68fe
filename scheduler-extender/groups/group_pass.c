/* What was planned and answered stands on the pods of the group, as an index of a node. Indexes are good
 * until a node goes: the pass is then over. */
#include "scheduler-extender/groups/group_pass.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static bool is_on(const struct ledger *ledger, const struct ledger_job *job, uint64_t now_usec)
{
        return now_usec < job->pass_ends_usec && now_usec + GROUP_PASS_USEC >= job->pass_ends_usec &&
               job->pass_nodes_gone == ledger->roster.gone;
}

static void forget(struct ledger_job *job)
{
        for (struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job) {
                pod->pass_node = 0;
                pod->pass_answered = false;
        }
        job->pass_ends_usec = 0;
        job->pass_failed = false;
}

static void keep(const struct ledger *ledger, struct ledger_job *job, uint64_t now_usec)
{
        job->pass_ends_usec = now_usec + GROUP_PASS_USEC;
        job->pass_nodes_gone = ledger->roster.gone;
}

/* As slots are: of chips alone. */
static struct request chips_of(const struct ledger *ledger, const struct ledger_pod *pod)
{
        struct request request = pod->request;

        ledger_chips_only(ledger, &request);
        request.labels = pod->labels;
        return request;
}

static bool suits(const struct ledger *ledger, const struct ledger_pod *pod,
                  const struct ledger_job_slot *slot)
{
        struct request own = chips_of(ledger, pod);
        const struct ledger_node *node = slot->node;

        return own.item_count == slot->request.item_count &&
               memcmp(own.items, slot->request.items, own.item_count * sizeof(own.items[0])) == 0 &&
               request_same_models(&own, &slot->request) &&
               node_match_takes(&ledger->matches, pod->request.match, node->name, node->index, &node->traits);
}

/* Of the plan to those who wait; who is alike has no claim to one place rather than another. */
static void give_places(const struct ledger *ledger, struct ledger_job *job)
{
        struct ledger_pod *first = job->pods;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                while (first != NULL && (first->pass_node != 0 || !ledger_pods_waits(first)))
                        first = first->next_in_job;
                for (struct ledger_pod *pod = first; pod != NULL; pod = pod->next_in_job) {
                        if (pod->pass_node != 0 || !ledger_pods_waits(pod) || !suits(ledger, pod, slot))
                                continue;
                        pod->pass_node = slot->node->index + 1;
                        break;
                }
        }
}

static int plan(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                const struct gang_demand *demand)
{
        CLEANUP(gang_former_free) struct gang_former former = { 0 };
        int r = gang_try(ledger, ctx, job, demand, &former);

        forget(job);
        if (r > 0) {
                give_places(ledger, job);
                keep(ledger, job, ctx->now_usec);
        }
        gang_put_back(ledger, job, &former);
        return r;
}

/* Those answered before take their places until the member is answered, too. */
static int count_answered(struct ledger *ledger, const struct rules_context *ctx, struct ledger_job *job)
{
        for (struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job) {
                struct request request = chips_of(ledger, pod);

                if (pod != ctx->self && pod->pass_answered && ledger_pods_waits(pod) &&
                    ledger_jobs_add_slot(ledger, job, ledger->nodes[pod->pass_node - 1], &request) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int group_pass_begin(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                     const struct gang_demand *demand)
{
        uint64_t generation = ledger->generation;
        int r = 0;

        if (ctx->self == NULL || ctx->self->node != NULL || ctx->self->job != job ||
            ctx->request->item_count == 0 || job->slots != NULL)
                return 0;
        if (!is_on(ledger, job, ctx->now_usec) || ctx->self->pass_answered || job->pass_failed)
                r = plan(ledger, ctx, job, demand);
        if (r >= 0 && !ctx->gang_blocked)
                r = count_answered(ledger, ctx, job);
        if (r >= 0 && job->slots != NULL) {
                ctx->planning = true; /* its own slots are its fellows' */
                rules_prepare(ctx);
        }
        if (r < 0)
                ledger_jobs_drop_lease(ledger, job);
        ledger->generation = generation; /* trying on is no change */
        return r < 0 ? r : !ctx->gang_blocked;
}

int group_pass_choose(struct ledger *ledger, const struct rules_context *ctx, const uint32_t *nodes,
                      size_t count, uint8_t *verdicts)
{
        struct ledger_pod *self = ledger_pods_find(ledger, ctx->namespace_, ctx->self->name);
        struct ledger_job *job = self->job;
        size_t best = count;
        int r;

        for (size_t i = 0; i < count && best == count; i++)
                if (nodes[i] != ROSTER_NONE && nodes[i] + 1 == self->pass_node && verdicts[i] == REASON_NONE)
                        best = i;
        for (size_t i = 0; i < count && best < count; i++)
                if (i != best && verdicts[i] == REASON_NONE)
                        verdicts[i] = CANDIDATE_LEFT_OUT;
        r = best < count ? 0 : candidates_shorten(ctx, ledger, nodes, count, 1, verdicts);
        self->pass_node = 0;
        for (size_t i = 0; i < count && r == 0; i++)
                if (nodes[i] != ROSTER_NONE && verdicts[i] == REASON_NONE)
                        self->pass_node = nodes[i] + 1;
        self->pass_answered = self->pass_node != 0;
        keep(ledger, job, ctx->now_usec);
        return r;
}

void group_pass_end(struct ledger *ledger, struct ledger_job *job)
{
        uint64_t generation = ledger->generation;

        ledger_jobs_drop_lease(ledger, job);
        ledger->generation = generation;
}

/* Return: 1 = all that were answered have slots; 0 = one has no room there; -ENOMEM. */
static int lease_all(struct ledger *ledger, const struct rules_context *ctx, struct ledger_job *job)
{
        for (struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job) {
                struct ledger_node *node = pod->pass_answered ? ledger->nodes[pod->pass_node - 1] : NULL;
                struct request request = chips_of(ledger, pod);
                struct rules_context one = { .ledger = ledger,
                                             .rules = ctx->rules,
                                             .request = &request,
                                             .job = job,
                                             .self = pod,
                                             .namespace_ = ctx->namespace_,
                                             .created_usec = pod->created_usec,
                                             .now_usec = ctx->now_usec,
                                             .planning = true };

                if (node == NULL || !ledger_pods_waits(pod))
                        continue;
                rules_prepare(&one);
                if (rules_judge(&one, node) != REASON_NONE)
                        return 0;
                if (ledger_jobs_add_slot(ledger, job, node, &request) < 0)
                        return -ENOMEM;
        }
        return 1;
}

int group_pass_commit(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job)
{
        bool paused = gang_share_paused(ledger, job, ctx->now_usec);
        int r;

        if (ctx->self == NULL || !ctx->self->pass_answered || job->slots != NULL ||
            !is_on(ledger, job, ctx->now_usec))
                return 0;
        r = job->pass_failed ? 0 : lease_all(ledger, ctx, job);
        ctx->gang_blocked = job->pass_failed = r == 0;
        if (r > 0 && (paused || !gang_share_allows(ctx, job)))
                r = 0;
        if (r <= 0)
                ledger_jobs_drop_lease(ledger, job);
        job->lease_ends_usec = ctx->now_usec + ctx->rules->lease_usec;
        if (!job->pass_failed) /* else its fellows' binds are on their way, too */
                forget(job);
        return r;
}
