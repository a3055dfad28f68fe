/* All members, their speeds, one cut; the part of it that is the pod's own. */
#include "scheduler-extender/decide/weighting_share.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "planner/speeds/speed_cut.h"
#include "scheduler-extender/decide/open_groups.h"
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
        size_t count, capacity, chips, passed_over;
        bool own, failed; /* what is added is the pod's own; there was no memory */
};

static void add(void *userdata, const struct ledger_node *node, const struct ledger_group *group,
                size_t chips)
{
        struct entries *entries = userdata;
        struct entry *added;

        if (entries->passed_over > 0) {
                entries->passed_over--;
                return;
        }
        added = array_add(&entries->items, &entries->count, &entries->capacity, sizeof(*added));
        if (added == NULL) {
                entries->failed = true;
                return;
        }
        *added = (struct entry){ .node = node, .group = group, .chips = chips, .own = entries->own };
        entries->chips += chips;
}

/* Those that are bound, the pod's own, and those that are not yet: of members that are alike whoever was
 * bound first was given what is left over, and keeps it. */
static int collect(const struct weighting *w, const struct weighting_members_of *self,
                   const struct ledger_node *node, const struct ledger_pod_part *parts, size_t part_count,
                   struct entries *entries)
{
        struct weighting_members_of bound = *self;
        size_t bound_count;

        bound.slots_too = false;
        weighting_members(w, &bound, add, entries);
        bound_count = entries->count;
        entries->own = true;
        for (size_t p = 0; p < part_count; p++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].name == parts[p].group)
                                add(entries, node, &node->groups[g], parts[p].chips);
        entries->own = false;
        entries->passed_over = bound_count;
        weighting_members(w, self, add, entries);
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

/* The first entry of the job that takes such chips; 0 also where none does, or there is no job. */
static uint32_t entry_of(const struct weighting *w, const struct ledger_group *group)
{
        const struct job *job = w->programs.job;

        for (uint32_t i = 0; job != NULL && i < job->worker_count; i++)
                if (open_groups_takes(&job->workers[i], &w->programs.ledger->symbols, group))
                        return i;
        return 0;
}

static int cut(const struct weighting *w, const struct entries *entries, struct weighting_share *ret)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(entries->chips + 1, sizeof(*workers));
        CLEANUP(free_p) struct speed_cut_place *places = calloc(entries->chips + 1, sizeof(*places));
        CLEANUP(free_p) struct shard *shards = calloc(entries->chips + 1, sizeof(*shards));
        size_t n = 0;

        if (workers == NULL || places == NULL || shards == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < entries->count; i++)
                for (size_t k = 0; k < entries->items[i].chips; k++, n++) {
                        const struct entry *entry = &entries->items[i];

                        workers[n] = entry->worker;
                        places[n] = (struct speed_cut_place){ entry_of(w, entry->group), entry->node->name,
                                                              symbols_name(&w->programs.ledger->symbols,
                                                                           entry->group->name) };
                }
        if (speed_cut(workers, places, n, w->batch, !w->equal, shards, NULL, NULL) < 0)
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
                r = r < 0 ? r : cut(w, &entries, ret);
        }
        free(entries.items);
        return r;
}
