/* The reserve taken back: one look at all emergencies, the oldest first. Whatever one of them needs is taken
 * before the next is planned, on a ledger where all that is decided has come true; then that is undone, the
 * chips are held, and all borrowers that must go are asked at once, so that N emergencies wait one grace
 * period and not N. */
#include "scheduler-extender/reserve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/emergency/take_back.h"
#include "scheduler-extender/evict.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

/* Chips that are kept for an emergency, or for one member of a gang. */
struct hold {
        struct ledger_pod *pod;
        struct ledger_node *node;
        struct request_item chips;
        size_t emergency; /* its number: older ones have lower ones */
};

struct pass {
        struct extender *x;
        struct ledger *ledger;
        struct trial trial;
        struct victim_rules rules;
        struct victim_list victims;
        struct evict_for *served; /* owned; for whom the victims go */
        size_t served_count, served_capacity;
        struct hold *holds; /* owned */
        size_t hold_count, hold_capacity, emergencies, steps;
        struct ledger_node **held; /* owned: nodes with chips that are held as for others who wait */
        size_t held_count;
        struct request hopeless; /* no set helps one that asks for this; item_count 0 = nothing is known */
        uint32_t hopeless_labels, hopeless_devices; /* ... and is like this */
};

/* Who is on his way out is gone. */
static int leave(struct pass *pass)
{
        int r = 0;

        for (uint32_t i = 0; i < pass->ledger->node_count; i++)
                for (struct ledger_pod *pod = pass->ledger->nodes[i]->pods, *next; pod != NULL && r == 0;
                     pod = next) {
                        next = pod->next_on_node;
                        if (victim_leaves(&pass->rules, pod))
                                r = trial_detach(&pass->trial, pod);
                        else if (backfill_overdue(pod, pass->rules.now_usec) &&
                                 !victim_spared(pod, pass->rules.now_usec))
                                evict_overdue(pass->x, pod);
                }
        return r;
}

static int add_hold(struct pass *pass, const struct ledger_pod *pod, struct ledger_node *node,
                    struct request_item chips)
{
        struct hold *hold = array_add(&pass->holds, &pass->hold_count, &pass->hold_capacity, sizeof(*hold));

        if (hold == NULL)
                return -ENOMEM;
        *hold = (struct hold){
                .pod = (struct ledger_pod *) pod, .node = node, .chips = chips, .emergency = pass->emergencies
        };
        return 0;
}

/* The job's next pod that waits; NULL = none. */
static const struct ledger_pod *next_waiting(const struct ledger_pod *pod)
{
        while (pod != NULL && !ledger_pods_waits(pod))
                pod = pod->next_in_job;
        return pod;
}

/* Where it is in the trial its chips are held; a hold needs a pod, and a member that is not there has none.
 */
static int hold_places(struct pass *pass, const struct asked *asked)
{
        const struct ledger_pod *self = asked->context.self, *member;
        const struct ledger_job *gang = asked_gang(asked);
        int r = 0;

        pass->emergencies++;
        if (gang == NULL)
                return add_hold(pass, self, self->node, self->request.items[0]);
        member = next_waiting(gang->pods);
        for (const struct ledger_job_slot *slot = gang->slots; slot != NULL && r == 0;
             slot = slot->next_in_job) {
                r = add_hold(pass, member != NULL ? member : self, slot->node, slot->request.items[0]);
                member = member != NULL ? next_waiting(member->next_in_job) : NULL;
        }
        return r;
}

/* Where it could start soonest by itself is of no interest any more. */
static void drop_reservations(struct pass *pass, const struct asked *asked)
{
        const struct ledger_job *gang = asked_gang(asked);

        for (size_t i = 0; i < pass->held_count && pass->ledger->backfill_total > 0; i++) {
                if (gang == NULL)
                        ledger_pods_drop_reservations_on(pass->ledger, asked->context.self, pass->held[i]);
                for (const struct ledger_pod *pod = gang != NULL ? gang->pods : NULL; pod != NULL;
                     pod = pod->next_in_job)
                        ledger_pods_drop_reservations_on(pass->ledger, pod, pass->held[i]);
        }
}

/* They are few, and there may be many emergencies. */
static int collect_held(struct pass *pass)
{
        pass->held = calloc(pass->ledger->backfill_total + 1, sizeof(struct ledger_node *));
        if (pass->held == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < pass->ledger->node_count && pass->ledger->backfill_total > 0; i++)
                if (pass->ledger->nodes[i]->backfills != NULL)
                        pass->held[pass->held_count++] = pass->ledger->nodes[i];
        return 0;
}

static int add_served(struct pass *pass, const struct asked *asked)
{
        const struct ledger_pod *self = asked->context.self;
        struct evict_for *served =
                array_add(&pass->served, &pass->served_count, &pass->served_capacity, sizeof(*served));

        if (served == NULL)
                return -ENOMEM;
        *served = asked->planned ? (struct evict_for){ .key = asked->job->key }
                                 : (struct evict_for){ .key = self->key, .uid = self->uid };
        return 0;
}

/* Those of the plan go and the emergency comes: what is planned after it finds it so. 1 = done; 0 = nothing
 * has changed; -ENOMEM. */
static int carry_out(struct pass *pass, const struct asked *asked, const struct take_back *plan)
{
        size_t mark = pass->trial.count;
        int r = 0;

        for (size_t i = 0; i < plan->victims.count && r == 0; i++)
                r = trial_detach(&pass->trial, plan->victims.pods[i]);
        r = r == 0 ? asked_take(&pass->trial, asked) : r;
        if (r <= 0) {
                trial_undo(&pass->trial, mark);
                return r;
        }
        for (size_t i = 0; i < plan->victims.count && r > 0; i++)
                r = victim_list_add(&pass->victims, plan->victims.pods[i]) < 0 ? -ENOMEM : 1;
        if (r > 0 && plan->victims.count > 0 && add_served(pass, asked) < 0)
                r = -ENOMEM;
        return r;
}

/* Chips that somebody went for are held for the whole of rules.hold_usec, from when they are free: who has an
 * hour to go would else go for one whose time was over. */
static void begin_hold(const struct asked *asked, uint64_t free_usec)
{
        struct ledger_pod *self = (struct ledger_pod *) asked->context.self;
        const struct ledger_job *gang = asked_gang(asked);

        self->waited_usec = free_usec;
        for (struct ledger_pod *pod = gang != NULL ? gang->pods : NULL; pod != NULL; pod = pod->next_in_job)
                if (ledger_pods_waits(pod))
                        pod->waited_usec = free_usec;
}

static void tell(struct pass *pass, const struct asked *asked, const char *key, const struct take_back *plan)
{
        pass->x->metrics.take_backs++;
        pass->x->metrics.chip_seconds_lost += victim_chip_seconds(plan->cost);
        pass->x->metrics.regular_chips_taken += plan->regular_chips;
        extender_log(pass->x, LOG_NOTICE, "take-back",
                     "%s=%s victims=%zu chips=%u regular-chips=%u lost-chip-hours=%.2f "
                     "least-lost-chip-hours=%.2f steps=%zu",
                     asked->planned ? "job" : "pod", key, plan->victims.count, plan->chips,
                     plan->regular_chips, (double) victim_chip_seconds(plan->cost) / 3600,
                     (double) victim_chip_seconds(plan->bound) / 3600, plan->steps);
}

static int by_size(const void *a, const void *b)
{
        const struct ledger_pod *x = *(struct ledger_pod *const *) a, *y = *(struct ledger_pod *const *) b;
        uint32_t p = request_chips(&x->request), q = request_chips(&y->request);

        return p != q ? (p < q) - (p > q) : (x->served_on > y->served_on) - (x->served_on < y->served_on);
}

static struct ledger_node *served_on(const struct ledger *ledger, const struct ledger_pod *pod)
{
        return pod->served_on == 0 || pod->served_on > ledger->node_count ? NULL
                                                                          : ledger->nodes[pod->served_on - 1];
}

/* Where it was to start at the last look it still will, if that fits: so a look at many who have their places
 * costs little, and comes to those that have none. An index may be another node's by now, and fits or not.
 * Return: 1 = done; 0 = it is to be planned; -ENOMEM. */
static int serve_again(struct pass *pass, const struct asked *asked)
{
        struct ledger_pod *self = (struct ledger_pod *) asked->context.self;
        const struct ledger_job *gang = asked_gang(asked);
        CLEANUP(free_p) struct ledger_pod **members = NULL;
        CLEANUP(free_p) struct ledger_node **nodes = NULL;
        size_t count = 0;
        int r;

        if (asked->planned || self->served_on == 0 || (asked->job != NULL && asked->job->slots != NULL))
                return 0;
        members = calloc(gang != NULL ? gang->pod_count + 1 : 1, sizeof(struct ledger_pod *));
        nodes = calloc(gang != NULL ? gang->pod_count + 1 : 1, sizeof(struct ledger_node *));
        if (members == NULL || nodes == NULL)
                return -ENOMEM;
        if (gang == NULL)
                members[count++] = self;
        for (struct ledger_pod *pod = gang != NULL ? gang->pods : NULL; pod != NULL; pod = pod->next_in_job)
                if (ledger_pods_waits(pod))
                        members[count++] = pod;
        qsort(members, count, sizeof(members[0]), by_size);
        for (size_t i = 0; i < count; i++)
                nodes[i] = served_on(pass->ledger, members[i]);
        pass->steps += (1 + count) * 4 * TRIAL_NODE_STEPS;
        r = asked_take_on(&pass->trial, asked, nodes, count);
        if (r > 0) {
                drop_reservations(pass, asked);
                r = hold_places(pass, asked) < 0 ? -ENOMEM : 1;
        }
        return r;
}

/* Return: 1 = it has its chips; 0 = nothing helps it; -ENOMEM. */
static int serve(struct pass *pass, const struct asked *asked, const char *key)
{
        bool leased = asked->job != NULL && asked->job->slots != NULL;
        struct take_back plan;
        int r = serve_again(pass, asked);

        if (r != 0)
                return r;
        r = take_back_plan(&pass->trial, asked, &pass->rules, &plan);
        pass->steps += 1 + plan.steps;
        if (r == 0 && plan.victims.count == 0 && leased)
                r = 1; /* its chips are its own already */
        else
                r = r < 0 ? r : r > 0 ? 0 : carry_out(pass, asked, &plan);
        if (r > 0 && plan.victims.count > 0)
                tell(pass, asked, key, &plan);
        if (r > 0 && !asked->planned && (plan.victims.count > 0 || !leased)) {
                drop_reservations(pass, asked);
                if (plan.victims.count > 0)
                        begin_hold(asked, pass->rules.now_usec + pass->rules.grace_usec);
                r = hold_places(pass, asked) < 0 ? -ENOMEM : 1;
        }
        take_back_free(&plan);
        return r;
}

bool reserve_plan_waits(const struct ledger_job *job)
{
        return job != NULL && job->place_count > 0 && job->slots != NULL;
}

static int serve_plan(struct pass *pass, struct ledger_job *job)
{
        struct asked asked =
                asked_of_plan(pass->ledger, cluster_rules(pass->x->cluster), job, pass->rules.now_usec);

        job->looked_at = true;
        return serve(pass, &asked, job->key);
}

static void begin_round(struct ledger *ledger)
{
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        job->looked_at = false;
}

/* A TrainingJob's plan leases chips that borrowers hold: they stay its own, so that where the steps did not
 * last the next look goes on with those that had no turn. Return: 1 = all had theirs; 0; -ENOMEM. */
static int serve_plans(struct pass *pass)
{
        int r = 0;

        if (pass->ledger->slot_total == 0)
                return 1;
        if (!pass->x->plans_go_on)
                begin_round(pass->ledger);
        pass->x->plans_go_on = true;
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (struct ledger_job *job = pass->ledger->jobs[i]; job != NULL && r >= 0; job = job->next) {
                        if (!reserve_plan_waits(job) || job->looked_at)
                                continue;
                        if (pass->steps > pass->x->reserve_steps)
                                return 0;
                        r = serve_plan(pass, job);
                }
        pass->x->plans_go_on = false;
        return r < 0 ? r : 1;
}

/* A gang is served once, with its oldest member. */
static bool is_first(const struct ledger_pod *pod)
{
        if (pod->job == NULL || (pod->request.gang_size <= 1 && pod->kind_count == 0))
                return true;
        for (const struct ledger_pod *other = pod->job->pods; other != NULL; other = other->next_in_job)
                if (other != pod && other->request.emergency && ledger_pods_waits(other) &&
                    ledger_pods_compare(other, pod) < 0)
                        return false;
        return true;
}

static bool waits(const struct ledger *ledger, const struct ledger_pod *pod)
{
        return pod->request.emergency && !pod->request.by_claims && ledger_pods_waits(pod) && is_first(pod) &&
               ledger_jobs_planning(ledger, pod->key) == NULL; /* its plan is served */
}

/* Was no help found for one that asks for the same, and of which all demands speak alike? */
static bool is_hopeless(const struct pass *pass, const struct ledger_pod *pod, const struct pod_request *in)
{
        return pod->job == NULL && in->devices == pass->hopeless_devices &&
               memcmp(&pass->hopeless, &in->request, sizeof(pass->hopeless)) == 0 &&
               neighbours_alike(&pass->ledger->neighbours, pass->hopeless_labels, pod->labels);
}

/* Return: as serve() */
static int serve_pod(struct pass *pass, struct ledger_pod *pod)
{
        struct pod_request pod_request;
        int r = pod_request_begin_trial(pass->x->cluster, pod, pass->rules.now_usec, &pod_request);

        if (r == 0 && pod_request.request.item_count > 0 && !pod_request.request.lacking &&
            !is_hopeless(pass, pod, &pod_request)) {
                struct asked asked = { .context = pod_request.context,
                                       .job = pod_request.job,
                                       .demand = { .kinds = pod_request.facts.kinds,
                                                   .kind_count = pod_request.facts.kind_count } };

                asked.context.unfiltered = true;
                r = serve(pass, &asked, pod->key);
                if (r == 0 && pod->job == NULL) {
                        pass->hopeless = pod_request.request;
                        pass->hopeless_labels = pod->labels;
                        pass->hopeless_devices = pod_request.devices;
                }
        }
        pod_request_end(pass->x->cluster, &pod_request);
        return r;
}

static int by_age(const void *a, const void *b)
{
        return ledger_pods_compare(*(struct ledger_pod *const *) a, *(struct ledger_pod *const *) b);
}

/* The oldest first. Where the last pass ended for want of steps this one goes on: whom nothing helped then is
 * not looked at again before all have had their turn. Return: 1 = all were served; 0 = the steps did not
 * last; -ENOMEM. */
static int serve_pods(struct pass *pass)
{
        bool goes_on = pass->x->reserve_goes_on;
        CLEANUP(free_p)
        struct ledger_pod **waiting = malloc((pass->ledger->pending_count + 1) * sizeof(struct ledger_pod *));
        size_t count = 0, most = pass->steps + pass->x->reserve_steps; /* beside those of the plans */
        int r = 0;

        if (waiting == NULL)
                return -ENOMEM;
        for (struct ledger_pod *pod = pass->ledger->pending; pod != NULL; pod = pod->next_pending) {
                pod->unhelped = pod->unhelped && goes_on;
                if (waits(pass->ledger, pod))
                        waiting[count++] = pod;
        }
        qsort(waiting, count, sizeof(waiting[0]), by_age);
        pass->x->emergencies = count;
        pass->x->reserve_goes_on = true;
        for (size_t i = 0; i < count && r >= 0; i++) {
                if (pass->steps > most)
                        return 0;
                if (waiting[i]->unhelped ||
                    backfill_had_its_time(waiting[i], cluster_rules(pass->x->cluster), pass->rules.now_usec))
                        continue;
                r = serve_pod(pass, waiting[i]);
                waiting[i]->unhelped = r == 0;
        }
        pass->x->reserve_goes_on = false;
        return r < 0 ? r : 1;
}

static uint32_t open_chips(const struct ledger_node *node, uint32_t resource)
{
        uint32_t open = 0;

        for (uint32_t g = 0; g < node->group_count; g++)
                if (node->groups[g].resource == resource)
                        open += ledger_group_open(&node->groups[g]);
        return open;
}

/* Node by node, on each the oldest first. */
static int by_node(const void *a, const void *b)
{
        const struct hold *x = a, *y = b;

        if (x->node != y->node)
                return x->node->index < y->node->index ? -1 : 1;
        return (x->emergency > y->emergency) - (x->emergency < y->emergency);
}

/* What is open there, less what this emergency and the older ones ask for there, is free for the younger.
 * @first: of the holds there */
static void hold(struct pass *pass, const struct hold *first, const struct hold *hold)
{
        const struct hold *end = pass->holds + pass->hold_count;
        uint32_t resource = hold->chips.resource;
        uint32_t open = open_chips(hold->node, resource), asked = 0;

        for (const struct hold *h = first;
             h < end && h->node == hold->node && h->emergency <= hold->emergency; h++)
                asked += h->chips.resource == resource ? h->chips.chips : 0;
        if (hold->pod->waited_usec == 0)
                hold->pod->waited_usec = pass->rules.now_usec;
        hold->pod->served = true;
        hold->pod->served_on = hold->node->index + 1;
        (void) backfill_add(pass->ledger, hold->node,
                            &(struct ledger_backfill){ .pod = hold->pod,
                                                       .resource = resource,
                                                       .start_usec = UINT64_MAX,
                                                       .spare = open > asked ? open - asked : 0 });
}

/* The trial is over: what was decided is done. */
static void finish(struct pass *pass)
{
        const struct hold *first = pass->holds;

        if (pass->hold_count > 0)
                qsort(pass->holds, pass->hold_count, sizeof(pass->holds[0]), by_node);
        for (size_t i = 0; i < pass->hold_count; i++) {
                const struct hold *h = &pass->holds[i];

                first = h->node == first->node ? first : h;
                hold(pass, first, h);
        }
        evict_all(pass->x, pass->victims.pods, pass->victims.count, pass->served, pass->served_count,
                  pass->rules.now_usec);
}

/* Most of the time nobody does, and none of the pods that run need be looked at. */
static bool anybody_asks(struct ledger *ledger)
{
        bool any = ledger->slot_total > 0;

        for (struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending) {
                pod->served = false;
                any = any || pod->request.emergency;
        }
        return any;
}

bool reserve_update(struct extender *x, uint64_t now_usec)
{
        struct pass pass = { .x = x,
                             .ledger = cluster_ledger(x->cluster),
                             .rules = { .takes = cluster_rules(x->cluster)->takes,
                                        .now_usec = now_usec,
                                        .grace_usec = cluster_rules(x->cluster)->grace_usec } };
        int r, plans;

        if (pass.rules.takes == LEDGER_PODS_TAKES_NOBODY || !anybody_asks(pass.ledger))
                return true; /* without evictions an emergency waits as others do, and first */
        trial_begin(&pass.trial, pass.ledger);
        r = collect_held(&pass) < 0 ? -ENOMEM : leave(&pass);
        plans = r == 0 ? serve_plans(&pass) : r;
        r = plans >= 0 ? serve_pods(&pass) : plans;
        trial_end(&pass.trial);
        if (r >= 0)
                finish(&pass);
        victim_list_free(&pass.victims);
        free(pass.served);
        free(pass.holds);
        free(pass.held);
        return r != 0 && plans != 0;
}
