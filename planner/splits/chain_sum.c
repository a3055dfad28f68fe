/* The second pass of the chain planner: among the plans within a period, the one with the least sum of loads.
 *
 * The same walk over mixes of devices, level by level, but a begin now carries its least sum so far. It is
 * kept only if no mix that uses a subset of the devices reaches the same begin for as little, and if it can
 * still beat the best complete plan. Only two levels of the dense "least so far" tables are alive at a time.
 *
 * Example (that of chain_search.c with three devices, period 6): 4 + 1 | 2 + 3 + 1 sums to 11, 4 + 1 | 2 + 2
 * | 3 + 1 to 13: the first is kept, with a device to spare. Invariant: least[mix][begin] is the least sum
 * over all mixes within the mix; a begin that costs more than that can be replaced in any plan. */
#include "planner/splits/chain_sum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

struct entry { /* a suffix of the chain that begins at `begin`, and the stage it begins with */
        double sum_ms;
        uint32_t begin, end;
        uint8_t class_index, right; /* `right`: link class of the stage behind */
};

struct walk {
        struct chain_search *search;
        size_t pairs, cells; /* link pairs; pairs * (n + 1) */
        struct entry *entries;
        size_t entry_count, entry_capacity;
        size_t *start; /* [state][pair] -> first entry; the next pair's start is its end */
        size_t *end;
        uint32_t *position;          /* of a state within its level */
        double *least, *least_below; /* [position][pair][n + 1] */
        double *candidate;           /* [pair][n + 1] of the state at hand */
        struct entry *origin;        /* where each candidate comes from */
        double *rest;                /* lower bound of the layers before a begin */
        double best_ms;              /* of a complete plan */
        size_t best_entry, best_state;
};

static void walk_free(struct walk *w)
{
        free(w->entries);
        free(w->start);
        free(w->end);
        free(w->position);
        free(w->least);
        free(w->least_below);
        free(w->candidate);
        free(w->origin);
        free(w->rest);
}

static int walk_init(struct walk *w, struct chain_search *s)
{
        size_t widest = 1;

        memset(w, 0, sizeof(*w));
        w->search = s;
        w->pairs = s->links * s->links;
        w->cells = w->pairs * (s->n + 1);
        w->best_ms = INFINITY;
        for (size_t level = 0; level <= s->devices; level++)
                if (s->level_begin[level + 1] - s->level_begin[level] > widest)
                        widest = s->level_begin[level + 1] - s->level_begin[level];
        w->start = calloc(s->states * w->pairs, sizeof(*w->start));
        w->end = calloc(s->states * w->pairs, sizeof(*w->end));
        w->position = calloc(s->states, sizeof(*w->position));
        w->least = malloc(widest * w->cells * sizeof(*w->least));
        w->least_below = malloc(widest * w->cells * sizeof(*w->least_below));
        w->candidate = malloc(w->cells * sizeof(*w->candidate));
        w->origin = calloc(w->cells, sizeof(*w->origin));
        w->rest = calloc(s->n + 1, sizeof(*w->rest));
        if (w->start == NULL || w->end == NULL || w->position == NULL || w->least == NULL ||
            w->least_below == NULL || w->candidate == NULL || w->origin == NULL || w->rest == NULL)
                return -ENOMEM;
        for (size_t level = 0; level <= s->devices; level++)
                for (size_t x = s->level_begin[level]; x < s->level_begin[level + 1]; x++)
                        w->position[s->by_level[x]] = (uint32_t) (x - s->level_begin[level]);
        for (size_t i = 0; i < s->n; i++) {
                double fastest = INFINITY;

                for (size_t c = 0; c < s->classes; c++)
                        if (s->problem->classes[c].count > 0 && s->problem->classes[c].ms[i] >= 0)
                                fastest = fmin(fastest, s->problem->classes[c].ms[i]);
                w->rest[i + 1] = w->rest[i] + fastest;
        }
        return 0;
}

static int append(struct walk *w, const struct entry *entry)
{
        struct entry *added = array_add(&w->entries, &w->entry_count, &w->entry_capacity, sizeof(*added));

        if (added == NULL)
                return -ENOMEM;
        *added = *entry;
        return 0;
}

/* Every begin that a stage of class c before `from` reaches within the period, for every device to its left.
 */
static void reach_from(struct walk *w, size_t c, size_t from_end, size_t right, const struct entry *from)
{
        const struct chain_search *s = w->search;
        size_t j = from->begin, own = s->link_of[c], first = chain_search_first_begin(s, c, from_end, j);

        for (size_t left = 0; left < s->links; left++) {
                const uint64_t *mask = chain_search_mask(s, c, right, left, j);
                size_t base = (own * s->links + left) * (s->n + 1);

                for (size_t i = j; i-- > first;) {
                        double sum;

                        if ((mask[i / 64] >> (i % 64) & 1) == 0)
                                continue;
                        sum = from->sum_ms + chain_search_load_ms(s, c, i, j, left, right);
                        if (sum >= w->candidate[base + i])
                                continue;
                        w->candidate[base + i] = sum;
                        w->origin[base + i] = (struct entry){ .sum_ms = sum,
                                                              .begin = (uint32_t) i,
                                                              .end = (uint32_t) j,
                                                              .class_index = (uint8_t) c,
                                                              .right = (uint8_t) right };
                }
        }
}

static void gather(struct walk *w, size_t state, size_t from_end)
{
        const struct chain_search *s = w->search;

        for (size_t v = 0; v < w->cells; v++)
                w->candidate[v] = INFINITY;
        for (size_t c = 0; c < s->classes; c++) {
                size_t smaller = state - s->stride[c];

                if (chain_search_count_of(s, state, c) == 0)
                        continue;
                for (size_t right = 0; right < s->links; right++) {
                        size_t pair = smaller * w->pairs + right * s->links + s->link_of[c];

                        for (size_t e = w->start[pair]; e < w->end[pair]; e++) {
                                struct entry from = w->entries[e];

                                reach_from(w, c, from_end, right, &from);
                        }
                }
        }
}

static void inherit(struct walk *w, size_t state, double *least)
{
        const struct chain_search *s = w->search;

        for (size_t v = 0; v < w->cells; v++)
                least[v] = INFINITY;
        for (size_t c = 0; c < s->classes; c++) {
                const double *below;

                if (chain_search_count_of(s, state, c) == 0)
                        continue;
                below = w->least_below + w->position[state - s->stride[c]] * w->cells;
                for (size_t v = 0; v < w->cells; v++)
                        least[v] = below[v] < least[v] ? below[v] : least[v];
        }
}

/* Keeps the candidates that are worth it. Return: how many, or -ENOMEM. */
static long keep(struct walk *w, size_t state, double *least)
{
        const struct chain_search *s = w->search;
        long kept = 0;

        for (size_t pair = 0; pair < w->pairs; pair++) {
                w->start[state * w->pairs + pair] = w->entry_count;
                for (size_t i = 0; i <= s->n; i++) {
                        size_t v = pair * (s->n + 1) + i;

                        if (w->candidate[v] >= least[v] || w->candidate[v] + w->rest[i] >= w->best_ms)
                                continue;
                        least[v] = w->candidate[v];
                        if (i == 0) {
                                w->best_ms = w->candidate[v];
                                w->best_entry = w->entry_count;
                                w->best_state = state;
                        }
                        if (append(w, &w->origin[v]) < 0)
                                return -ENOMEM;
                        kept++;
                }
                w->end[state * w->pairs + pair] = w->entry_count;
        }
        return kept;
}

static int walk_levels(struct walk *w)
{
        struct chain_search *s = w->search;
        struct entry empty = { .begin = (uint32_t) s->n, .end = (uint32_t) s->n };
        long kept = 1;

        for (size_t v = 0; v < w->cells; v++)
                w->least_below[v] = INFINITY;
        for (size_t left = 0; left < s->links; left++) {
                w->start[left] = w->entry_count;
                if (append(w, &empty) < 0)
                        return -ENOMEM;
                w->end[left] = w->entry_count;
        }
        for (size_t level = 1; level <= s->devices && kept > 0; level++) {
                double *swap;

                kept = 0;
                for (size_t x = s->level_begin[level]; x < s->level_begin[level + 1]; x++) {
                        size_t state = s->by_level[x];
                        double *least = w->least + (x - s->level_begin[level]) * w->cells;
                        long n;

                        gather(w, state, level);
                        inherit(w, state, least);
                        n = keep(w, state, least);
                        if (n < 0)
                                return -ENOMEM;
                        kept += n;
                }
                swap = w->least;
                w->least = w->least_below;
                w->least_below = swap;
        }
        return 0;
}

/* From layer 0 backwards through the walk: each entry names its stage and where the next one begins. */
static int collect(const struct walk *w, struct chain_stage **ret, size_t *ret_count)
{
        const struct chain_search *s = w->search;
        struct chain_stage *stages = calloc(s->devices + 1, sizeof(*stages));
        const struct entry *entry = &w->entries[w->best_entry];
        size_t state = w->best_state, count = 0;

        if (stages == NULL)
                return -ENOMEM;
        for (;;) {
                size_t c = entry->class_index, pair, e;

                stages[count++] = (struct chain_stage){ .class_index = c,
                                                        .first = entry->begin,
                                                        .last = entry->end - 1 };
                if (entry->end == s->n)
                        break;
                state -= s->stride[c];
                pair = state * w->pairs + entry->right * s->links + s->link_of[c];
                for (e = w->start[pair]; w->entries[e].begin != entry->end; e++)
                        ;
                entry = &w->entries[e];
        }
        *ret = stages;
        *ret_count = count;
        return 0;
}

int chain_sum_least(struct chain_search *s, struct chain_stage **ret, size_t *ret_count)
{
        struct walk w;
        int r = walk_init(&w, s);

        if (r == 0)
                r = walk_levels(&w);
        if (r == 0)
                r = isfinite(w.best_ms) ? collect(&w, ret, ret_count) : -ENODATA;
        walk_free(&w);
        return r;
}
