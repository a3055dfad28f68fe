/* Members largest first, each onto the best node; then equal nodes, the shortest step or a search where
 * that fails. */
#include "scheduler-extender/decide/gang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/gang_search.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/decide/gang_step.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/neighbours/domains.h"
#include "scheduler-extender/neighbours/neighbour_view.h"
#include "scheduler-extender/neighbours/switches.h"

bool gang_same_shape(const struct request *a, const struct request *b)
{
        return a->item_count == b->item_count &&
               memcmp(a->items, b->items, a->item_count * sizeof(a->items[0])) == 0 &&
               request_same_models(a, b) && request_same_needs(a, b) && a->match == b->match &&
               a->demands == b->demands && a->serves == b->serves;
}

#define GANG_DOMAIN_TRIES 64

struct candidate {
        struct score_tuple tuple;
        struct ledger_node *node;
};

/* A plan does not depend on the order of events. */
static bool goes_before(const struct candidate *a, const struct candidate *b)
{
        return score_order(&a->tuple, a->node, &b->tuple, b->node) < 0;
}

static void sift_down(struct candidate *heap, size_t count, size_t at)
{
        for (;;) {
                size_t least = at, left = 2 * at + 1, right = left + 1;
                struct candidate swap;

                if (left < count && goes_before(&heap[left], &heap[least]))
                        least = left;
                if (right < count && goes_before(&heap[right], &heap[least]))
                        least = right;
                if (least == at)
                        return;
                swap = heap[at];
                heap[at] = heap[least];
                heap[least] = swap;
                at = least;
        }
}

/* Is the node out of the domain where the gang is being planned? */
static bool is_outside(const struct rules_context *ctx, const struct ledger_node *node)
{
        uint32_t domain = ctx->within == 0 ? 0 : neighbour_view_domain(ctx, node);

        return domain != 0 && domain != ctx->within;
}

/* Could a member go there, now or once others have their places? */
static bool is_candidate(const struct rules_context *ctx, const struct ledger_node *node)
{
        enum reason reason;

        if (is_outside(ctx, node) || (ctx->under != 0 && node->switch_domain != ctx->under))
                return false;
        reason = rules_judge(ctx, node);
        return reason == REASON_NONE ||
               (reason == REASON_WRONG_NEIGHBOURS && ctx->request->demands != NEIGHBOURS_NONE);
}

static void heapify(struct candidate *heap, size_t count)
{
        for (size_t i = count / 2; i-- > 0;)
                sift_down(heap, count, i);
}

static size_t collect(const struct rules_context *ctx, const struct ledger *ledger, struct candidate *heap)
{
        size_t count = 0;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (is_candidate(ctx, ledger->nodes[i])) {
                        heap[count].node = ledger->nodes[i];
                        score_tuple(ctx, ledger->nodes[i], &heap[count++].tuple);
                }
        heapify(heap, count);
        return count;
}

/* Members requests[0..count) of one shape, as many as there are places for at once. Nodes that take none now
 * end up behind those that are left: where neighbours matter a place elsewhere may open them again. */
static size_t place_round(struct ledger *ledger, const struct rules_context *ctx, struct ledger_job *job,
                          const struct request *requests, size_t count, struct candidate *heap,
                          size_t candidates)
{
        size_t placed = 0;

        while (placed < count && candidates > 0) {
                struct candidate best = heap[0];

                if (rules_judge(ctx, best.node) != REASON_NONE) {
                        heap[0] = heap[--candidates];
                        heap[candidates] = best;
                } else {
                        if (ledger_jobs_add_slot(ledger, job, best.node, &requests[placed]) < 0)
                                return placed;
                        placed++;
                        if (rules_judge(ctx, best.node) == REASON_NONE)
                                score_tuple(ctx, best.node, &heap[0].tuple);
                }
                sift_down(heap, candidates, 0);
        }
        return placed;
}

/* Return: how many found a place. Slots stay in the ledger. */
static size_t place_alike(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                          const struct request *requests, size_t count, struct candidate *heap)
{
        struct rules_context ctx = *plan;
        size_t candidates, placed = 0, more;

        ctx.request = requests;
        overflow_prepare(&ctx, &ctx.overflow);
        candidates = collect(&ctx, ledger, heap);
        for (;;) {
                more = place_round(ledger, &ctx, job, requests + placed, count - placed, heap, candidates);
                placed += more;
                if (more == 0 || placed == count || requests[0].demands == NEIGHBOURS_NONE)
                        return placed;
                heapify(heap, candidates);
        }
}

static bool is_alike(const struct request *a, const struct request *b)
{
        return a->labels == b->labels && gang_same_shape(a, b);
}

static bool place_greedily(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                           const struct gang_members *members, struct candidate *heap)
{
        for (size_t i = 0; i < members->count;) {
                size_t alike = 1;

                while (i + alike < members->count &&
                       is_alike(&members->requests[i], &members->requests[i + alike]))
                        alike++;
                if (place_alike(ledger, plan, job, &members->requests[i], alike, heap) < alike)
                        return false;
                i += alike;
        }
        return true;
}

static bool count_domains(struct domains *domains, const struct rules_context *ctx,
                          const struct candidate *order, size_t count)
{
        if (!domains_init(domains, ctx))
                return false;
        for (size_t i = 0; i < count; i++)
                domains_add(domains, ctx, order[i].node);
        return domains->enough > 0;
}

/* Chips that all members need, as far as those of one place can be told to be too few. */
static uint64_t chips_wanted(const struct gang_members *members)
{
        const struct request *first = &members->requests[0];
        bool alike = is_alike(first, &members->requests[members->count - 1]);

        return (uint64_t) first->items[0].chips * (alike ? members->count : 1);
}

/* Members that have to be together, and may be anywhere: the domain of the best node first, and only such as
 * have the chips for all where they are alike. Example: zone a has the best node, and one place; greedy puts
 * the first member there, and no other can follow. */
static bool place_together(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                           const struct gang_members *members, struct candidate *heap)
{
        CLEANUP(free_p) struct candidate *order = calloc(ledger->node_count + 1, sizeof(*order));
        CLEANUP(domains_free)
        struct domains domains = { .of = neighbour_view_domain, .wanted = chips_wanted(members) };
        struct rules_context within = *plan;
        size_t count, tries = 0;

        within.request = &members->requests[0];
        if (order == NULL || !neighbour_view_gathers(&within))
                return false;
        count = collect(&within, ledger, order);
        (void) count_domains(&domains, &within, order, count);
        for (; domains.enough > 0 && tries < GANG_DOMAIN_TRIES; sift_down(order, count, 0)) {
                uint32_t domain = neighbour_view_domain(&within, order[0].node);

                order[0] = order[--count];
                if (!domains_take(&domains, domain))
                        continue;
                within.within = domain;
                tries++;
                if (place_greedily(ledger, &within, job, members, heap))
                        return true;
                ledger_jobs_drop_lease(ledger, job);
        }
        return false;
}

/* Alike members fit greedily or not at all, unless it matters who is beside them. */
static bool is_simple(const struct gang_members *members)
{
        const struct request *first = &members->requests[0], *last = &members->requests[members->count - 1];

        return is_alike(first, last) && first->demands == NEIGHBOURS_NONE && first->labels == NEIGHBOURS_NONE;
}

/* Is every slot on a node of a pool and a class as good as those of the best place? */
static bool is_as_good(const struct rules_context *ctx, const struct ledger_job *job,
                       const struct score_tuple *best)
{
        struct score_tuple tuple;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                score_tuple(ctx, slot->node, &tuple);
                if (tuple.key[1] > best->key[1] || tuple.key[2] > best->key[2])
                        return false;
        }
        return true;
}

/* Leaves those of the candidates whose switch has chips enough. @bound: of this one alone, 0 = of all.
 * Return: how many. */
static size_t keep_switched(const struct domains *switches, const struct rules_context *ctx,
                            struct candidate *order, size_t count, uint32_t bound)
{
        size_t kept = 0;

        for (size_t i = 0; i < count; i++)
                if (domains_have(switches, switches_of(ctx, order[i].node)) &&
                    (bound == 0 || order[i].node->switch_domain == bound))
                        order[kept++] = order[i];
        heapify(order, kept);
        return kept;
}

/* Would speed choose among kinds of chips? Then a switch must not: gang_step_search() leaves members one kind
 * each, weighed, and where it has not, nobody knows what a slower one costs. */
static bool is_for_speed(const struct rules_context *ctx, const struct gang_members *members)
{
        bool one_kind = true;

        for (size_t i = 0; i < members->count; i++)
                one_kind = one_kind && members->requests[i].model_count == 1;
        return !one_kind && (ctx->weighting != NULL || score_is_by_speed(ctx));
}

/* All members under one switch, the one of the best node first: what they say to each other passes it alone.
 * Example: nodes a, c under s1, b, d under s2, two members that fill a node: a and c, not a and b. */
static bool place_under_a_switch(struct ledger *ledger, const struct rules_context *plan,
                                 struct ledger_job *job, const struct gang_members *members,
                                 struct candidate *heap)
{
        CLEANUP(free_p) struct candidate *order = NULL;
        CLEANUP(domains_free)
        struct domains switches = { .of = switches_of,
                                    .below = ledger->symbols.top + 1,
                                    .wanted = chips_wanted(members) };
        uint32_t bound = switches_bound(job);
        struct rules_context under = *plan;
        struct score_tuple best;
        size_t count;

        under.request = &members->requests[0];
        if (members->count + (bound != 0) < 2 || !switches_said(ledger) || is_for_speed(&under, members) ||
            (order = calloc(ledger->node_count + 1, sizeof(*order))) == NULL)
                return false;
        count = collect(&under, ledger, order);
        if (!count_domains(&switches, &under, order, count))
                return false;
        best = order[0].tuple;
        count = keep_switched(&switches, &under, order, count, bound);
        for (; count > 0 && switches.enough > 0; sift_down(order, count, 0)) {
                uint32_t domain = switches_of(&under, order[0].node);

                under.under = order[0].node->switch_domain;
                order[0] = order[--count];
                if (!domains_take(&switches, domain))
                        continue;
                if (place_greedily(ledger, &under, job, members, heap) && is_as_good(&under, job, &best)) {
                        job->together = true;
                        return true;
                }
                ledger_jobs_drop_lease(ledger, job);
        }
        return false;
}

static bool place_all(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                      const struct gang_members *members, struct candidate *heap)
{
        if (place_under_a_switch(ledger, plan, job, members, heap) ||
            place_greedily(ledger, plan, job, members, heap))
                return true;
        ledger_jobs_drop_lease(ledger, job);
        if (is_simple(members))
                return false;
        if (place_together(ledger, plan, job, members, heap) ||
            gang_search(ledger, plan, job, members->requests, members->count) > 0)
                return true;
        ledger_jobs_drop_lease(ledger, job);
        return false;
}

struct stage {
        struct ledger *ledger;
        const struct rules_context *plan;
        struct ledger_job *job;
        struct candidate *heap;
};

static bool place_chosen(void *userdata, const struct request *requests, size_t count)
{
        struct stage *stage = userdata;
        struct gang_members members = { .requests = (struct request *) requests, .count = count };

        return place_all(stage->ledger, stage->plan, stage->job, &members, stage->heap);
}

static bool place_for_step(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                           const struct gang_members *members, struct candidate *heap)
{
        struct stage stage = { .ledger = ledger, .plan = plan, .job = job, .heap = heap };
        int r = gang_step_search(plan, job, members->requests, members->count, place_chosen, &stage);

        return r > 0 || (r == 0 && place_all(ledger, plan, job, members, heap));
}

/* Tries every configuration that some node has, the one with the best node first. */
static const struct ledger_node *place_on_equals(struct ledger *ledger, struct rules_context *plan,
                                                 struct ledger_job *job, const struct gang_members *members,
                                                 struct candidate *heap)
{
        CLEANUP(free_p) const struct ledger_node **tried = calloc(ledger->node_count + 1, sizeof(*tried));
        CLEANUP(free_p) struct candidate *order = calloc(ledger->node_count + 1, sizeof(*order));
        size_t tried_count = 0, count;

        if (tried == NULL || order == NULL)
                return NULL;
        plan->request = &members->requests[0];
        for (count = collect(plan, ledger, order); count > 0; sift_down(order, count, 0)) {
                const struct ledger_node *node = order[0].node;
                bool seen = false;

                order[0] = order[--count];
                for (size_t i = 0; i < tried_count && !seen; i++)
                        seen = rules_difference(tried[i], node) == NULL;
                if (seen)
                        continue;
                tried[tried_count++] = node;
                plan->equal_to = node;
                if (place_all(ledger, plan, job, members, heap))
                        return node;
        }
        return NULL;
}

struct wanted {
        uint32_t resource;
        uint64_t chips;
};

/* Return: resources; 0 = they are too many. */
static size_t add_up(const struct gang_members *members, struct wanted *ret, size_t most)
{
        size_t count = 0, at = 0;

        for (size_t m = 0; m < members->count; m++)
                for (size_t i = 0; i < members->requests[m].item_count; i++) {
                        const struct request_item *item = &members->requests[m].items[i];

                        for (at = 0; at < count && ret[at].resource != item->resource;)
                                at++;
                        if (at == most)
                                return 0;
                        if (at == count)
                                ret[count++] = (struct wanted){ .resource = item->resource };
                        ret[at].chips += item->chips;
                }
        return count;
}

/* Are there chips enough, wherever they are? Most gangs that do not fit are told so without a place for each
 * member: all of them ask. */
static bool are_enough(const struct ledger *ledger, const struct gang_members *members)
{
        struct wanted wanted[REQUEST_KINDS_MAX];
        size_t count = add_up(members, wanted, ARRAY_SIZE(wanted));

        for (size_t i = 0; i < count; i++) {
                uint64_t open = 0;

                for (uint32_t n = 0; n < ledger->node_count && open < wanted[i].chips; n++)
                        for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++)
                                if (ledger->nodes[n]->groups[g].resource == wanted[i].resource)
                                        open += ledger_group_open(&ledger->nodes[n]->groups[g]);
                if (open < wanted[i].chips)
                        return false;
        }
        return true;
}

static int plan_members(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                        struct gang_members *members)
{
        CLEANUP(free_p) struct candidate *heap = calloc(ledger->node_count + 1, sizeof(*heap));
        struct rules_context plan = *ctx;
        struct weighting weighting;
        bool fits;

        if (heap == NULL)
                return -ENOMEM;
        plan.planning = plan.unfiltered = true;
        plan.gang_blocked = false;
        if (ctx->weighting != NULL) { /* shares are judged when all members are known */
                weighting = *ctx->weighting;
                for (size_t i = 0; i < weighting.row_count; i++)
                        weighting.rows[i].verdict = REASON_NONE;
                plan.weighting = &weighting;
        }
        gang_members_sort(members);
        if (!are_enough(ledger, members)) {
                fits = false;
        } else if (ctx->request->equal_nodes && ctx->equal_to == NULL) {
                ctx->equal_to = place_on_equals(ledger, &plan, job, members, heap);
                fits = ctx->equal_to != NULL;
        } else {
                fits = place_for_step(ledger, &plan, job, members, heap);
        }
        ctx->gang_blocked = !fits;
        return fits;
}

/* Every member that waits has its slot? Then there is nothing to plan. */
static bool is_covered(const struct rules_context *ctx, const struct ledger_job *job)
{
        bool has_chips = ctx->request->item_count == 0; /* claims have given it some: it needs no slot */

        return job->slot_count + has_chips > ledger_jobs_others(job, ctx->self, LEDGER_JOBS_WAIT);
}

void gang_former_free(struct gang_former *former)
{
        for (size_t i = 0; i < former->count && former->requests != NULL; i++)
                ledger_jobs_release_texts(former->ledger, &former->requests[i]);
        free(former->requests);
        free(former->nodes);
        *former = (struct gang_former){ 0 };
}

int gang_set_aside(struct ledger *ledger, struct ledger_job *job, struct gang_former *ret)
{
        size_t count = 0;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job)
                count++;
        *ret = (struct gang_former){ .ledger = ledger,
                                     .requests = calloc(count + 1, sizeof(*ret->requests)),
                                     .nodes = calloc(count + 1, sizeof(*ret->nodes)),
                                     .ends_usec = job->lease_ends_usec,
                                     .together = job->together };
        if (ret->requests == NULL || ret->nodes == NULL)
                return -ENOMEM;
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                ledger_jobs_refer_texts(ledger, &slot->request);
                ret->requests[ret->count] = slot->request;
                ret->nodes[ret->count++] = slot->node;
        }
        ledger_jobs_drop_lease(ledger, job);
        return 0;
}

void gang_put_back(struct ledger *ledger, struct ledger_job *job, const struct gang_former *former)
{
        if (former->nodes == NULL || former->requests == NULL)
                return; /* nothing was set aside */
        ledger_jobs_drop_lease(ledger, job);
        for (size_t i = former->count; i-- > 0;)
                (void) ledger_jobs_add_slot(ledger, job, former->nodes[i], &former->requests[i]);
        job->lease_ends_usec = former->ends_usec;
        job->together = former->together;
}

/* What was planned for members that are not there shows that all fit; it keeps nothing from others. */
static void drop_absent(struct ledger *ledger, struct ledger_job *job)
{
        for (struct ledger_job_slot *slot = job->slots, *next; slot != NULL; slot = next) {
                next = slot->next_in_job;
                if (slot->request.absent)
                        ledger_jobs_drop_slot(ledger, slot);
        }
}

static int plan_gang(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                     const struct gang_demand *demand)
{
        struct gang_members members = { 0 };
        int r = 0;

        for (int least = 0; least < 2 && r == 0; least++) {
                r = gang_members_list(ctx, job, demand, least > 0, &members);
                if (r == 0 && members.count > 0)
                        r = plan_members(ledger, ctx, job, &members);
                free(members.requests);
                if (!members.fewer)
                        break;
        }
        return r;
}

int gang_try(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
             const struct gang_demand *demand, struct gang_former *former)
{
        int r = gang_set_aside(ledger, job, former);

        return r < 0 ? r : plan_gang(ledger, ctx, job, demand);
}

int gang_prepare(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                 const struct gang_demand *demand)
{
        CLEANUP(gang_former_free) struct gang_former former = { 0 };
        int r;

        gang_share_left(ledger, ctx->rules->lease_usec, ctx->now_usec);
        if ((ctx->request->item_count == 0 && !ctx->request->by_claims) || job == NULL ||
            ctx->request->lacking || (ctx->request->gang_size <= 1 && demand->kind_count == 0) ||
            job->place_count > 0 || /* its controller has planned it */
            (ctx->self != NULL && ctx->self->node != NULL) || is_covered(ctx, job))
                return 0;
        ctx->gang_paused = job->slots == NULL && gang_share_paused(ledger, job, ctx->now_usec);
        if (ctx->gang_paused)
                return 0;
        r = gang_try(ledger, ctx, job, demand, &former);
        if (r > 0) {
                drop_absent(ledger, job);
                ctx->gang_paused = !gang_share_allows(ctx, job);
        }
        if (r <= 0 || ctx->gang_paused || !demand->keep) {
                gang_put_back(ledger, job, &former);
                return r < 0 ? r : 0;
        }
        job->gave_way_usec = 0;
        job->lease_ends_usec = former.count > 0 ? former.ends_usec : ctx->now_usec + ctx->rules->lease_usec;
        return 1;
}

size_t gang_expire(struct ledger *ledger, const struct rules *rules, uint64_t now_usec)
{
        size_t expired = 0;

        gang_share_left(ledger, rules->lease_usec, now_usec);
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS && ledger->slot_total > 0; i++)
                for (struct ledger_job *job = ledger->jobs[i], *next; job != NULL; job = next) {
                        next = job->next;
                        if (job->slots == NULL || job->lease_ends_usec > now_usec)
                                continue;
                        gang_share_unused(ledger, job, rules->lease_usec, now_usec);
                        ledger_jobs_drop_lease(ledger, job);
                        expired++;
                }
        return expired;
}

size_t gang_lease_count(const struct ledger *ledger)
{
        size_t count = 0;

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS && ledger->slot_total > 0; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        count += job->slots != NULL;
        return count;
}
