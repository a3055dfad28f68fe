/* Is a period possible? A walk over the mixes of devices, level by level, whose states are bit sets of
 * layers.
 *
 * Example: layers of 4, 2 and 3 ms on two equal devices, 1 ms for each output that crosses a cut. Period 6:
 * as the last stage a device may begin at layer 2 (3 + 1) or 1 (2 + 3 + 1), the set {1, 2}; before 1 the
 * other device takes layer 0 (4 + 1): arrived. Period 5: the last stage begins at 2 alone; before it layers 0
 * and 1 would take 7, and layer 1 by itself would leave layer 0 without a device: not possible.
 *
 * Invariant: a begin is fresh in a state if the devices of the state, all of them, reach it and no smaller
 * mix does; whatever can be placed before a begin with many devices left can be placed with more, so only
 * fresh begins are extended. Bisection with a greedy fill, which is enough for equal devices, is not here:
 * which device comes next depends on memory, allowed layers and the link of its neighbour. */
#include "planner/splits/chain_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_MAX_BYTES ((size_t) 3 << 30)

double chain_search_boundary_ms(const struct chain_problem *p, size_t boundary, double bytes_per_ms)
{
        double directions = p->schedule == CHAIN_INFERENCE ? 1 : 2;

        return (double) p->activation_bytes[boundary - 1] * directions / bytes_per_ms;
}

double chain_search_load_ms(const struct chain_search *s, size_t c, size_t i, size_t j, size_t left,
                            size_t right)
{
        double own = s->problem->classes[c].bytes_per_ms;
        double load = s->problem->classes[c].begin_ms + s->prefix[c * (s->n + 1) + j] -
                      s->prefix[c * (s->n + 1) + i];

        if (i > 0)
                load += chain_search_boundary_ms(s->problem, i, fmin(own, s->link_speed[left]));
        if (j < s->n)
                load += chain_search_boundary_ms(s->problem, j, fmin(own, s->link_speed[right]));
        return load;
}

unsigned chain_search_count_of(const struct chain_search *s, size_t state, size_t c)
{
        return (unsigned) (state / s->stride[c] % (s->problem->classes[c].count + 1));
}

size_t chain_search_first_begin(const struct chain_search *s, size_t c, size_t from_end, size_t j)
{
        size_t held = from_end < s->held_max ? from_end : s->held_max;
        size_t memory = s->reach[(c * s->held_max + held - 1) * (s->n + 1) + j];
        size_t allowed = s->allowed[c * (s->n + 1) + j];

        return memory > allowed ? memory : allowed;
}

/* The largest number of microbatches held that occurs, so that `reach` has no more rows than needed. */
static size_t rows_of_reach(const struct chain_problem *p, size_t devices)
{
        if (p->schedule != CHAIN_1F1B)
                return 1;
        return p->microbatches < devices ? p->microbatches : devices;
}

static unsigned held_of_row(const struct chain_problem *p, size_t row)
{
        if (p->schedule == CHAIN_INFERENCE)
                return 1;
        return p->schedule == CHAIN_GPIPE ? p->microbatches : (unsigned) row + 1;
}

static void fill_reach(struct chain_search *s, size_t c, size_t row)
{
        const struct chain_problem *p = s->problem;
        uint32_t *reach = s->reach + (c * s->held_max + row) * (s->n + 1);
        unsigned held = held_of_row(p, row);
        unsigned __int128 memory = 0;
        size_t i = 0;

        reach[0] = 0;
        for (size_t j = 1; j <= s->n; j++) {
                memory += p->memory_bytes[j - 1] + (unsigned __int128) held * p->held_bytes[j - 1];
                for (; i < j && memory > p->classes[c].memory_bytes; i++)
                        memory -= p->memory_bytes[i] + (unsigned __int128) held * p->held_bytes[i];
                reach[j] = (uint32_t) i;
        }
}

static void fill_class(struct chain_search *s, size_t c)
{
        const double *ms = s->problem->classes[c].ms;
        double *prefix = s->prefix + c * (s->n + 1);
        uint32_t *allowed = s->allowed + c * (s->n + 1);

        prefix[0] = 0;
        allowed[0] = 0;
        for (size_t i = 0; i < s->n; i++) {
                prefix[i + 1] = prefix[i] + (ms[i] < 0 ? 0 : ms[i]);
                allowed[i + 1] = ms[i] < 0 ? (uint32_t) i + 1 : allowed[i];
        }
        for (size_t row = 0; row < s->held_max; row++)
                fill_reach(s, c, row);
}

static void find_links(struct chain_search *s)
{
        for (size_t c = 0; c < s->classes; c++) {
                size_t l = 0;

                while (l < s->links && s->link_speed[l] != s->problem->classes[c].bytes_per_ms)
                        l++;
                s->link_of[c] = l;
                s->link_speed[l] = s->problem->classes[c].bytes_per_ms;
                if (l == s->links)
                        s->links++;
        }
}

/* Counting sort of the states by how many devices they use. */
static int order_states(struct chain_search *s)
{
        s->by_level = calloc(s->states, sizeof(*s->by_level));
        s->level_begin = calloc(s->devices + 3, sizeof(*s->level_begin));
        if (s->by_level == NULL || s->level_begin == NULL)
                return -ENOMEM;
        for (int pass = 0; pass < 2; pass++) {
                for (size_t k = 0; k < s->states; k++) {
                        size_t level = 0;

                        for (size_t c = 0; c < s->classes; c++)
                                level += chain_search_count_of(s, k, c);
                        if (pass == 0)
                                s->level_begin[level + 2]++;
                        else
                                s->by_level[s->level_begin[level + 1]++] = (uint32_t) k;
                }
                for (size_t level = 1; pass == 0 && level <= s->devices + 1; level++)
                        s->level_begin[level + 1] += s->level_begin[level];
        }
        return 0;
}

static int allocate(struct chain_search *s, struct err *err)
{
        size_t pairs = s->links * s->links, sets = s->states * pairs * s->words;
        size_t masks = s->classes * pairs * (s->n + 1) * s->words;

        if ((masks + 2 * sets) * sizeof(uint64_t) > SEARCH_MAX_BYTES)
                return err_set(err, -E2BIG,
                               "too large to solve exactly: %zu layers, %zu mixes of devices, %zu link "
                               "speeds need %zu MiB",
                               s->n, s->states, s->links, (masks + 2 * sets) >> 17);
        s->prefix = calloc(s->classes * (s->n + 1), sizeof(*s->prefix));
        s->allowed = calloc(s->classes * (s->n + 1), sizeof(*s->allowed));
        s->reach = calloc(s->classes * s->held_max * (s->n + 1), sizeof(*s->reach));
        s->masks = calloc(masks, sizeof(*s->masks));
        s->fresh = malloc(sets * sizeof(*s->fresh));
        s->seen = malloc(sets * sizeof(*s->seen));
        if (s->prefix == NULL || s->allowed == NULL || s->reach == NULL || s->masks == NULL ||
            s->fresh == NULL || s->seen == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu layers and %zu mixes of devices", s->n,
                               s->states);
        return 0;
}

int chain_search_init(struct chain_search *s, const struct chain_problem *problem, struct err *err)
{
        int r;

        memset(s, 0, sizeof(*s));
        s->problem = problem;
        s->n = problem->layer_count;
        s->words = (s->n + 64) / 64;
        s->classes = problem->class_count;
        s->states = 1;
        for (size_t c = 0; c < s->classes; c++) {
                s->stride[c] = s->states;
                s->devices += problem->classes[c].count;
                if (problem->classes[c].count >= CHAIN_STATES_MAX / s->states)
                        return err_set(err, -E2BIG,
                                       "more than %zu mixes of devices: too many to solve exactly",
                                       CHAIN_STATES_MAX);
                s->states *= problem->classes[c].count + 1;
        }
        s->held_max = rows_of_reach(problem, s->devices);
        if (s->held_max == 0)
                s->held_max = 1;
        find_links(s);
        r = allocate(s, err);
        if (r < 0)
                return r;
        for (size_t c = 0; c < s->classes; c++)
                fill_class(s, c);
        r = order_states(s);
        return r < 0 ? err_set(err, r, "no memory for %zu mixes of devices", s->states) : 0;
}

void chain_search_free(struct chain_search *s)
{
        free(s->prefix);
        free(s->allowed);
        free(s->reach);
        free(s->by_level);
        free(s->level_begin);
        free(s->masks);
        free(s->fresh);
        free(s->seen);
        memset(s, 0, sizeof(*s));
}

static void fill_mask(struct chain_search *s, size_t c, size_t right, size_t left, size_t j, double period_ms)
{
        uint64_t *mask = chain_search_mask(s, c, right, left, j);
        const double *prefix = s->prefix + c * (s->n + 1);
        size_t first = s->allowed[c * (s->n + 1) + j];

        memset(mask, 0, s->words * sizeof(*mask));
        for (size_t i = j; i-- > first;) {
                if (prefix[j] - prefix[i] > period_ms)
                        break;
                if (chain_search_load_ms(s, c, i, j, left, right) <= period_ms)
                        mask[i / 64] |= (uint64_t) 1 << (i % 64);
        }
}

void chain_search_set_period(struct chain_search *s, double period_ms)
{
        for (size_t c = 0; c < s->classes; c++)
                for (size_t right = 0; right < s->links; right++)
                        for (size_t left = 0; left < s->links; left++)
                                for (size_t j = 1; j <= s->n; j++)
                                        fill_mask(s, c, right, left, j, period_ms);
}

static uint64_t *set_of(const struct chain_search *s, uint64_t *sets, size_t state, size_t a, size_t b)
{
        return sets + ((state * s->links + a) * s->links + b) * s->words;
}

/* Adds to the state's fresh begins what one more device of class c in front of a smaller state reaches. */
static void extend(struct chain_search *s, size_t state, size_t c, size_t from_end)
{
        size_t smaller = state - s->stride[c], own = s->link_of[c];

        for (size_t a = 0; a < s->links; a++) {
                const uint64_t *source = set_of(s, s->fresh, smaller, a, own);

                for (size_t w = 0; w < s->words; w++)
                        for (uint64_t bits = source[w]; bits != 0; bits &= bits - 1) {
                                size_t j = w * 64 + (size_t) __builtin_ctzll(bits);
                                size_t first = chain_search_first_begin(s, c, from_end, j);

                                for (size_t left = 0; left < s->links && first < j; left++) {
                                        const uint64_t *mask = chain_search_mask(s, c, a, left, j);
                                        uint64_t *target = set_of(s, s->fresh, state, own, left);
                                        size_t v = first / 64;

                                        target[v] |= mask[v] & (~(uint64_t) 0 << (first % 64));
                                        for (v++; v <= j / 64; v++)
                                                target[v] |= mask[v];
                                }
                        }
        }
}

/* Fresh begins are those that no smaller state has seen. Return: does the state reach layer 0? */
static bool settle(struct chain_search *s, size_t state)
{
        size_t size = s->links * s->links * s->words;
        uint64_t *fresh = set_of(s, s->fresh, state, 0, 0), *seen = set_of(s, s->seen, state, 0, 0);
        bool arrived = false;

        memset(seen, 0, size * sizeof(*seen));
        for (size_t c = 0; c < s->classes; c++) {
                const uint64_t *below;

                if (chain_search_count_of(s, state, c) == 0)
                        continue;
                below = set_of(s, s->seen, state - s->stride[c], 0, 0);
                for (size_t v = 0; v < size; v++)
                        seen[v] |= below[v];
        }
        for (size_t v = 0; v < size; v++) {
                fresh[v] &= ~seen[v];
                seen[v] |= fresh[v];
                arrived = arrived || (v % s->words == 0 && (fresh[v] & 1) != 0);
        }
        return arrived;
}

bool chain_search_is_feasible(struct chain_search *s, double period_ms)
{
        size_t size = s->links * s->links * s->words;
        bool arrived = false;

        chain_search_set_period(s, period_ms);
        memset(set_of(s, s->fresh, 0, 0, 0), 0, size * sizeof(uint64_t));
        memset(set_of(s, s->seen, 0, 0, 0), 0, size * sizeof(uint64_t));
        for (size_t b = 0; b < s->links; b++) /* the empty suffix begins behind the last layer */
                set_of(s, s->fresh, 0, 0, b)[s->n / 64] |= (uint64_t) 1 << (s->n % 64);

        for (size_t level = 1; level <= s->devices && !arrived; level++)
                for (size_t x = s->level_begin[level]; x < s->level_begin[level + 1] && !arrived; x++) {
                        size_t state = s->by_level[x];

                        memset(set_of(s, s->fresh, state, 0, 0), 0, size * sizeof(uint64_t));
                        for (size_t c = 0; c < s->classes; c++)
                                if (chain_search_count_of(s, state, c) > 0)
                                        extend(s, state, c, level);
                        arrived = settle(s, state);
                }
        return arrived;
}
