/* Sums of requests against what a node offers, as kube-scheduler's NodeResourcesFit compares them. */
#include "scheduler-extender/decide/node_room.h"

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* Are the job's leases there its own, and free for its pod? A plan is made as if they were others'. */
static bool is_own(const struct rules_context *ctx, const struct ledger_job_slot *slot)
{
        return slot->job == ctx->job && ctx->job != NULL && !ctx->planning;
}

static bool is_there(const struct rules_context *ctx, const struct ledger_node *node)
{
        return ctx->self != NULL && ctx->self->node == node;
}

/* The room as the request's pod sees it. */
static struct ledger_room room_for(const struct rules_context *ctx, const struct ledger_node *node)
{
        struct ledger_room room = node->room;

        if (is_there(ctx, node))
                ledger_room_add(&room, &ctx->self->request, -1);
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (is_own(ctx, slot))
                        ledger_room_add(&room, &slot->request, -1);
        return room;
}

/* Nobody is refused what he does not ask for, however much others ask for. What is not said is not judged. */
static bool suffices(int64_t need, int64_t asked, int64_t offered)
{
        return need == 0 || offered == 0 || need <= offered - asked;
}

static bool holds(const struct ledger_room *room, const struct request_needs *needs, size_t members)
{
        return suffices((int64_t) members, room->pods, room->pods_offered) &&
               suffices(needs->cpu_milli, room->asked.cpu_milli, room->offered.cpu_milli) &&
               suffices(needs->memory_bytes, room->asked.memory_bytes, room->offered.memory_bytes) &&
               suffices(needs->storage_bytes, room->asked.storage_bytes, room->offered.storage_bytes);
}

static uint64_t asked_of(const struct request *request, uint32_t resource)
{
        uint64_t count = 0;

        for (size_t i = 0; i < (size_t) request->item_count + request->beside_count; i++)
                if (request->items[i].resource == resource)
                        count += request->items[i].chips;
        return count;
}

/* What is left of an extended resource that is no chip. Of so much as cannot be counted there is always some.
 */
static uint64_t left_of(const struct rules_context *ctx, const struct ledger_node *node, uint32_t resource)
{
        uint64_t offered = 0, asked = 0;

        for (uint32_t i = 0; i < node->allocatable_count; i++)
                if (node->allocatable[i].resource == resource)
                        offered = node->allocatable[i].chips;
        if (offered >= REQUEST_CHIPS_MAX || (offered == 0 && node->trust.left_out > 0))
                return UINT64_MAX;
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod != ctx->self)
                        asked += asked_of(&pod->request, resource);
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (!is_own(ctx, slot))
                        asked += asked_of(&slot->request, resource);
        return offered > asked ? offered - asked : 0;
}

/* The item beside chips that there is too little of, or NULL. */
static const struct request_item *short_item(const struct rules_context *ctx, const struct ledger_node *node)
{
        const struct request_item *items = &ctx->request->items[ctx->request->item_count];

        for (size_t i = 0; i < ctx->request->beside_count; i++)
                if (items[i].chips > left_of(ctx, node, items[i].resource))
                        return &items[i];
        return NULL;
}

bool node_room_holds(const struct rules_context *ctx, const struct ledger_node *node,
                     const struct request_needs *needs, size_t members)
{
        struct ledger_room room = room_for(ctx, node);

        return holds(&room, needs, members);
}

bool node_room_takes(const struct rules_context *ctx, const struct ledger_node *node)
{
        return node_room_holds(ctx, node, &ctx->request->needs, 1) && short_item(ctx, node) == NULL;
}

static void add_kind(struct node_room_kind *list, size_t *count, struct node_room_kind kind, int64_t offered)
{
        if (kind.asked > 0 && offered > 0)
                list[(*count)++] = kind;
}

size_t node_room_left(const struct rules_context *ctx, const struct ledger_node *node,
                      struct node_room_kind *ret)
{
        const struct ledger_room room = room_for(ctx, node);
        const int64_t left[] = { room.pods_offered - room.pods, room.offered.cpu_milli - room.asked.cpu_milli,
                                 room.offered.memory_bytes - room.asked.memory_bytes,
                                 room.offered.storage_bytes - room.asked.storage_bytes },
                      offered[] = { room.pods_offered, room.offered.cpu_milli, room.offered.memory_bytes,
                                    room.offered.storage_bytes };
        const struct request_item *beside = &ctx->request->items[ctx->request->item_count];
        size_t count = 0;

        for (enum node_room_what what = NODE_ROOM_PLACE; what < NODE_ROOM_ITEM; what++) {
                struct node_room_kind kind = { .what = what, .left = left[what] };

                kind.asked = node_room_asked(ctx->request, &kind);
                add_kind(ret, &count, kind, offered[what]);
        }
        for (size_t i = 0; i < ctx->request->beside_count; i++) {
                uint64_t of_item = left_of(ctx, node, beside[i].resource);

                add_kind(ret, &count,
                         (struct node_room_kind){ .what = NODE_ROOM_ITEM,
                                                  .resource = beside[i].resource,
                                                  .asked = beside[i].chips,
                                                  .left = (int64_t) of_item },
                         of_item != UINT64_MAX);
        }
        return count;
}

int64_t node_room_asked(const struct request *request, const struct node_room_kind *kind)
{
        switch (kind->what) {
        case NODE_ROOM_PLACE:
                return 1;
        case NODE_ROOM_CPU:
                return request->needs.cpu_milli;
        case NODE_ROOM_MEMORY:
                return request->needs.memory_bytes;
        case NODE_ROOM_STORAGE:
                return request->needs.storage_bytes;
        default:
                return (int64_t) asked_of(request, kind->resource);
        }
}

bool node_room_ever(const struct rules_context *ctx, const struct ledger_node *node,
                    enum ledger_pods_takes takes)
{
        struct ledger_room room = room_for(ctx, node);

        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod != ctx->self && pod->request.item_count > 0 && ledger_pods_gives_way(pod, takes))
                        ledger_room_add(&room, &pod->request, -1);
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (takes == LEDGER_PODS_TAKES_ANYBODY && !is_own(ctx, slot))
                        ledger_room_add(&room, &slot->request, -1);
        return holds(&room, &ctx->request->needs, 1);
}

static void say(struct text *text, const char *what, const char *unit, int64_t divisor, int64_t need,
                int64_t asked, int64_t offered)
{
        if (suffices(need, asked, offered))
                return;
        text_printf(text, "%s%lld%s of %s asked for, %lld of %lld left", text->data == NULL ? "" : "; ",
                    (long long) (need / divisor), unit, what,
                    (long long) ((offered > asked ? offered - asked : 0) / divisor),
                    (long long) (offered / divisor));
}

void node_room_why(const struct rules_context *ctx, const struct ledger_node *node, char *ret,
                   size_t ret_bytes)
{
        const struct request_needs *needs = &ctx->request->needs;
        const struct ledger_room room = room_for(ctx, node);
        const struct request_item *item = short_item(ctx, node);
        struct text text = { 0 };

        say(&text, "CPU", "m", 1, needs->cpu_milli, room.asked.cpu_milli, room.offered.cpu_milli);
        say(&text, "memory", " MiB", 1 << 20, needs->memory_bytes, room.asked.memory_bytes,
            room.offered.memory_bytes);
        say(&text, "ephemeral storage", " MiB", 1 << 20, needs->storage_bytes, room.asked.storage_bytes,
            room.offered.storage_bytes);
        if (!suffices(1, room.pods, room.pods_offered))
                text_printf(&text, "%s%u pods there of at most %lld", text.data == NULL ? "" : "; ",
                            room.pods, (long long) room.pods_offered);
        if (item != NULL)
                text_printf(&text, "%s%u of %s asked for, %llu left", text.data == NULL ? "" : "; ",
                            item->chips, symbols_name(&ctx->ledger->symbols, item->resource),
                            (unsigned long long) left_of(ctx, node, item->resource));
        (void) text_copy(ret, ret_bytes, text.failed || text.data == NULL ? "" : text.data);
        text_free(&text);
}
