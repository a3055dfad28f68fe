/* All members in one order, their speeds, one cut; the part of it that is the pod's own. */
#include "scheduler-extender/decide/weighting_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/shards/shards.h"
#include "scheduler-extender/decide/weighting_members.h"

/* Chips of one group that one member has. */
struct entry {
        const struct ledger_node *node;
        const struct ledger_group *group;
        size_t chips;
        bool own;
        struct shard_worker worker;
};

struct entries {
        struct entry *items;
        size_t count, capacity, chips;
        bool own, failed; /* what is added is the pod's own; there was no memory */
};

static void add(void *userdata, const struct ledger_node *node, const struct ledger_group *group,
                size_t chips)
{
        struct entries *entries = userdata;

        if (entries->count == entries->capacity) {
                size_t capacity = 2 * entries->capacity + 16;
                struct entry *grown = reallocarray(entries->items, capacity, sizeof(*grown));

                if (grown == NULL) {
                        entries->failed = true;
                        return;
                }
                entries->items = grown;
                entries->capacity = capacity;
        }
        entries->items[entries->count++] =
                (struct entry){ .node = node, .group = group, .chips = chips, .own = entries->own };
        entries->chips += chips;
}

static int collect(const struct weighting *w, const struct weighting_members_of *self,
                   const struct ledger_node *node, const struct ledger_pod_part *parts, size_t part_count,
                   struct entries *entries)
{
        weighting_members(w, self, add, entries);
        entries->own = true;
        for (size_t p = 0; p < part_count; p++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].name == parts[p].group)
                                add(entries, node, &node->groups[g], parts[p].chips);
        return entries->failed ? -ENOMEM : 0;
}

static int find_speeds(const struct weighting *w, struct entries *entries, struct weighting_share *ret)
{
        const struct ledger_speeds_programs *p = &w->programs;
        CLEANUP(free_p) struct chip_speed_member *members = calloc(entries->count + 1, sizeof(*members));
        CLEANUP(free_p) struct shard_worker *workers = calloc(entries->count + 1, sizeof(*workers));

        if (members == NULL || workers == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < entries->count; i++)
                members[i] = ledger_speeds_member(
                        p, symbols_name(&p->ledger->symbols, entries->items[i].group->runtime),
                        entries->items[i].group);
        ret->speeds = chip_speed_find(&p->ledger->speeds, p->job == NULL ? "" : p->job->model, members,
                                      entries->count, workers);
        if (ret->speeds.source == CHIP_SPEED_ASSUMED && entries->count > 0) {
                ret->lacking = entries->items[ret->speeds.lacking].group;
                ret->lacking_node = entries->items[ret->speeds.lacking].node;
        }
        for (size_t i = 0; i < entries->count; i++)
                entries->items[i].worker = workers[i];
        return 0;
}

/* The faster first, then by name and place; of one group the members are alike. */
static int by_place(const void *a, const void *b)
{
        const struct entry *x = a, *y = b;
        double fast_x = chip_speed_samples_per_s(&x->worker), fast_y = chip_speed_samples_per_s(&y->worker);
        int order = strcmp(x->node->name, y->node->name);

        if (fast_x != fast_y)
                return fast_x > fast_y ? -1 : 1;
        if (order != 0)
                return order;
        return (x->group > y->group) - (x->group < y->group);
}

static int cut(const struct weighting *w, const struct entries *entries, struct weighting_share *ret)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(entries->chips + 1, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(entries->chips + 1, sizeof(*shards));
        size_t n = 0;

        if (workers == NULL || shards == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < entries->count; i++)
                for (size_t k = 0; k < entries->items[i].chips; k++)
                        workers[n++] = entries->items[i].worker;
        if (shards_cut(workers, n, w->batch, !w->equal, shards, NULL, NULL) < 0)
                return 0; /* it cannot be cut: there is no share to speak of */
        n = 0;
        for (size_t i = 0; i < entries->count; i++)
                for (size_t k = 0; k < entries->items[i].chips; k++, n++)
                        ret->batch += entries->items[i].own ? shards[n].batch : 0;
        ret->weight = (double) ret->batch / (double) w->batch;
        return 0;
}

int weighting_share(const struct weighting *w, const struct ledger_job *job, const struct ledger_pod *self,
                    const struct request *request, const struct ledger_node *node,
                    const struct ledger_pod_part *parts, size_t part_count, struct weighting_share *ret)
{
        const struct weighting_members_of of = { .job = job,
                                                 .pod = self,
                                                 .slot = weighting_members_own_slot(w, job, request, node,
                                                                                    NULL),
                                                 .slots_too = true };
        struct entries entries = { .count = 0 };
        int r = 0;

        *ret = (struct weighting_share){ .batch = 0 };
        if (w->batch == 0 || part_count == 0)
                return 0;
        r = collect(w, &of, node, parts, part_count, &entries);
        ret->chips = entries.chips;
        if (r == 0 && entries.chips <= WEIGHTING_CHIPS_MAX) {
                r = find_speeds(w, &entries, ret);
                qsort(entries.items, entries.count, sizeof(*entries.items), by_place);
                r = r < 0 ? r : cut(w, &entries, ret);
        }
        free(entries.items);
        return r;
}
