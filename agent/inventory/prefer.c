/* Prefer: the order of sets, and two ways to its first: every set where that is affordable, else a greedy
 * growth.
 *
 * A worked example: four devices on two switches, {0 1} and {2 3}, in no group, two wanted, none forced.
 * Depth first the sets come as 01, 02, 03, 12, 13, 23. 01 weighs 301 (one switch) and is kept; 02 to 13 weigh
 * 1 each and come after it; 23 weighs 301 too, and a tie goes to the set that is kept, which has the smaller
 * positions. The answer is 01.
 *
 * Invariant of both ways: `rank` is that of `set` but for its weight, put() and take_back() keep it so in
 * O(1), and whatever is in `best` comes before every set that was considered. Groups touched never become
 * fewer when a device is added: a branch that touches more than the best does is cut. */
#include "agent/inventory/prefer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Where a set stands in the order; compared member by member. */
struct rank {
        uint32_t groups, broken, whole; /* touched; whole ones broken; whole ones taken completely */
        uint64_t weight;
        uint32_t left; /* over in the groups touched; of shared devices: shares taken before */
};

/* A choice of `size` more out of `count` candidates (one id each), beside what is taken already. */
struct search {
        const struct prefer_map *map;
        const uint16_t *free_ids; /* per device of the map, before the choice */
        bool shared;
        size_t *candidates; /* devices of the map, ascending */
        size_t count, size;
        size_t *set; /* what is in so far, must first; room for all */
        size_t set_count, must_count;
        uint16_t *group_free, *group_taken; /* per group: free devices before; in the set */
        struct rank rank;                   /* of the set, but its weight */
        size_t *best;
        bool have_best;
        struct rank best_rank;
};

static uint64_t weight_to_set(const struct search *s, size_t device)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < s->set_count; i++)
                if (s->set[i] != device)
                        sum += prefer_map_weight(s->map, device, s->set[i]);
        return sum;
}

/* What counts before the weight. Return: < 0 when a comes before b. */
static int compare_groups(const struct rank *a, const struct rank *b)
{
        if (a->groups != b->groups)
                return a->groups < b->groups ? -1 : 1;
        if (a->broken != b->broken)
                return a->broken < b->broken ? -1 : 1;
        return a->whole == b->whole ? 0 : a->whole > b->whole ? -1 : 1;
}

static int compare_ranks(const struct rank *a, const struct rank *b)
{
        int order = compare_groups(a, b);

        if (order != 0)
                return order;
        if (a->weight != b->weight)
                return a->weight > b->weight ? -1 : 1;
        return a->left == b->left ? 0 : a->left < b->left ? -1 : 1;
}

/* What one more device of its group does to the rank, `taken` of the group being in the set already; `sign`
 * UINT32_MAX takes it back. */
static void rank_step(const struct search *s, struct rank *rank, size_t device, uint16_t taken, uint32_t sign)
{
        size_t group = s->map->devices[device].group;
        uint16_t have = s->group_free[group];

        if (group == 0 || taken == 0) /* devices of no group are each their own */
                rank->groups += sign;
        if (s->shared) {
                rank->left += sign * (s->map->shares - s->free_ids[device]);
                return;
        }
        rank->left += sign * (taken == 0 ? have - 1u : UINT32_MAX);
        if (have != s->map->group_sizes[group])
                return;
        if (taken + 1 == have) {
                rank->whole += sign;
                rank->broken -= taken > 0 ? sign : 0;
        } else if (taken == 0)
                rank->broken += sign;
}

static void put(struct search *s, size_t device)
{
        size_t group = s->map->devices[device].group;

        rank_step(s, &s->rank, device, s->group_taken[group]++, 1);
        s->set[s->set_count++] = device;
}

static void take_back(struct search *s)
{
        size_t device = s->set[--s->set_count], group = s->map->devices[device].group;

        rank_step(s, &s->rank, device, --s->group_taken[group], UINT32_MAX);
}

static int compare_positions(const void *a, const void *b)
{
        size_t x = *(const size_t *) a, y = *(const size_t *) b;

        return x < y ? -1 : x > y;
}

/* Keeps the set if it comes before the best so far. Depth first meets sets in ascending order, so that there
 * a tie goes to the one that is kept already; the greedy way compares positions. */
static void consider(struct search *s, uint64_t weight, bool compare_ties)
{
        struct rank rank = s->rank;
        size_t n = s->set_count - s->must_count;
        int order;

        rank.weight = weight;
        order = s->have_best ? compare_ranks(&rank, &s->best_rank) : -1;

        if (order == 0 && compare_ties) {
                qsort(s->set + s->must_count, n, sizeof(*s->set), compare_positions);
                for (size_t i = 0; i < n && order == 0; i++)
                        order = s->set[s->must_count + i] < s->best[i]
                                        ? -1
                                        : s->set[s->must_count + i] > s->best[i];
        }
        if (order >= 0)
                return;
        s->have_best = true;
        s->best_rank = rank;
        memcpy(s->best, s->set + s->must_count, n * sizeof(*s->best));
        if (compare_ties)
                qsort(s->best, n, sizeof(*s->best), compare_positions);
}

/* The last of a set: most sets differ from the one before in it alone, and all of one group stand alike in
 * the order up to the weight. */
static void every_last(struct search *s, size_t from, uint64_t weight, const uint64_t *gains)
{
        size_t known = SIZE_MAX; /* the group that `order` is of */
        int order = 0;

        for (size_t i = from; i < s->count; i++) {
                size_t device = s->candidates[i], group = s->map->devices[device].group;

                if (s->have_best && s->rank.groups == s->best_rank.groups &&
                    (group == 0 || s->group_taken[group] == 0))
                        continue; /* it would be one group more */
                if (s->have_best && group != known) {
                        struct rank rank = s->rank;

                        rank_step(s, &rank, device, s->group_taken[group], 1);
                        order = compare_groups(&rank, &s->best_rank);
                        known = group;
                }
                if (s->have_best && (order > 0 || (order == 0 && weight + gains[i] < s->best_rank.weight)))
                        continue;
                put(s, device);
                consider(s, weight + gains[i], false);
                take_back(s);
                known = SIZE_MAX; /* the best may be another one */
        }
}

/* @gains: per candidate, its weight to what is in; the next ones follow for each one more that is. */
static void every_set(struct search *s, size_t from, size_t more, uint64_t weight, uint64_t *gains)
{
        uint64_t *next = gains + s->count;

        if (more == 1) {
                every_last(s, from, weight, gains);
                return;
        }
        for (size_t i = from; i + more <= s->count; i++) {
                for (size_t c = i + 1; c < s->count; c++)
                        next[c] = gains[c] + prefer_map_weight(s->map, s->candidates[c], s->candidates[i]);
                put(s, s->candidates[i]);
                if (!s->have_best || s->rank.groups <= s->best_rank.groups) /* they never become fewer */
                        every_set(s, i + 1, more - 1, weight + gains[i], next);
                take_back(s);
        }
}

static int exactly(struct search *s)
{
        CLEANUP(free_p) uint64_t *gains = calloc((s->size + 1) * s->count, sizeof(*gains));

        if (gains == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < s->count; i++)
                gains[i] = weight_to_set(s, s->candidates[i]);
        every_set(s, 0, s->size, 0, gains);
        return 0;
}

/* Steps of the search for k of n: a set of d is reached C(n - k + d, d) times and costs d. 194,480 at 9
 * of 16. */
static bool within_reach(size_t n, size_t k)
{
        uint64_t sets = 1, steps = 0;

        for (size_t d = 1; d <= k; d++) {
                sets = sets * (n - k + d) / d;
                steps += sets * d;
                if (steps > PREFER_WORK)
                        return false;
        }
        return true;
}

/* Candidates of one group, by how many it has. */
struct bin {
        size_t group, have;
        bool touched, whole;
};

static int by_room(const void *a, const void *b)
{
        const struct bin *x = a, *y = b;

        if (x->touched != y->touched)
                return x->touched ? -1 : 1;
        if (x->have != y->have)
                return x->have > y->have ? -1 : 1;
        return x->group < y->group ? -1 : x->group > y->group;
}

static size_t sort_bins(const struct search *s, struct bin *bins)
{
        size_t n = 0;

        for (size_t g = 0; g < s->map->group_count; g++) {
                struct bin bin = { .group = g,
                                   .touched = s->group_taken[g] > 0,
                                   .whole = s->group_free[g] == s->map->group_sizes[g] };

                for (size_t i = 0; i < s->count; i++)
                        bin.have += s->map->devices[s->candidates[i]].group == g;
                if (bin.have > 0)
                        bins[n++] = bin;
        }
        qsort(bins, n, sizeof(*bins), by_room);
        return n;
}

struct growth {
        struct search *search;
        const bool *allowed; /* per group */
        uint64_t *gains;     /* per candidate: weight to the set */
        bool *in, *open;     /* per candidate: it is; its group is allowed */
        uint64_t weight;
        uint64_t *work;
};

/* Takes one more in. Return: the one that gains most next, -1 = there is none. */
static ssize_t grow_by(struct growth *g, size_t candidate)
{
        struct search *s = g->search;
        size_t device = s->candidates[candidate];
        ssize_t best = -1;

        g->in[candidate] = true;
        g->weight += g->gains[candidate];
        put(s, device);
        for (size_t i = 0; i < s->count; i++) {
                if (g->in[i])
                        continue;
                g->gains[i] += prefer_map_weight(s->map, device, s->candidates[i]);
                if (g->open[i] && (best < 0 || g->gains[i] > g->gains[best]))
                        best = (ssize_t) i;
        }
        *g->work += s->count * 2;
        return best;
}

/* One set, grown from a seed within the allowed groups. */
static void grow(struct growth *g, size_t seed)
{
        struct search *s = g->search;
        ssize_t next;

        g->weight = 0;
        memset(g->in, 0, s->count * sizeof(*g->in));
        for (size_t i = 0; i < s->count; i++)
                g->gains[i] = weight_to_set(s, s->candidates[i]);
        *g->work += s->count * (s->must_count + 1);
        next = grow_by(g, seed);
        while (s->set_count < s->must_count + s->size && next >= 0)
                next = grow_by(g, (size_t) next);
        if (s->set_count == s->must_count + s->size)
                consider(s, g->weight, true);
        while (s->set_count > s->must_count)
                take_back(s);
}

/* Does an earlier candidate stand for this one? What grows from it would weigh the same, and come first. */
static bool is_represented(const struct growth *g, size_t candidate)
{
        const struct search *s = g->search;
        const struct prefer_map_device *own = &s->map->devices[s->candidates[candidate]];

        for (size_t i = 0; i < candidate && !s->map->linked && !s->shared; i++) {
                const struct prefer_map_device *other = &s->map->devices[s->candidates[i]];

                if (own->group == other->group && own->pci_switch == other->pci_switch &&
                    own->pci_port == other->pci_port && own->numa == other->numa)
                        return true;
        }
        return false;
}

static void grow_from_seeds(struct growth *g)
{
        struct search *s = g->search;

        for (size_t i = 0; i < s->count; i++)
                g->open[i] = g->allowed[s->map->devices[s->candidates[i]].group];
        for (size_t i = 0; i < s->count; i++) {
                if (!g->allowed[s->map->devices[s->candidates[i]].group] || is_represented(g, i))
                        continue;
                if (*g->work >= PREFER_GREEDY && s->have_best)
                        return;
                grow(g, i);
        }
}

/* Which groups may be used: the fewest that hold enough; each that can be the last is tried as such. */
static void try_bins(struct growth *g, struct bin *bins, size_t bin_count, bool *allowed)
{
        struct search *s = g->search;
        size_t have = 0, fixed = 0;

        while (fixed < bin_count && (bins[fixed].touched || have + bins[fixed].have < s->size)) {
                allowed[bins[fixed].group] = true;
                have += bins[fixed++].have;
        }
        if (have >= s->size) {
                grow_from_seeds(g);
                return;
        }
        for (size_t last = fixed; last < bin_count; last++) {
                if (have + bins[last].have < s->size)
                        break;
                allowed[bins[last].group] = true;
                grow_from_seeds(g);
                allowed[bins[last].group] = false;
        }
}

static ssize_t candidate_of(const struct search *s, size_t device)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->candidates[i] == device)
                        return (ssize_t) i;
        return -1;
}

/* Exchanges one device of the best set for one outside, in the same group: all of the order but the weight
 * stays. */
static bool improve_once(struct growth *g)
{
        struct search *s = g->search;

        for (size_t i = 0; i < s->size; i++) {
                size_t out = s->best[i], out_at = (size_t) candidate_of(s, out);

                for (size_t j = 0; j < s->count; j++) {
                        size_t in = s->candidates[j];
                        uint64_t link;

                        if (g->in[j] || s->map->devices[out].group != s->map->devices[in].group)
                                continue;
                        link = prefer_map_weight(s->map, in, out);
                        if (g->gains[j] <= link + g->gains[out_at])
                                continue;
                        g->in[out_at] = false;
                        g->in[j] = true;
                        s->best[i] = in;
                        for (size_t c = 0; c < s->count; c++) {
                                g->gains[c] += s->candidates[c] == in
                                                       ? 0
                                                       : prefer_map_weight(s->map, s->candidates[c], in);
                                g->gains[c] -= s->candidates[c] == out
                                                       ? 0
                                                       : prefer_map_weight(s->map, s->candidates[c], out);
                        }
                        return true;
                }
        }
        return false;
}

static void improve(struct growth *g)
{
        struct search *s = g->search;

        memset(g->in, 0, s->count * sizeof(*g->in));
        for (size_t i = 0; i < s->size; i++) {
                g->in[candidate_of(s, s->best[i])] = true;
                put(s, s->best[i]);
        }
        for (size_t i = 0; i < s->count; i++)
                g->gains[i] = weight_to_set(s, s->candidates[i]);
        for (size_t round = 0; round < s->size && improve_once(g);)
                round++;
        qsort(s->best, s->size, sizeof(*s->best), compare_positions);
        while (s->set_count > s->must_count)
                take_back(s);
}

static int greedily(struct search *s)
{
        CLEANUP(free_p) struct bin *bins = calloc(s->map->group_count + 1, sizeof(*bins));
        CLEANUP(free_p) bool *allowed = calloc(s->map->group_count + 1, sizeof(*allowed));
        CLEANUP(free_p) uint64_t *gains = calloc(s->count + 1, sizeof(*gains));
        CLEANUP(free_p) bool *in = calloc(2 * s->count + 1, sizeof(*in));
        uint64_t work = 0;
        struct growth growth = { .search = s, .allowed = allowed, .gains = gains, .in = in, .work = &work };

        if (bins == NULL || allowed == NULL || gains == NULL || in == NULL)
                return -ENOMEM;
        growth.open = in + s->count;
        try_bins(&growth, bins, sort_bins(s, bins), allowed);
        if (s->have_best)
                improve(&growth);
        return s->have_best ? 0 : -EAGAIN;
}

static int search_new(struct search *s, const struct prefer_map *map)
{
        size_t n = map->count + 1;

        *s = (struct search){ .map = map, .shared = map->shares > 1 };
        s->candidates = calloc(n, sizeof(*s->candidates));
        s->set = calloc(2 * n, sizeof(*s->set));
        s->best = calloc(n, sizeof(*s->best));
        s->group_free = calloc(map->group_count + 1, sizeof(*s->group_free));
        s->group_taken = calloc(map->group_count + 1, sizeof(*s->group_taken));
        return s->candidates == NULL || s->set == NULL || s->best == NULL || s->group_free == NULL ||
                               s->group_taken == NULL
                       ? -ENOMEM
                       : 0;
}

static void search_free(struct search *s)
{
        free(s->candidates);
        free(s->set);
        free(s->best);
        free(s->group_free);
        free(s->group_taken);
}

static int choose_one_each(struct search *s, bool *exact)
{
        if (s->size == s->count) { /* no choice */
                memcpy(s->best, s->candidates, s->count * sizeof(*s->best));
                return 0;
        }
        if (within_reach(s->count, s->size))
                return exactly(s);
        *exact = false;
        return greedily(s);
}

/* Adds up to one id of each device to what is taken; shared devices go round as often as needed. */
static int add_round(struct search *s, const struct prefer_request *request, struct prefer_answer *answer)
{
        uint16_t least = UINT16_MAX;
        size_t more = request->size - answer->size;
        int r;

        s->count = s->set_count = s->must_count = 0;
        memset(s->group_free, 0, s->map->group_count * sizeof(*s->group_free));
        memset(s->group_taken, 0, s->map->group_count * sizeof(*s->group_taken));
        s->rank = (struct rank){ 0 };
        s->free_ids = request->available;
        for (size_t i = 0; i < s->map->count; i++) {
                s->group_free[s->map->devices[i].group] =
                        (uint16_t) (s->group_free[s->map->devices[i].group] + (request->available[i] > 0));
                if (answer->taken[i] < request->available[i] && answer->taken[i] < least)
                        least = answer->taken[i];
        }
        for (size_t i = 0; i < s->map->count; i++) {
                if (answer->taken[i] > 0)
                        put(s, i);
                if (answer->taken[i] < request->available[i] && answer->taken[i] == least)
                        s->candidates[s->count++] = i;
        }
        s->must_count = s->set_count;
        if (s->shared) /* what must be in is no choice */
                s->rank.left = 0;
        s->size = more < s->count ? more : s->count;
        s->have_best = false;
        if (s->count == 0)
                return 0;
        r = choose_one_each(s, &answer->exact);
        if (r < 0)
                return r;
        for (size_t i = 0; i < s->size; i++)
                answer->taken[s->best[i]]++;
        answer->size += s->size;
        return 1;
}

static uint64_t score_of(const struct prefer_map *map, const uint16_t *taken)
{
        uint64_t score = 0;

        for (size_t a = 0; a < map->count; a++)
                for (size_t b = 0; taken[a] > 0 && b < a; b++)
                        if (taken[b] > 0)
                                score += prefer_map_weight(map, a, b);
        return score;
}

static void take_any(const struct prefer_map *map, const struct prefer_request *request,
                     struct prefer_answer *answer)
{
        for (size_t i = 0; i < map->count; i++)
                while (answer->size < request->size && answer->taken[i] < request->available[i]) {
                        answer->taken[i]++;
                        answer->size++;
                }
        answer->exact = false;
}

int prefer_choose(const struct prefer_map *map, const struct prefer_request *request,
                  struct prefer_answer *ret)
{
        struct search search;
        int r;

        ret->size = 0;
        ret->exact = true;
        for (size_t i = 0; i < map->count; i++) {
                assert(request->must[i] <= request->available[i]);
                ret->taken[i] = request->must[i];
                ret->size += request->must[i];
        }
        r = search_new(&search, map);
        while (r >= 0 && ret->size < request->size) {
                r = add_round(&search, request, ret);
                if (r == 0)
                        break;
        }
        search_free(&search);
        if (r < 0)
                take_any(map, request, ret);
        ret->score = score_of(map, ret->taken);
        return r < 0 ? r : 0;
}
