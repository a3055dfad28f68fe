/* Every way to spread members over kinds of chips is weighed; the shortest steps are tried on the nodes. */
#include "scheduler-extender/decide/gang_step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

/* One shape's members that go on one kind of chips. */
struct choice {
        size_t shape;                     /* index of its first member */
        size_t members;                   /* of the shape */
        const struct ledger_group *group; /* one of the kind */
        size_t room;                      /* members that the kind's open chips take, node by node */
};

struct way {
        double step_ms;
        uint16_t counts[GANG_STEP_KINDS];
};

struct search {
        const struct rules_context *plan;
        const struct ledger_job *job;
        const struct request *members;
        struct weighting weighing;
        struct choice choices[GANG_STEP_KINDS];
        size_t choice_count;
        struct way *ways;
        size_t way_count;
        bool too_many;
        uint16_t counts[GANG_STEP_KINDS];
};

/* Members that a node takes on its chips of one kind, in one group or over several. */
static size_t room_on(const struct ledger_node *node, const struct ledger_group *kind, uint32_t chips)
{
        size_t open = 0;

        for (uint32_t g = 0; g < node->group_count; g++)
                if (node->groups[g].resource == kind->resource && node->groups[g].model == kind->model &&
                    node->groups[g].runtime == kind->runtime)
                        open += ledger_group_open(&node->groups[g]);
        return open / chips;
}

static bool is_first_of_kind(const struct ledger_node *node, const struct ledger_group *group)
{
        for (const struct ledger_group *g = node->groups; g < group; g++)
                if (g->resource == group->resource && g->model == group->model &&
                    g->runtime == group->runtime)
                        return false;
        return true;
}

static int add_room(struct search *s, size_t shape, size_t members, const struct ledger_node *node,
                    const struct ledger_group *group)
{
        size_t room = room_on(node, group, s->members[shape].items[0].chips);

        for (size_t i = 0; i < s->choice_count; i++)
                if (s->choices[i].shape == shape && s->choices[i].group->runtime == group->runtime &&
                    s->choices[i].group->model == group->model) {
                        s->choices[i].room += room;
                        return 0;
                }
        if (room == 0)
                return 0;
        if (s->choice_count == GANG_STEP_KINDS)
                return -E2BIG;
        s->choices[s->choice_count++] =
                (struct choice){ .shape = shape, .members = members, .group = group, .room = room };
        return 0;
}

/* Return: 0; -E2BIG (too many); -ENODATA (chips of unknown model could serve: a model does not tell them). */
static int add_shape(struct search *s, size_t shape, size_t members)
{
        struct rules_context ctx = *s->plan;
        const struct ledger *ledger = ctx.ledger;
        int r = 0;

        ctx.request = &s->members[shape];
        overflow_prepare(&ctx, &ctx.overflow);
        for (uint32_t i = 0; i < ledger->node_count && r == 0; i++) {
                const struct ledger_node *node = ledger->nodes[i];

                if (rules_judge(&ctx, node) != REASON_NONE)
                        continue;
                for (uint32_t g = 0; g < node->group_count && r == 0; g++) {
                        const struct ledger_group *group = &node->groups[g];

                        if (group->resource != ctx.request->items[0].resource ||
                            !request_accepts(ctx.request, group->model) || !is_first_of_kind(node, group))
                                continue;
                        r = group->model == 0 ? -ENODATA : add_room(s, shape, members, node, group);
                }
        }
        return r;
}

static int weigh_way(struct search *s)
{
        struct weighting_choice chosen[GANG_STEP_KINDS];
        struct way *way = &s->ways[s->way_count];
        size_t count = 0;
        int r;

        for (size_t i = 0; i < s->choice_count; i++)
                if (s->counts[i] > 0 && !s->members[s->choices[i].shape].serves)
                        chosen[count++] = (struct weighting_choice){
                                .group = s->choices[i].group,
                                .chips = (size_t) s->counts[i] *
                                         s->members[s->choices[i].shape].items[0].chips,
                        };
        r = weighting_step(&s->weighing, s->job, s->plan->self, chosen, count, &way->step_ms);
        if (r != 0)
                return r < 0 ? r : 0; /* no plan of that kind */
        memcpy(way->counts, s->counts, sizeof(s->counts));
        s->way_count++;
        return 0;
}

static int spread(struct search *s, size_t at, size_t left)
{
        const struct choice *choice = &s->choices[at];
        bool last = at + 1 == s->choice_count || s->choices[at + 1].shape != choice->shape;
        size_t most = left < choice->room ? left : choice->room;

        for (size_t take = most + 1; take-- > (last ? left : 0);) {
                int r;

                s->counts[at] = (uint16_t) take;
                if (s->way_count == GANG_STEP_WAYS) {
                        s->too_many = true;
                        return 0;
                }
                if (!last)
                        r = spread(s, at + 1, left - take);
                else if (at + 1 < s->choice_count)
                        r = spread(s, at + 1, s->choices[at + 1].members);
                else
                        r = weigh_way(s);
                if (r < 0)
                        return r;
                if (take == 0)
                        break;
        }
        return 0;
}

static int shorter(const void *a, const void *b)
{
        const struct way *x = a, *y = b;

        if (x->step_ms != y->step_ms)
                return x->step_ms < y->step_ms ? -1 : 1;
        return -memcmp(x->counts, y->counts, sizeof(x->counts)); /* any order, but always the same */
}

static bool try_way(const struct search *s, const struct way *way, struct request *requests,
                    bool (*place)(void *userdata, const struct request *members, size_t count),
                    void *userdata)
{
        size_t count = 0;

        for (size_t i = 0; i < s->choice_count; i++)
                for (uint16_t k = 0; k < way->counts[i]; k++) {
                        requests[count] = s->members[s->choices[i].shape];
                        requests[count].model_count = 1;
                        requests[count++].models[0] = s->choices[i].group->model;
                }
        return place(userdata, requests, count);
}

static size_t shape_end(const struct request *members, size_t count, size_t shape)
{
        size_t end = shape + 1;

        while (end < count && gang_same_shape(&members[shape], &members[end]))
                end++;
        return end;
}

/* Return: 1; 0 = it cannot be weighed; negative errno. */
static int collect(struct search *s, size_t count)
{
        for (size_t shape = 0; shape < count;) {
                size_t end = shape_end(s->members, count, shape), before = s->choice_count;
                int r = s->members[shape].item_count != 1 ? -ENODATA : add_shape(s, shape, end - shape);

                if (r < 0 || s->choice_count == before)
                        return r == -ENOMEM ? r : 0;
                shape = end;
        }
        return 1;
}

/* All ways are weighed by one kind of figure. */
static void compare(struct search *s)
{
        struct weighting_choice choices[GANG_STEP_KINDS];

        for (size_t i = 0; i < s->choice_count; i++)
                choices[i] = (struct weighting_choice){ .group = s->choices[i].group };
        weighting_compare(&s->weighing, s->job, s->plan->self, choices, s->choice_count);
}

int gang_step_search(const struct rules_context *plan, const struct ledger_job *job,
                     const struct request *members, size_t count,
                     bool (*place)(void *userdata, const struct request *members, size_t count),
                     void *userdata)
{
        CLEANUP(free_p) struct search *s = NULL;
        CLEANUP(free_p) struct way *ways = NULL;
        CLEANUP(free_p) struct request *requests = NULL;
        int r;

        if (plan->weighting == NULL || plan->weighting->batch == 0 || count > UINT16_MAX)
                return 0;
        s = calloc(1, sizeof(*s));
        ways = s == NULL ? NULL : malloc(GANG_STEP_WAYS * sizeof(*ways));
        requests = malloc(count * sizeof(*requests));
        if (s == NULL || ways == NULL || requests == NULL)
                return -ENOMEM;
        *s = (struct search){ .plan = plan, .job = job, .members = members, .ways = ways };
        r = collect(s, count);
        if (r <= 0)
                return r;
        s->weighing = *plan->weighting;
        compare(s);
        r = spread(s, 0, s->choices[0].members);
        if (r < 0 || s->too_many)
                return r < 0 ? r : 0;
        qsort(ways, s->way_count, sizeof(*ways), shorter);
        for (size_t i = 0; i < s->way_count && i < GANG_STEP_TRIES; i++)
                if (try_way(s, &ways[i], requests, place, userdata))
                        return 1;
        return 0;
}
