/* The kinds of remedies, a row each, and how they are tried. */
#include "scheduler-extender/explain/remedies.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/emergency/take_back.h"
#include "scheduler-extender/explain/play.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"

#define REMEDIES_MAX 16
#define NODE_BYTES   254
#define MODELS_MAX   64
#define MODELS_LATER 4 /* so many are tried at times to come */

#define EFFECT_NOW     UINT64_C(0)
#define EFFECT_UNKNOWN (UINT64_MAX - 1) /* some day */
#define EFFECT_NEVER   UINT64_MAX

struct remedies;

/* What is asked for, and under which rules. */
struct variant {
        struct request request;
        struct rules rules;
};

/* When it would start, and where. */
struct effect {
        uint64_t usec;
        char node[NODE_BYTES];
};

struct remedy {
        size_t row; /* of kinds[] */
        uint64_t effect_usec;
        json_t *json;
};

struct remedies {
        struct cluster *cluster;
        struct pod_request *pod_request;
        struct ledger *ledger;
        struct play play;    /* of what is known to end; never advanced */
        uint64_t waits_usec; /* when it starts if nothing is done */
        size_t row;          /* that is being tried */
        struct remedy list[REMEDIES_MAX];
        size_t count;
};

static void try_waiting(struct remedies *r);
static void try_labels(struct remedies *r);
static void try_models(struct remedies *r);
static void try_borrowing(struct remedies *r);
static void try_lending(struct remedies *r);
static void try_overflow(struct remedies *r);
static void try_mending(struct remedies *r);
static void try_allowing(struct remedies *r);
static void try_taking(struct remedies *r);
static void try_freeing(struct remedies *r);
static void try_fewer_chips(struct remedies *r);
static void try_smaller_gang(struct remedies *r);

/* clang-format off */
static const struct { const char *who; unsigned price; void (*try)(struct remedies *r); } kinds[] = {
        { "nobody", 0, try_waiting },
        { "asker",  1, try_labels },
        { "asker",  1, try_models },
        { "asker",  1, try_borrowing },
        { "others", 2, try_mending },
        { "others", 2, try_overflow },
        { "others", 2, try_lending },
        { "others", 2, try_allowing },
        { "others", 2, try_taking },
        { "others", 2, try_freeing },
        { "asker",  3, try_fewer_chips },
        { "asker",  3, try_smaller_gang },
};
/* clang-format on */

/* @effect: "when ... ends"; NULL = as effect_usec says. */
static void offer(struct remedies *r, uint64_t effect_usec, const char *effect, const char *action,
                  json_t *detail, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static void offer(struct remedies *r, uint64_t effect_usec, const char *effect, const char *action,
                  json_t *detail, const char *fmt, ...)
{
        char time[TIMESTAMP_BYTES], message[512];
        json_t *json;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        if (effect == NULL)
                effect = effect_usec == EFFECT_NOW ? "now" : timestamp_format(effect_usec, time);
        json = json_pack("{s:s, s:s, s:s, s:o, s:s}", "who", kinds[r->row].who, "action", action,
                         "takesEffect", effect, "detail", detail, "message", message);
        if (json != NULL && r->count < REMEDIES_MAX)
                r->list[r->count++] =
                        (struct remedy){ .row = r->row, .effect_usec = effect_usec, .json = json };
        else
                json_decref(json);
}

static struct variant as_it_is(const struct remedies *r)
{
        return (struct variant){ .request = r->pod_request->request,
                                 .rules = *r->pod_request->context.rules };
}

/* Would the pod fit somewhere if it asked so, under these rules? Its gang is planned again. */
static const struct ledger_node *fits_somewhere(struct ledger *ledger, struct pod_request *pod_request,
                                                const struct variant *variant)
{
        struct rules_context ctx = pod_request->context;
        struct gang_demand demand = { .kinds = pod_request->facts.kinds,
                                      .kind_count = pod_request->facts.kind_count };

        ctx.request = &variant->request;
        ctx.rules = &variant->rules;
        ctx.unfiltered = true;
        ctx.gang_blocked = ctx.gang_paused = false;
        rules_prepare(&ctx);
        if (gang_prepare(ledger, &ctx, pod_request->job, &demand) < 0)
                return NULL;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (rules_judge(&ctx, ledger->nodes[i]) == REASON_NONE)
                        return ledger->nodes[i];
        return NULL;
}

static bool fits_now(struct remedies *r, const struct variant *variant)
{
        return fits_somewhere(r->ledger, r->pod_request, variant) != NULL;
}

/* On a fork as it is then. @ret_node is written where it fits. */
static bool fits_on(struct cluster *fork, const struct remedies *r, struct variant variant, uint64_t usec,
                    char ret_node[NODE_BYTES])
{
        const struct ledger_pod *pod = ledger_pods_find(
                cluster_ledger(fork), r->pod_request->facts.namespace_, r->pod_request->facts.name);
        const struct ledger_node *node = NULL;
        struct pod_request pod_request;

        if (pod == NULL)
                return false;
        if (pod_request_begin_pod(fork, pod, usec, false, &pod_request, NULL) == 0) {
                variant.request.match = pod_request.request.match; /* a number of its ledger */
                node = fits_somewhere(cluster_ledger(fork), &pod_request, &variant);
        }
        pod_request_end(fork, &pod_request);
        if (node != NULL)
                (void) text_copy(ret_node, NODE_BYTES, node->name);
        return node != NULL;
}

static bool fits_at(const struct remedies *r, const struct variant *variant, uint64_t usec,
                    char ret_node[NODE_BYTES])
{
        struct cluster *fork = cluster_fork(r->cluster);
        struct play play = { 0 };
        bool fits = false;

        if (fork != NULL && play_begin(fork, r->pod_request->context.now_usec, &play) == 0) {
                play_advance(&play, usec);
                backfill_renew(cluster_ledger(fork), cluster_rules(fork), usec);
                fits = fits_on(fork, r, *variant, usec, ret_node);
        }
        play_finish(&play);
        cluster_close(fork);
        return fits;
}

/* Of the ends that are known, how many come before it starts anyway? */
static size_t ends_before(const struct remedies *r, uint64_t usec)
{
        size_t count = 0;

        while (count < r->play.count && r->play.ends[count].usec < usec)
                count++;
        return count;
}

/* After which of the ends that are known, if it does not fit now, and sooner than if nothing is done? Each
 * look is at a fork, so the first ends are tried first, in steps that double, and then halved. Invariant:
 * before `low` it does not fit, at `high` it does, on the node that was written last. */
static void find_effect(const struct remedies *r, const struct variant *variant, struct effect *ret)
{
        size_t low = 0, high = ends_before(r, r->waits_usec), step = 1;

        *ret = (struct effect){ .usec = EFFECT_NEVER };
        if (high == 0 || !fits_at(r, variant, r->play.ends[--high].usec, ret->node))
                return;
        while (low < high) {
                size_t half = (high - low) / 2, at = low + (step - 1 < half ? step - 1 : half);

                if (fits_at(r, variant, r->play.ends[at].usec, ret->node)) {
                        high = at;
                } else {
                        low = at + 1;
                        step *= 2;
                }
        }
        ret->usec = r->play.ends[high].usec;
}

/* Offered if it helps sooner than to wait. */
static void try_variant(struct remedies *r, const struct variant *variant, const char *action, json_t *detail,
                        const char *message)
{
        struct effect effect = { .usec = EFFECT_NOW };

        if (!fits_now(r, variant))
                find_effect(r, variant, &effect);
        if (effect.usec >= r->waits_usec)
                json_decref(detail);
        else
                offer(r, effect.usec, NULL, action, detail, "%s", message);
}

/* A node that others were asked to leave for the pod. */
static const struct ledger_node *node_left_for(const struct ledger *ledger, const struct ledger_pod *pod)
{
        for (uint32_t i = 0; i < ledger->node_count && pod->served; i++)
                for (const struct ledger_backfill *b = ledger->nodes[i]->backfills; b != NULL; b = b->next)
                        for (const struct ledger_pod *p = ledger->nodes[i]->pods; b->pod == pod && p != NULL;
                             p = p->next_on_node)
                                if (p->evicted_usec != 0)
                                        return ledger->nodes[i];
        return NULL;
}

static void try_waiting(struct remedies *r)
{
        struct variant variant = as_it_is(r);
        const struct ledger_pod *self = r->pod_request->context.self;
        const struct ledger_node *left;
        struct effect effect;
        char time[TIMESTAMP_BYTES];
        size_t i = 0;

        find_effect(r, &variant, &effect);
        r->waits_usec = effect.usec;
        if (effect.usec == EFFECT_NEVER) {
                left = self != NULL ? node_left_for(r->ledger, self) : NULL;
                if (left != NULL)
                        offer(r, EFFECT_UNKNOWN, "when the evicted pods are gone", "wait",
                              json_pack("{s:s}", "node", left->name),
                              "wait: others were evicted from node %s for it", left->name);
                return;
        }
        while (r->play.ends[i].usec < effect.usec)
                i++;
        (void) timestamp_format(effect.usec, time);
        offer(r, effect.usec, NULL, "wait", json_pack("{s:s, s:s}", "node", effect.node, "until", time),
              "wait: by %s %s %s, and node %s takes it", time, r->play.ends[i].name, r->play.ends[i].what,
              effect.node);
}

static void try_labels(struct remedies *r)
{
        struct variant variant = as_it_is(r);

        if (variant.request.same_group) {
                variant.request.same_group = false;
                try_variant(r, &variant, "drop-label", json_pack("{s:s}", "label", "remuda.dev/same-group"),
                            "drop the label remuda.dev/same-group: the chips are there, in several groups");
        }
        variant = as_it_is(r);
        if (variant.request.equal_nodes) {
                variant.request.equal_nodes = false;
                try_variant(r, &variant, "drop-label", json_pack("{s:s}", "label", "remuda.dev/equal-nodes"),
                            "drop the label remuda.dev/equal-nodes: the nodes are there, but differ");
        }
}

static void try_borrowing(struct remedies *r)
{
        struct variant variant = as_it_is(r);

        if (!variant.rules.lend_reserve || variant.request.preemptible)
                return;
        variant.request.preemptible = true;
        try_variant(r, &variant, "label-preemptible", json_pack("{s:s}", "label", "remuda.dev/preemptible"),
                    "label the pod remuda.dev/preemptible: \"true\": the reserve is lent to such pods");
}

static size_t other_models(const struct remedies *r, uint32_t models[MODELS_MAX])
{
        const struct request *request = &r->pod_request->request;
        size_t count = 0;

        for (uint32_t i = 0; i < r->ledger->node_count; i++)
                for (uint32_t g = 0; g < r->ledger->nodes[i]->group_count && count < MODELS_MAX; g++) {
                        const struct ledger_group *group = &r->ledger->nodes[i]->groups[g];
                        bool seen = group->model == 0 || group->resource != request->items[0].resource ||
                                    request_accepts(request, group->model);

                        for (size_t t = 0; t < count && !seen; t++)
                                seen = models[t] == group->model;
                        if (!seen)
                                models[count++] = group->model;
                }
        return count;
}

static void offer_model(struct remedies *r, uint64_t effect_usec, uint32_t model)
{
        const char *name = symbols_name(&r->ledger->symbols, model);

        offer(r, effect_usec, NULL, "accept-model", json_pack("{s:s}", "model", name),
              "accept model %s too (annotation remuda.dev/models)", name);
}

static void try_models(struct remedies *r)
{
        struct variant variant = as_it_is(r);
        uint32_t models[MODELS_MAX], best = 0;
        uint64_t soonest = r->waits_usec;
        uint8_t more = variant.request.model_count;
        size_t count = more == 0 || more == REQUEST_MODELS_MAX ? 0 : other_models(r, models);

        variant.request.model_count++;
        for (size_t i = 0; i < count; i++) {
                variant.request.models[more] = models[i];
                if (fits_now(r, &variant)) {
                        offer_model(r, EFFECT_NOW, models[i]);
                        return;
                }
        }
        for (size_t i = 0; i < count && i < MODELS_LATER; i++) {
                struct effect effect;

                variant.request.models[more] = models[i];
                find_effect(r, &variant, &effect);
                if (effect.usec < soonest) {
                        soonest = effect.usec;
                        best = models[i];
                }
        }
        if (best != 0)
                offer_model(r, soonest, best);
}

static void try_lending(struct remedies *r)
{
        struct variant variant = as_it_is(r);

        if (variant.rules.lend_reserve)
                return;
        variant.rules.lend_reserve = variant.request.preemptible = true;
        try_variant(r, &variant, "lend-reserve", json_pack("{s:b, s:b}", "lendReserve", 1, "preemptible", 1),
                    "lend the idle reserve (--lend-reserve) and label the pod "
                    "remuda.dev/preemptible: \"true\"");
}

static void try_overflow(struct remedies *r)
{
        struct variant variant = as_it_is(r);

        if (variant.rules.overflow == OVERFLOW_BOTH)
                return;
        variant.rules.overflow = OVERFLOW_BOTH;
        variant.rules.overflow_percent = 100;
        try_variant(r, &variant, "allow-overflow", json_pack("{s:s}", "overflow", "both"),
                    "allow --overflow: nodes of the other class have room");
}

/* How many of the node's sick devices, taken as mended, make it fit; 0 = not all of them do. */
static uint32_t count_mended(struct remedies *r, struct ledger_node *node)
{
        struct variant variant = as_it_is(r);
        uint32_t mended = 0;
        bool fits = false;

        for (; mended < node->sick_count && !fits; mended++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].name == node->sick[mended].group) {
                                node->groups[g].usable++;
                                fits = fits || fits_now(r, &variant);
                        }
        for (uint32_t i = 0; i < mended; i++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        node->groups[g].usable -= node->groups[g].name == node->sick[i].group;
        return fits ? mended : 0;
}

#define MENDED_NODES 64 /* so many are tried */

/* The node where the fewest devices are to be mended. */
static void try_mending(struct remedies *r)
{
        struct ledger_node *best = NULL;
        uint32_t fewest = 0;
        const struct ledger_sick *first;

        for (uint32_t i = 0, tried = 0; i < r->ledger->node_count && tried < MENDED_NODES && fewest != 1;
             i++) {
                struct ledger_node *node = r->ledger->nodes[i];
                uint32_t mended;

                if (node->sick_count == 0 ||
                    rules_judge(&r->pod_request->context, node) != REASON_CHIPS_UNHEALTHY)
                        continue;
                tried++;
                mended = count_mended(r, node);
                if (mended > 0 && (best == NULL || mended < fewest)) {
                        best = node;
                        fewest = mended;
                }
        }
        if (best == NULL)
                return;
        first = best->sick;
        offer(r, EFFECT_NOW, NULL, first->health == HEALTH_QUARANTINED ? "clear-quarantine" : "repair-device",
              json_pack("{s:s, s:s, s:i}", "node", best->name, "device", first->id, "devices", (int) fewest),
              "%s %s on node %s%s",
              first->health == HEALTH_QUARANTINED ? "clear the quarantine of" : "repair", first->id,
              best->name, fewest > 1 ? " (and others there)" : "");
}

/* It would fit there, but for the node's labels or taints. */
static void try_allowing(struct remedies *r)
{
        struct rules_context ctx = r->pod_request->context;
        const char *match = node_match_text(&r->ledger->matches, ctx.request->match);

        ctx.unfiltered = false;
        for (uint32_t i = 0; i < r->ledger->node_count; i++) {
                const struct ledger_node *node = r->ledger->nodes[i];
                char because[256] = "";

                if (rules_judge(&r->pod_request->context, node) != REASON_NODE_NOT_ALLOWED ||
                    rules_judge(&ctx, node) != REASON_NONE ||
                    node_match_judge(match, node->name, &node->traits, because, sizeof(because)))
                        continue;
                offer(r, EFFECT_NOW, NULL, "allow-node",
                      json_pack("{s:s, s:s}", "node", node->name, "because", because),
                      "let the pod onto node %s: %s", node->name, because);
                return;
        }
}

static json_t *pod_names(const struct victim_list *victims)
{
        json_t *names = json_array();

        for (size_t i = 0; i < victims->count; i++)
                (void) json_array_append_new(names, json_string(victims->pods[i]->key));
        return names;
}

static void offer_victims(struct remedies *r, const struct take_back *plan, const char *action,
                          const char *what)
{
        double lost = (double) victim_chip_seconds(plan->cost) / 3600;
        const struct victim_list *victims = &plan->victims;
        const char *first = victims->pods[0]->key, *node = victims->pods[0]->node->name;
        char effect[384];

        (void) (victims->count == 1 ? text_format(effect, sizeof(effect), "when %s ends", first)
                                    : text_format(effect, sizeof(effect), "when %s and %zu more end", first,
                                                  victims->count - 1));
        offer(r, EFFECT_UNKNOWN, effect, action,
              json_pack("{s:s, s:i, s:f, s:o}", "node", node, "chips", (int) plan->chips, "lostChipHours",
                        lost, "pods", pod_names(victims)),
              "%s %u chip(s): %zu pod(s), the first is %s on node %s; %.1f chip-hours of work would be lost",
              what, plan->chips, victims->count, first, node, lost);
}

/* The cheapest pods without which it fits: of a gang, all its members do. */
static void try_victims(struct remedies *r, enum ledger_pods_takes takes, const char *action,
                        const char *what)
{
        const struct pod_request *request = r->pod_request;
        const struct victim_rules rules = { .takes = takes,
                                            .now_usec = request->context.now_usec,
                                            .grace_usec = request->context.rules->grace_usec };
        struct asked asked = { .context = request->context,
                               .job = request->job,
                               .demand = { .kinds = request->facts.kinds,
                                           .kind_count = request->facts.kind_count } };
        struct take_back plan;
        struct trial trial;

        asked.context.unfiltered = true;
        trial_begin(&trial, r->ledger);
        if (take_back_plan(&trial, &asked, &rules, &plan) == 0 && plan.victims.count > 0 &&
            (takes == LEDGER_PODS_TAKES_ANYBODY || plan.regular_chips > 0))
                offer_victims(r, &plan, action, what);
        take_back_free(&plan);
        trial_end(&trial);
}

static void try_taking(struct remedies *r)
{
        const struct rules_context *context = &r->pod_request->context;

        if (context->request->emergency && context->rules->takes == LEDGER_PODS_TAKES_BORROWERS)
                try_victims(r, LEDGER_PODS_TAKES_PREEMPTIBLE, "take-from-regular",
                            "let emergencies take from regular nodes (--take-from-regular)");
}

/* Whoever's they are. */
static void try_freeing(struct remedies *r)
{
        try_victims(r, LEDGER_PODS_TAKES_ANYBODY, "free-chips", "free");
}

static void try_fewer_chips(struct remedies *r)
{
        struct variant variant = as_it_is(r);
        struct request *request = &variant.request;
        uint32_t wanted = request->items[0].chips;

        if (request->item_count != 1)
                return;
        for (request->items[0].chips = wanted - 1; request->items[0].chips > 0; request->items[0].chips--) {
                request->class_chips = (uint64_t) request->items[0].chips *
                                       (request->gang_size > 1 ? request->gang_size : 1);
                if (!fits_now(r, &variant))
                        continue;
                offer(r, EFFECT_NOW, NULL, "ask-for-fewer",
                      json_pack("{s:i, s:i}", "chips", (int) request->items[0].chips, "insteadOf",
                                (int) wanted),
                      "ask for %u chip(s) instead of %u", request->items[0].chips, wanted);
                return;
        }
}

static void try_smaller_gang(struct remedies *r)
{
        struct variant variant = as_it_is(r);
        struct request *request = &variant.request;
        uint32_t wanted = request->gang_size;

        if (wanted <= 1 || wanted > 64 || r->pod_request->facts.kind_count > 0)
                return;
        for (request->gang_size = wanted - 1; request->gang_size > 0; request->gang_size--) {
                request->class_chips = (uint64_t) request_chips(request) * request->gang_size;
                request->lacking = gang_members_are_lacking(r->pod_request->job, r->pod_request->context.self,
                                                            request, NULL, 0);
                if (!fits_now(r, &variant))
                        continue;
                offer(r, EFFECT_NOW, NULL, "smaller-gang",
                      json_pack("{s:i, s:i}", "members", (int) request->gang_size, "insteadOf", (int) wanted),
                      "make the gang %u member(s) instead of %u", request->gang_size, wanted);
                return;
        }
}

static int compare_remedies(const void *a, const void *b)
{
        const struct remedy *x = a, *y = b;

        if (kinds[x->row].price != kinds[y->row].price)
                return kinds[x->row].price < kinds[y->row].price ? -1 : 1;
        if (x->effect_usec != y->effect_usec)
                return x->effect_usec < y->effect_usec ? -1 : 1;
        return (x->row > y->row) - (x->row < y->row);
}

json_t *remedies_find(struct cluster *cluster, struct pod_request *pod_request)
{
        struct remedies r = { .cluster = cluster,
                              .waits_usec = EFFECT_NEVER,
                              .pod_request = pod_request,
                              .ledger = cluster_ledger(cluster) };
        json_t *list = json_array();

        if (pod_request->request.item_count == 0 || list == NULL ||
            play_begin(cluster, pod_request->context.now_usec, &r.play) < 0)
                return list;
        for (r.row = 0; r.row < ARRAY_SIZE(kinds); r.row++)
                kinds[r.row].try(&r);
        play_finish(&r.play);
        qsort(r.list, r.count, sizeof(r.list[0]), compare_remedies);
        for (size_t i = 0; i < r.count; i++)
                (void) json_array_append_new(list, r.list[i].json);
        return list;
}
