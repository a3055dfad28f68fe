/* A pod is judged, a gang is planned, the places of a plan are filled one by one. */
#include "scheduler-extender/emergency/asked.h"

#include <errno.h>
#include <stdlib.h>

#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

struct asked asked_of_plan(struct ledger *ledger, const struct rules *rules, struct ledger_job *job,
                           uint64_t now_usec)
{
        return (struct asked){
                .context = { .ledger = ledger, .rules = rules, .job = job, .now_usec = now_usec },
                .job = job,
                .planned = true,
        };
}

struct ledger_job *asked_gang(const struct asked *asked)
{
        return !asked->planned && asked->job != NULL && asked->job->place_count == 0 &&
                               (asked->context.request->gang_size > 1 || asked->demand.kind_count > 0)
                       ? asked->job
                       : NULL;
}

struct rules_context asked_context(const struct asked *asked, const struct request *member)
{
        struct rules_context context = asked->context;

        context.request = member;
        context.planning = asked->planned || asked_gang(asked) != NULL;
        context.gang_blocked = context.gang_paused = false;
        overflow_prepare(&context, &context.overflow);
        return context;
}

static bool is_asked(const struct asked *asked, const struct ledger_job_place *place)
{
        return place->slot != NULL && place->request.emergency &&
               (place->slot->node->reserved || asked->context.rules->takes == LEDGER_PODS_TAKES_PREEMPTIBLE);
}

/* Where the plan leases; the others of its places are filled, or wait for other things. */
static int plan_fits(struct trial *trial, const struct asked *asked)
{
        struct ledger_job *job = asked->job;
        struct ledger_node **nodes = calloc(job->place_count + 1, sizeof(struct ledger_node *));
        size_t mark = trial->count;
        int r;

        if (nodes == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < job->place_count; i++)
                nodes[i] = is_asked(asked, &job->places[i]) ? job->places[i].slot->node : NULL;
        r = trial_unlease(trial, job) < 0 ? -ENOMEM : 1;
        for (size_t i = 0; i < job->place_count && r > 0; i++) {
                struct rules_context context;

                if (nodes[i] == NULL)
                        continue;
                context = asked_context(asked, &job->places[i].request);
                r = rules_judge(&context, nodes[i]) == REASON_NONE;
                if (r > 0 && ledger_jobs_add_slot(trial->ledger, job, nodes[i], context.request) < 0)
                        r = -ENOMEM;
        }
        trial_undo(trial, mark);
        free(nodes);
        return r;
}

static struct ledger_node *best_node(const struct ledger *ledger, const struct rules_context *context)
{
        struct ledger_node *best = NULL;
        struct score_tuple tuple, least;

        for (uint32_t i = 0; i < ledger->node_count; i++) {
                struct ledger_node *node = ledger->nodes[i];

                if (rules_judge(context, node) != REASON_NONE)
                        continue;
                score_tuple(context, node, &tuple);
                if (best != NULL && score_order(&tuple, node, &least, best) > 0)
                        continue;
                best = node;
                least = tuple;
        }
        return best;
}

static bool pod_fits(const struct ledger *ledger, const struct rules_context *context)
{
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (rules_judge(context, ledger->nodes[i]) == REASON_NONE)
                        return true;
        return false;
}

int asked_fits(struct trial *trial, const struct asked *asked)
{
        struct rules_context context = asked->context;
        struct gang_demand demand = asked->demand;

        if (asked->planned)
                return plan_fits(trial, asked);
        context.gang_blocked = context.gang_paused = false;
        context.equal_to = NULL;
        rules_prepare(&context);
        demand.keep = false;
        if (asked_gang(asked) != NULL && gang_prepare(trial->ledger, &context, asked->job, &demand) < 0)
                return -ENOMEM;
        return !context.gang_blocked && !context.gang_paused && pod_fits(trial->ledger, &context);
}

void asked_needs_free(struct asked_needs *needs)
{
        free(needs->members.requests);
        free(needs->list);
}

static void add_need(struct asked_needs *needs, const struct request *request, struct ledger_node *only,
                     size_t most)
{
        struct asked_need *last = needs->count > 0 ? &needs->list[needs->count - 1] : NULL;

        if (last == NULL || last->only != only || last->count == most ||
            !gang_same_shape(last->request, request)) {
                last = &needs->list[needs->count++];
                *last = (struct asked_need){ .request = request, .only = only };
        }
        last->count++;
}

static int needs_of_gang(const struct asked *asked, size_t most, struct asked_needs *ret)
{
        int r = gang_members_list(&asked->context, asked->job, &asked->demand, false, &ret->members);

        if (r < 0)
                return r;
        gang_members_sort(&ret->members);
        ret->list = calloc(ret->members.count + 1, sizeof(*ret->list));
        for (size_t i = 0; ret->list != NULL && i < ret->members.count; i++)
                add_need(ret, &ret->members.requests[i], NULL, most);
        return ret->list == NULL ? -ENOMEM : 0;
}

int asked_needs(const struct asked *asked, size_t most, struct asked_needs *ret)
{
        size_t places = asked->planned ? asked->job->place_count : 1;

        *ret = (struct asked_needs){ 0 };
        if (asked_gang(asked) != NULL)
                return needs_of_gang(asked, most, ret);
        ret->list = calloc(places, sizeof(*ret->list));
        if (ret->list == NULL)
                return -ENOMEM;
        if (!asked->planned)
                add_need(ret, asked->context.request, NULL, most);
        for (size_t i = 0; asked->planned && i < places; i++)
                if (is_asked(asked, &asked->job->places[i]))
                        add_need(ret, &asked->job->places[i].request, asked->job->places[i].slot->node, most);
        return 0;
}

bool asked_could_take(const struct asked *asked, const struct asked_needs *needs,
                      const struct ledger_node *node)
{
        for (size_t i = 0; i < needs->count; i++) {
                struct rules_context context = asked->context;
                enum reason reason;

                if (needs->list[i].only != NULL) {
                        if (needs->list[i].only == node)
                                return true;
                        continue;
                }
                context.request = needs->list[i].request;
                context.gang_blocked = context.gang_paused = false;
                reason = rules_judge(&context, node);
                if (reason == REASON_NONE || !reason_text(reason)->unresolvable)
                        return true;
        }
        return false;
}

int asked_take(struct trial *trial, const struct asked *asked)
{
        struct rules_context context = asked->context;
        struct ledger_node *node;

        if (asked->planned)
                return 1; /* it leases its chips already */
        context.gang_blocked = context.gang_paused = false;
        context.equal_to = NULL;
        rules_prepare(&context);
        if (asked_gang(asked) != NULL)
                return trial_lease(trial, &context, asked->job, &asked->demand);
        node = best_node(trial->ledger, &context);
        if (node == NULL)
                return 0;
        return trial_attach(trial, (struct ledger_pod *) context.self, node) < 0 ? -ENOMEM : 1;
}

/* Members and nodes are in one order: that of members by size. */
static int lease_on(struct trial *trial, const struct asked *asked, const struct gang_members *members,
                    struct ledger_node *const *nodes)
{
        struct ledger_job *job = asked->job;
        struct rules_context context = { .request = NULL };
        int r = trial_unlease(trial, job) < 0 ? -ENOMEM : 1;

        for (size_t i = 0; i < members->count && r > 0; i++) {
                const struct request *request = &members->requests[i];

                if (context.request == NULL || !gang_same_shape(context.request, request))
                        context = asked_context(asked, request);
                context.request = request;
                context.weighting = NULL;
                context.equal_to = request->equal_nodes ? nodes[0] : NULL;
                r = nodes[i] != NULL && !request->absent && rules_judge(&context, nodes[i]) == REASON_NONE;
                if (r > 0 && ledger_jobs_add_slot(trial->ledger, job, nodes[i], request) < 0)
                        r = -ENOMEM;
        }
        return r;
}

int asked_take_on(struct trial *trial, const struct asked *asked, struct ledger_node *const *nodes,
                  size_t count)
{
        struct gang_members members = { 0 };
        size_t mark = trial->count;
        int r;

        if (asked_gang(asked) == NULL) {
                struct rules_context context = asked_context(asked, asked->context.request);

                if (count != 1 || nodes[0] == NULL || rules_judge(&context, nodes[0]) != REASON_NONE)
                        return 0;
                return trial_attach(trial, (struct ledger_pod *) context.self, nodes[0]) < 0 ? -ENOMEM : 1;
        }
        r = gang_members_list(&asked->context, asked->job, &asked->demand, false, &members);
        if (r == 0 && members.count == count) {
                gang_members_sort(&members);
                r = lease_on(trial, asked, &members, nodes);
        }
        free(members.requests);
        if (r <= 0)
                trial_undo(trial, mark);
        return r;
}
