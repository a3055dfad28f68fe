/* Counts chips and whole groups on nodes of the other class once a request, then judges node by node. */
#include "scheduler-extender/decide/overflow.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

int overflow_parse(const char *text, enum overflow *ret, uint32_t *ret_percent)
{
        static const char *const names[] = { "none", "single-to-multi", "multi-to-single", "both" };
        const char *colon = strchr(text, ':');
        size_t bytes = colon == NULL ? strlen(text) : (size_t) (colon - text);
        uint64_t percent = 100;

        if (colon != NULL && (text_parse_uint64(colon + 1, &percent) < 0 || percent > 100))
                return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == bytes && strncmp(names[i], text, bytes) == 0) {
                        *ret = (enum overflow) i;
                        *ret_percent = (uint32_t) percent;
                        return 0;
                }
        return -EINVAL;
}

static bool is_single(const struct request *request)
{
        return request->class_chips <= 1;
}

/* A member counts as its whole job does. */
static bool pod_is_single(const struct ledger_pod *pod)
{
        const struct job *training = pod->job != NULL ? pod->job->training : NULL;

        return training != NULL ? job_worker_chips(training) + job_server_chips(training) <= 1
                                : is_single(&pod->request);
}

static bool goes_first(const struct request *request)
{
        return request->preemptible ||
               (request->deadline_sec > 0 && request->deadline_sec <= OVERFLOW_SHORT_SEC);
}

static bool is_other_class(const struct rules_context *ctx, const struct ledger_node *node)
{
        return node->node_class == (is_single(ctx->request) ? NODE_CLASS_MULTI : NODE_CLASS_SINGLE);
}

static uint32_t chips_of(const struct request *request, uint32_t resource)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < request->item_count; i++)
                chips += request->items[i].resource == resource ? request->items[i].chips : 0;
        return chips;
}

static void add_node(const struct rules_context *ctx, const struct ledger_node *node, uint64_t *chips,
                     uint64_t *used, uint32_t *whole)
{
        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                if (g->resource != ctx->request->items[0].resource)
                        continue;
                *chips += g->usable;
                *whole += g->total > 1 && ledger_group_open(g) == g->total;
        }
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod != ctx->self && pod_is_single(pod) == is_single(ctx->request))
                        *used += chips_of(&pod->request, ctx->request->items[0].resource);
}

static bool one_goes_first(const struct rules_context *ctx)
{
        const struct ledger *ledger = ctx->ledger;

        for (const struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending) {
                if (pod != ctx->self && !pod->ended && !pod->deleting &&
                    !request_is_held_back(&pod->request) && pod_is_single(pod) && goes_first(&pod->request) &&
                    pod->request.item_count > 0 &&
                    pod->request.items[0].resource == ctx->request->items[0].resource)
                        return true;
        }
        return false;
}

void overflow_prepare(const struct rules_context *ctx, struct overflow_room *ret)
{
        bool single = is_single(ctx->request);
        enum overflow direction = single ? OVERFLOW_SINGLE_TO_MULTI : OVERFLOW_MULTI_TO_SINGLE;
        uint64_t chips = 0, used = 0, cap;

        *ret = (struct overflow_room){ 0 };
        ret->allowed = (ctx->rules->overflow == direction || ctx->rules->overflow == OVERFLOW_BOTH) &&
                       ctx->request->item_count > 0 &&
                       (single || ctx->request->class_chips <= OVERFLOW_SMALL_CHIPS);
        if (!ret->allowed)
                return;
        for (uint32_t i = 0; i < ctx->ledger->node_count; i++)
                if (is_other_class(ctx, ctx->ledger->nodes[i]))
                        add_node(ctx, ctx->ledger->nodes[i], &chips, &used, &ret->whole_groups);
        cap = chips * ctx->rules->overflow_percent / 100;
        ret->chips_left = (uint32_t) (cap > used ? cap - used : 0);
        ret->others_first = single && !goes_first(ctx->request) && one_goes_first(ctx);
}

unsigned overflow_kind(const struct request *request)
{
        if (is_single(request))
                return goes_first(request) ? 3 : 2;
        return request->class_chips <= OVERFLOW_SMALL_CHIPS;
}

const struct overflow_room *overflow_room_of(struct overflow_rooms *rooms, const struct rules_context *ctx,
                                             bool *ret_found)
{
        unsigned kind = overflow_kind(ctx->request);
        bool found = rooms->resources[kind] != ctx->request->items[0].resource;

        if (found) {
                rooms->resources[kind] = ctx->request->items[0].resource;
                overflow_prepare(ctx, &rooms->rooms[kind]);
        }
        if (ret_found != NULL)
                *ret_found = found && rooms->rooms[kind].allowed;
        return &rooms->rooms[kind];
}

/* Would a single chip taken from this node break a whole group? */
static bool breaks_whole_group(const struct rules_context *ctx, const struct ledger_node *node)
{
        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                if (g->resource == ctx->request->items[0].resource &&
                    request_accepts(ctx->request, g->model) && ledger_group_open(g) > 0 &&
                    (ledger_group_open(g) < g->total || g->total == 1))
                        return false;
        }
        return true;
}

bool overflow_takes(const struct rules_context *ctx, const struct ledger_node *node)
{
        if (!ctx->overflow.allowed || ctx->overflow.others_first ||
            ctx->request->items[0].chips > ctx->overflow.chips_left)
                return false;
        if (!is_single(ctx->request))
                return true;
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (!pod_is_single(pod) && pod != ctx->self)
                        return false;
        if (node->slots != NULL)
                return false;
        return ctx->overflow.whole_groups > 1 || !breaks_whole_group(ctx, node);
}
