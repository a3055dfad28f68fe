/* Pods counted by topology domain: once for all that are there, and again for what a plan adds. */
#include "scheduler-extender/neighbours/neighbour_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/neighbours/spread.h"
#include "scheduler-extender/neighbours/topology_axis.h"

#define VIEWS_MAX   64 /* unlike members of one gang: as many as are searched for (gang_search.h) */
#define VIEWS_LEAST 4
#define VIEWS_BYTES ((size_t) 8 << 20) /* of all beyond these */
#define AXES_MAX    8 /* topology keys that matter to one pod; what is beyond is not judged */

enum answer { ANSWER_OPEN, ANSWER_YES, ANSWER_NO };

/* One term of the pod's own. */
struct tally {
        const struct neighbours_term *term;
        struct topology_axis *axis; /* NULL = not judged */
        uint8_t *answers;           /* by number of labels: enum answer */
        uint32_t answer_count;
        bool selects_self;
        bool *counted;         /* SPREAD: by index of the node: its domain counts */
        bool *there;           /* ... by domain */
        uint32_t *base, *live; /* by domain: pods that the term selects */
        uint32_t *others;      /* NEAR, SPREAD: ... that are planned by others: some will come, or none */
        struct spread spread;
};

struct view {
        /* of whom, and when */
        uint32_t demands, labels, match;
        const struct ledger_pod *self;
        const struct ledger_job *job;
        bool planning;
        uint64_t generation, match_generation;
        uint32_t node_count;

        bool empty;
        struct topology_axis axes[AXES_MAX];
        size_t axis_count;
        struct tally tallies[NEIGHBOURS_TERMS_MAX];
        size_t tally_count;
        bool near_self;                        /* it is one of those that all its NEAR terms select */
        uint64_t near_base, near_live;         /* pods in a domain that all its NEAR terms select */
        uint64_t near_others;                  /* ... that are planned by others */
        uint64_t slot_changes;                 /* that `live` has; UINT64_MAX = nothing yet */
        const struct ledger_job_slot *counted; /* the last of the plan's slots that it has */
        size_t bytes;
};

struct neighbour_view {
        struct view *views[VIEWS_MAX]; /* the oldest first */
        size_t count, last;
        size_t bytes;
};

static void free_view(struct view *view)
{
        for (size_t i = 0; i < view->axis_count; i++)
                topology_axis_free(&view->axes[i]);
        for (size_t i = 0; i < view->tally_count; i++) {
                free(view->tallies[i].answers);
                free(view->tallies[i].counted);
                free(view->tallies[i].there);
                free(view->tallies[i].base);
                free(view->tallies[i].live);
                free(view->tallies[i].others);
        }
        free(view);
}

static void drop_view(struct neighbour_view *views, size_t at)
{
        views->bytes -= views->views[at]->bytes;
        free_view(views->views[at]);
        memmove(&views->views[at], &views->views[at + 1], (--views->count - at) * sizeof(struct view *));
}

void neighbour_view_free(struct neighbour_view *views)
{
        while (views != NULL && views->count > 0)
                drop_view(views, views->count - 1);
        free(views);
}

static uint32_t labels_of(const struct rules_context *ctx)
{
        if (ctx->planning || ctx->self == NULL)
                return ctx->request->labels;
        return ctx->self->labels;
}

/* Return: NULL = there are too many, or no memory for it. */
static struct topology_axis *axis_of(const struct ledger *ledger, struct view *view, const char *key)
{
        struct topology_axis *axis = view->axes;

        for (; axis < view->axes + view->axis_count; axis++)
                if (strcmp(axis->key, key) == 0)
                        return axis->live == NULL ? NULL : axis;
        if (view->axis_count == AXES_MAX)
                return NULL;
        view->axis_count++;
        return topology_axis_make(ledger, key, axis) ? axis : NULL;
}

static bool answers(const struct ledger *ledger, const struct tally *tally, uint32_t labels)
{
        uint8_t *answer = labels < tally->answer_count ? &tally->answers[labels] : NULL;
        bool yes;

        if (answer != NULL && *answer != ANSWER_OPEN)
                return *answer == ANSWER_YES;
        yes = neighbours_selects(&ledger->neighbours, tally->term, labels);
        if (answer != NULL)
                *answer = yes ? ANSWER_YES : ANSWER_NO;
        return yes;
}

static bool add_tally(const struct ledger *ledger, struct view *view, const struct neighbours_term *term)
{
        struct tally *tally = &view->tallies[view->tally_count++];

        *tally = (struct tally){ .term = term, .axis = axis_of(ledger, view, term->key) };
        if (tally->axis == NULL)
                return true;
        tally->answers = calloc(ledger->neighbours.labels.count + 1u, 1);
        tally->answer_count = tally->answers == NULL ? 0 : ledger->neighbours.labels.count + 1u;
        tally->counted = calloc(ledger->node_count + 1, sizeof(*tally->counted));
        tally->there = calloc(tally->axis->count + 1, sizeof(*tally->there));
        tally->base = calloc(tally->axis->count + 1, sizeof(*tally->base));
        tally->live = calloc(tally->axis->count + 1, sizeof(*tally->live));
        tally->others = calloc(tally->axis->count + 1, sizeof(*tally->others));
        if (tally->answers == NULL || tally->counted == NULL || tally->there == NULL || tally->base == NULL ||
            tally->live == NULL || tally->others == NULL)
                return false;
        tally->selects_self = answers(ledger, tally, view->labels);
        return true;
}

/* Do the pod's selector and tolerations leave the node in, as far as the term asks? */
static bool is_counted(const struct view *view, const struct rules_context *ctx, const struct tally *tally,
                       const struct ledger_node *node)
{
        const char *match = node_match_text(&ctx->ledger->matches, view->match);

        if (match == NULL || (!tally->term->by_match && !tally->term->by_taints) ||
            node_match_takes(&ctx->ledger->matches, view->match, node->name, node->index, &node->traits))
                return true;
        return (!tally->term->by_match || node_match_selects(match, node->name, &node->traits)) &&
               (!tally->term->by_taints || node_match_tolerates(match, &node->traits));
}

/* A node without one of the keys is in no domain of any of them. */
static bool has_all_keys(const struct view *view, uint32_t index)
{
        for (size_t i = 0; i < view->tally_count; i++) {
                const struct tally *tally = &view->tallies[i];

                if (tally->term->kind == NEIGHBOURS_SPREAD && tally->axis != NULL &&
                    tally->axis->of_node[index] == 0)
                        return false;
        }
        return true;
}

static void find_domains(const struct rules_context *ctx, const struct view *view, struct tally *tally)
{
        for (uint32_t i = 0; i < ctx->ledger->node_count; i++) {
                tally->counted[i] =
                        has_all_keys(view, i) && is_counted(view, ctx, tally, ctx->ledger->nodes[i]);
                if (tally->counted[i])
                        tally->there[tally->axis->of_node[i]] = true;
        }
}

/* A pod with these labels and demands is on the node, or will be. */
struct neighbour {
        const struct ledger_node *node;
        uint32_t demands, labels;
        bool leaving; /* spread does not count it any more */
        bool planned; /* by others: it may stand in the way, and is nobody's company yet, nor evens out what
                         is spread */
};

static bool all_near(const struct ledger *ledger, const struct view *view, uint32_t labels)
{
        bool any = false;

        for (size_t i = 0; i < view->tally_count; i++) {
                const struct tally *tally = &view->tallies[i];

                if (tally->term->kind != NEIGHBOURS_NEAR || tally->axis == NULL)
                        continue;
                any = true;
                if (!answers(ledger, tally, labels))
                        return false;
        }
        return any;
}

static bool counts_for(const struct rules_context *ctx, const struct view *view, const struct tally *tally,
                       const struct neighbour *n)
{
        if (tally->term->kind == NEIGHBOURS_NEAR)
                return all_near(ctx->ledger, view, n->labels);
        if (!answers(ctx->ledger, tally, n->labels))
                return false;
        return tally->term->kind == NEIGHBOURS_APART || (!n->leaving && tally->counted[n->node->index]);
}

/* The domains that the neighbour keeps this one out of. */
static void count_kept_out(const struct rules_context *ctx, struct view *view, const struct neighbour *n,
                           bool live)
{
        const struct neighbours_demands *demands = neighbours_of(&ctx->ledger->neighbours, n->demands);

        for (size_t i = 0; demands->keeps_apart && i < demands->term_count; i++) {
                const struct neighbours_term *term = &demands->terms[i];
                struct topology_axis *axis;

                if (term->kind != NEIGHBOURS_APART ||
                    !neighbours_selects(&ctx->ledger->neighbours, term, view->labels))
                        continue;
                axis = axis_of(ctx->ledger, view, term->key);
                if (axis != NULL)
                        (live ? axis->live : axis->base)[axis->of_node[n->node->index]]++;
        }
}

static void count(const struct rules_context *ctx, struct view *view, const struct neighbour *n, bool live)
{
        for (size_t i = 0; i < view->tally_count && n->labels != NEIGHBOURS_NONE; i++) {
                struct tally *tally = &view->tallies[i];
                uint32_t domain = tally->axis == NULL ? 0 : tally->axis->of_node[n->node->index];

                if (domain == 0 || !counts_for(ctx, view, tally, n))
                        continue;
                if (n->planned && tally->term->kind != NEIGHBOURS_APART)
                        tally->others[domain]++;
                else
                        (live ? tally->live : tally->base)[domain]++;
                if (tally->term->kind == NEIGHBOURS_NEAR)
                        *(n->planned ? &view->near_others : live ? &view->near_live : &view->near_base) += 1;
        }
        count_kept_out(ctx, view, n, live);
}

static void count_there(const struct rules_context *ctx, struct view *view, const struct ledger_node *node)
{
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod != view->self && (pod->labels != NEIGHBOURS_NONE || pod->request.demands != 0))
                        count(ctx, view,
                              &(struct neighbour){ .node = node,
                                                   .demands = pod->request.demands,
                                                   .labels = pod->labels,
                                                   .leaving = pod->deleting },
                              false);
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->job != view->job)
                        count(ctx, view,
                              &(struct neighbour){ .node = node,
                                                   .demands = slot->request.demands,
                                                   .labels = slot->request.labels,
                                                   .planned = true },
                              false);
}

static bool make(const struct rules_context *ctx, struct view *view)
{
        const struct ledger *ledger = ctx->ledger;
        const struct neighbours_demands *own = neighbours_of(&ledger->neighbours, view->demands);

        for (size_t i = 0; i < own->term_count; i++)
                if (!add_tally(ledger, view, &own->terms[i]))
                        return false;
        for (size_t i = 0; i < view->tally_count; i++)
                if (view->tallies[i].term->kind == NEIGHBOURS_SPREAD && view->tallies[i].axis != NULL)
                        find_domains(ctx, view, &view->tallies[i]);
        view->near_self = all_near(ledger, view, view->labels);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                count_there(ctx, view, ledger->nodes[i]);
        return true;
}

/* Does nobody's demand speak of the pod? */
static bool is_spoken_of(const struct neighbours_table *table, uint32_t labels)
{
        for (uint32_t i = 0; i < table->demand_capacity && labels != NEIGHBOURS_NONE; i++) {
                const struct neighbours_demands *demands = &table->demands[i];

                for (size_t t = 0; demands->keeps_apart && t < demands->term_count; t++)
                        if (demands->terms[t].kind == NEIGHBOURS_APART &&
                            neighbours_selects(table, &demands->terms[t], labels))
                                return true;
        }
        return false;
}

static bool is_of(const struct view *view, const struct rules_context *ctx)
{
        const struct ledger *ledger = ctx->ledger;

        return view->demands == ctx->request->demands && view->labels == labels_of(ctx) &&
               view->match == ctx->request->match && view->self == ctx->self && view->job == ctx->job &&
               view->planning == ctx->planning && view->generation == ledger->neighbours.generation &&
               view->match_generation == ledger->matches.generation && view->node_count == ledger->node_count;
}

/* What is there, without what the plan adds. */
static void start_over(struct view *view)
{
        view->near_live = view->near_base;
        view->counted = NULL;
        for (size_t i = 0; i < view->axis_count; i++)
                if (view->axes[i].live != NULL)
                        memcpy(view->axes[i].live, view->axes[i].base,
                               (view->axes[i].count + 1) * sizeof(*view->axes[i].base));
        for (size_t i = 0; i < view->tally_count; i++)
                if (view->tallies[i].axis != NULL)
                        memcpy(view->tallies[i].live, view->tallies[i].base,
                               (view->tallies[i].axis->count + 1) * sizeof(*view->tallies[i].base));
}

/* Has nothing happened but that slots came in front of those that are counted? Each that came is a change,
 * and stands in front: as many as there were changes stand in front of the last one then. Any other change,
 * and even one that has its memory again, leaves too few. */
static bool goes_on(const struct view *view, const struct ledger_job_slot *slots, uint64_t changes)
{
        if (view->slot_changes == UINT64_MAX)
                return false;
        for (; changes > view->slot_changes && slots != NULL; changes--)
                slots = slots->next_in_job;
        return changes == view->slot_changes && slots == view->counted;
}

/* A gang of thousands adds a slot, and asks. */
static void add_plan(const struct rules_context *ctx, struct view *view)
{
        const struct ledger_job_slot *slots = view->planning && view->job != NULL ? view->job->slots : NULL;
        uint64_t changes = ctx->ledger->neighbours.slot_changes;
        bool plans = view->planning && view->job != NULL;

        if (plans ? !goes_on(view, slots, changes) : view->slot_changes == UINT64_MAX)
                start_over(view);
        for (const struct ledger_job_slot *slot = slots; slot != NULL && slot != view->counted;
             slot = slot->next_in_job)
                count(ctx, view,
                      &(struct neighbour){ .node = slot->node,
                                           .demands = slot->request.demands,
                                           .labels = slot->request.labels },
                      true);
        for (size_t i = 0; i < view->tally_count; i++)
                if (view->tallies[i].term->kind == NEIGHBOURS_SPREAD && view->tallies[i].axis != NULL)
                        view->tallies[i].spread =
                                spread_find(view->tallies[i].live, view->tallies[i].there,
                                            view->tallies[i].axis->count, view->tallies[i].term->min_domains);
        view->counted = slots;
        view->slot_changes = changes;
}

static size_t bytes_of(const struct view *view)
{
        size_t bytes = sizeof(*view), nodes = view->node_count + 1;

        for (size_t i = 0; i < view->axis_count; i++)
                bytes += topology_axis_bytes(&view->axes[i], view->node_count);
        for (size_t i = 0; i < view->tally_count; i++)
                if (view->tallies[i].axis != NULL)
                        bytes += view->tallies[i].answer_count + nodes * sizeof(bool) +
                                 (view->tallies[i].axis->count + 1) * (3 * sizeof(uint32_t) + sizeof(bool));
        return bytes;
}

/* Those of another time go first, then the oldest. */
static void make_room(const struct neighbours_table *table, struct neighbour_view *views)
{
        for (size_t i = views->count; i-- > 0;)
                if (views->views[i]->generation != table->generation)
                        drop_view(views, i);
        while (views->count == VIEWS_MAX || (views->count >= VIEWS_LEAST && views->bytes > VIEWS_BYTES))
                drop_view(views, 0);
}

static struct view *anew(const struct rules_context *ctx, struct neighbours_table *table)
{
        struct neighbour_view *views = table->views;
        struct view *view = malloc(sizeof(*view));

        if (table->planning != ctx->job)
                table->generation++;
        table->planning = ctx->job;
        make_room(table, views);
        if (view == NULL)
                return NULL;
        *view = (struct view){ .demands = ctx->request->demands,
                               .labels = labels_of(ctx),
                               .match = ctx->request->match,
                               .self = ctx->self,
                               .job = ctx->job,
                               .planning = ctx->planning,
                               .generation = table->generation,
                               .match_generation = ctx->ledger->matches.generation,
                               .node_count = ctx->ledger->node_count,
                               .slot_changes = UINT64_MAX };
        view->empty = view->demands == NEIGHBOURS_NONE && !is_spoken_of(table, view->labels);
        if (!view->empty && !make(ctx, view)) {
                free_view(view);
                return NULL;
        }
        view->bytes = bytes_of(view);
        views->bytes += view->bytes;
        views->last = views->count;
        views->views[views->count++] = view;
        return view;
}

static struct view *find_view(const struct rules_context *ctx, struct neighbour_view *views)
{
        if (views->last < views->count && is_of(views->views[views->last], ctx))
                return views->views[views->last];
        for (size_t i = 0; i < views->count; i++)
                if (is_of(views->views[i], ctx)) {
                        views->last = i;
                        return views->views[i];
                }
        return NULL;
}

/* Return: NULL = nobody keeps the pod off any node. The table's views are no part of what it says. */
static struct view *view_of(const struct rules_context *ctx)
{
        struct neighbours_table *table = (struct neighbours_table *) &ctx->ledger->neighbours;
        struct view *view;

        if (table->demand_count == 0 ||
            (table->views == NULL && (table->views = calloc(1, sizeof(*table->views))) == NULL))
                return NULL;
        view = find_view(ctx, table->views);
        if (view == NULL)
                view = anew(ctx, table);
        if (view == NULL || view->empty)
                return NULL;
        if (view->slot_changes != table->slot_changes)
                add_plan(ctx, view);
        return view;
}

/* The first of a group that wants to be together may go anywhere. */
static bool may_be_first(const struct view *view)
{
        return view->near_live == 0 && view->near_self;
}

/* ... but where another plan begins with such pods it begins there, too: whoever comes second has to be
 * there. */
static bool may_begin(const struct view *view, const struct tally *tally, uint32_t domain)
{
        return may_be_first(view) && (view->near_others == 0 || tally->others[domain] > 0);
}

/* If all come that are planned there. */
static uint32_t most_in(const struct tally *tally, uint32_t domain)
{
        return tally->live[domain] + tally->others[domain];
}

static uint32_t least_beside(const struct tally *tally, uint32_t domain)
{
        return spread_least(&tally->spread, tally->there, domain, most_in(tally, domain));
}

static bool is_uneven(const struct tally *tally, uint32_t domain)
{
        return (int64_t) most_in(tally, domain) + tally->selects_self - least_beside(tally, domain) >
               (int64_t) tally->term->max_skew;
}

static bool keeps_off(const struct view *view, const struct tally *tally, uint32_t index)
{
        uint32_t domain = tally->axis == NULL ? 0 : tally->axis->of_node[index];

        if (tally->axis == NULL)
                return false;
        switch (tally->term->kind) {
        case NEIGHBOURS_NEAR:
                return domain == 0 || (tally->live[domain] == 0 && !may_begin(view, tally, domain));
        case NEIGHBOURS_APART:
                return domain != 0 && tally->live[domain] > 0;
        case NEIGHBOURS_SPREAD:
                return domain == 0 || is_uneven(tally, domain);
        }
        return false;
}

/* The axis on which others keep it off, or NULL. */
static const struct topology_axis *kept_by_others(const struct view *view, uint32_t index)
{
        for (size_t i = 0; i < view->axis_count; i++) {
                const struct topology_axis *axis = &view->axes[i];

                if (axis->live != NULL && axis->of_node[index] != 0 && axis->live[axis->of_node[index]] > 0)
                        return axis;
        }
        return NULL;
}

bool neighbour_view_takes(const struct rules_context *ctx, const struct ledger_node *node)
{
        const struct view *view = view_of(ctx);

        if (view == NULL)
                return true;
        for (size_t i = 0; i < view->tally_count; i++)
                if (keeps_off(view, &view->tallies[i], node->index))
                        return false;
        return kept_by_others(view, node->index) == NULL;
}

static void say_term(const struct tally *tally, uint32_t index, char *ret, size_t bytes)
{
        const struct topology_axis *axis = tally->axis;
        uint32_t domain = axis->of_node[index];

        if (domain == 0)
                (void) text_format(ret, bytes, "the node has no label %s, by which the pod is placed",
                                   axis->key);
        else if (tally->term->kind == NEIGHBOURS_NEAR)
                (void) text_format(ret, bytes, "no pod that its pod affinity asks for is in %s",
                                   axis->names[domain]->text);
        else if (tally->term->kind == NEIGHBOURS_APART)
                (void) text_format(ret, bytes, "its pod anti-affinity: %u such pods are in %s",
                                   tally->live[domain], axis->names[domain]->text);
        else
                (void) text_format(ret, bytes,
                                   "topology spread: %u such pods in %s, %u elsewhere, maxSkew %u",
                                   most_in(tally, domain), axis->names[domain]->text,
                                   least_beside(tally, domain), tally->term->max_skew);
}

void neighbour_view_why(const struct rules_context *ctx, const struct ledger_node *node, char *ret,
                        size_t ret_bytes)
{
        const struct view *view = view_of(ctx);
        const struct topology_axis *axis = view == NULL ? NULL : kept_by_others(view, node->index);

        (void) text_copy(ret, ret_bytes, "");
        if (axis != NULL)
                (void) text_format(ret, ret_bytes, "the pod anti-affinity of %u others keeps it out of %s",
                                   axis->live[axis->of_node[node->index]],
                                   axis->names[axis->of_node[node->index]]->text);
        for (size_t i = 0; view != NULL && axis == NULL && i < view->tally_count; i++)
                if (keeps_off(view, &view->tallies[i], node->index)) {
                        say_term(&view->tallies[i], node->index, ret, ret_bytes);
                        return;
                }
}

/* The term that it selects itself by, or NULL. */
static const struct tally *own_group(const struct view *view)
{
        for (size_t i = 0; view != NULL && view->near_self && i < view->tally_count; i++)
                if (view->tallies[i].term->kind == NEIGHBOURS_NEAR && view->tallies[i].axis != NULL)
                        return &view->tallies[i];
        return NULL;
}

bool neighbour_view_gathers(const struct rules_context *ctx)
{
        const struct view *view = view_of(ctx);

        return own_group(view) != NULL && may_be_first(view);
}

uint32_t neighbour_view_domain(const struct rules_context *ctx, const struct ledger_node *node)
{
        const struct tally *group = own_group(view_of(ctx));

        return group == NULL ? 0 : group->axis->of_node[node->index];
}
