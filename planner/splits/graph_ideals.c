/* Contiguous placements by dynamic programming: a placement whose devices can be put in a row is a chain of
 * downward closed sets of the graph ("ideals"), each difference on one device. Units are ordered by the
 * forward edges and by the backward edges turned round; units on a cycle of that order are one block.
 *
 * Where the graph has few ideals (layer graphs nearly always do) all of them take part, and the answer is the
 * best of its kind. Elsewhere the ideals of sampled topological orders take part, again and again, until the
 * search ends.
 *
 * The cost of a difference J \ I needs no walk: an output crosses its border exactly if the number of the
 * output's units in J less that in I is neither none nor all of them. O(ideals^2 x outputs) in all.
 *
 * Example: a feeds b and c, which feed d. Of 16 subsets 6 are ideals: {}, {a}, {a b}, {a c}, {a b c}, all.
 * Two devices may take {a b} and then {c d}. The second one's border: a's output has its units a, b, c; 3 of
 * them are in "all", 2 in {a b}, so 1 of 3 is inside: it crosses. b's has b and d: 2 less 1, it crosses. c's
 * has c and d: 2 less 0, all inside. Its load is c + d + the outputs of a and b.
 *
 * Invariant: table[J][mix] is the least largest load of J on the devices of the mix, over all chains of the
 * ideals that take part; an ideal stands before its supersets, so a row is final when it is read. Filling
 * devices greedily in topological order is no substitute: which of b and c comes first decides what crosses.
 */
#include "planner/splits/graph_ideals.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/splits/graph_order.h"

#define IDEALS_MAX        4000
#define IDEALS_MIN        64
#define COUNTS_MAX        ((size_t) 64 << 20) /* ideals x nets */
#define BORDERS_MAX       4e9                 /* ideals^2 x nets: a few seconds of work */
#define TABLE_MAX         ((size_t) 32 << 20) /* mixes of devices x ideals */
#define ORDERS_PER_SAMPLE 4

struct ideals {
        struct graph_state *s;
        struct graph_best *best;
        struct graph_order order;
        size_t words; /* of a set of blocks */
        /* the ideals that take part, by size */
        uint64_t *sets;
        size_t count, most; /* how many there are, and may be */
        bool complete;
        double *accelerator_ms, *cpu_ms, *memory; /* of each ideal */
        uint32_t *only_cpu;                       /* units that cannot run on an accelerator */
        uint16_t *in_net;                         /* [ideal][net] units of the net in the ideal */
        /* mixes of devices; the CPUs are the last class */
        size_t classes, class_count[GRAPH_TYPES_MAX + 1], stride[GRAPH_TYPES_MAX + 1], mixes;
        double *table;       /* [ideal][mix] least largest load */
        uint32_t *came_from; /* [ideal][mix] ideal * (classes) + class */
};

static void forget_measures(struct ideals *x)
{
        free(x->accelerator_ms);
        free(x->cpu_ms);
        free(x->memory);
        free(x->only_cpu);
        free(x->in_net);
        free(x->table);
        free(x->came_from);
        x->accelerator_ms = x->cpu_ms = x->memory = x->table = NULL;
        x->only_cpu = x->came_from = NULL;
        x->in_net = NULL;
}

static void ideals_free(struct ideals *x)
{
        graph_order_free(&x->order);
        free(x->sets);
        forget_measures(x);
}

static uint64_t *set_at(const struct ideals *x, size_t i)
{
        return x->sets + i * x->words;
}

static bool has(const uint64_t *set, size_t block)
{
        return (set[block / 64] >> (block % 64) & 1) != 0;
}

/* What finding sets needs: an index of them by hash, and room to work. */
struct set_index {
        uint32_t *slots; /* 0 = free, else the set's number + 1 */
        size_t size;
        uint64_t *scratch; /* the set at hand */
        uint32_t *waits, *ready, *stage;
};

static void set_index_free(struct set_index *index)
{
        free(index->slots);
        free(index->scratch);
        free(index->waits);
        free(index->ready);
        free(index->stage);
}

static int set_index_init(struct set_index *index, const struct ideals *x)
{
        index->size = (size_t) 4 * IDEALS_MAX + 1;
        index->slots = calloc(index->size, sizeof(*index->slots));
        index->scratch = calloc(x->words + 1, sizeof(*index->scratch));
        index->waits = calloc(x->order.blocks + 1, sizeof(*index->waits));
        index->ready = calloc(x->order.blocks + 1, sizeof(*index->ready));
        index->stage = calloc(x->order.blocks + 1, sizeof(*index->stage));
        return index->slots == NULL || index->scratch == NULL || index->waits == NULL ||
                               index->ready == NULL || index->stage == NULL
                       ? -ENOMEM
                       : 0;
}

/* Adds the set at hand unless it is there; linear probing. */
static bool add_set(struct ideals *x, struct set_index *index)
{
        const uint64_t *set = index->scratch;
        uint64_t hash = 1469598103934665603u;
        size_t at;

        for (size_t w = 0; w < x->words; w++) {
                hash = (hash ^ set[w]) * 0x9e3779b97f4a7c15u;
                hash ^= hash >> 29;
        }
        for (at = (size_t) hash % index->size; index->slots[at] != 0; at = (at + 1) % index->size)
                if (memcmp(set_at(x, index->slots[at] - 1), set, x->words * sizeof(*set)) == 0)
                        return false;
        memcpy(set_at(x, x->count), set, x->words * sizeof(*set));
        index->slots[at] = (uint32_t) ++x->count;
        return true;
}

/* Breadth first from the empty set. Return: true if all were enumerated. */
static bool enumerate(struct ideals *x, struct set_index *index)
{
        memset(index->scratch, 0, x->words * sizeof(*index->scratch));
        (void) add_set(x, index);
        for (size_t i = 0; i < x->count; i++) {
                memset(index->waits, 0, x->order.blocks * sizeof(*index->waits));
                for (size_t e = 0; e < x->order.edge_count; e++)
                        if (!has(set_at(x, i), x->order.edges[e].from))
                                index->waits[x->order.edges[e].to]++;
                for (size_t b = 0; b < x->order.blocks; b++) {
                        if (index->waits[b] > 0 || has(set_at(x, i), b))
                                continue;
                        if (x->count == x->most)
                                return false;
                        memcpy(index->scratch, set_at(x, i), x->words * sizeof(*index->scratch));
                        index->scratch[b / 64] |= (uint64_t) 1 << (b % 64);
                        (void) add_set(x, index);
                }
        }
        return true;
}

/* Takes the ready block with the least (stage, chance) out of the list. */
static uint32_t take_ready(struct ideals *x, uint32_t *ready, size_t *count, const uint32_t *stage)
{
        uint64_t least = UINT64_MAX;
        size_t chosen = 0;
        uint32_t block;

        for (size_t k = 0; k < *count; k++) {
                uint64_t key = ((uint64_t) (stage == NULL ? 0 : stage[ready[k]]) << 32) |
                               (graph_best_random(x->best) >> 33);

                if (key < least) {
                        least = key;
                        chosen = k;
                }
        }
        block = ready[chosen];
        ready[chosen] = ready[--*count];
        return block;
}

/* Prefixes of a topological order, evenly spaced where there are too many, the whole always; where several
 * blocks are ready, by the stage they have now, else at random. */
static void add_order(struct ideals *x, struct set_index *index, const uint32_t *stage)
{
        size_t every = x->order.blocks / (x->most / ORDERS_PER_SAMPLE - 2) + 1, count = 0;
        uint32_t *waits = index->waits, *ready = index->ready;

        memset(waits, 0, x->order.blocks * sizeof(*waits));
        for (size_t e = 0; e < x->order.edge_count; e++)
                waits[x->order.edges[e].to]++;
        for (size_t b = 0; b < x->order.blocks; b++)
                if (waits[b] == 0)
                        ready[count++] = (uint32_t) b;
        memset(index->scratch, 0, x->words * sizeof(*index->scratch));
        for (size_t placed = 0;; placed++) {
                uint32_t block;

                if (placed % every == 0 || placed == x->order.blocks)
                        (void) add_set(x, index);
                if (count == 0)
                        return;
                block = take_ready(x, ready, &count, stage);
                index->scratch[block / 64] |= (uint64_t) 1 << (block % 64);
                for (size_t e = x->order.first_edge[block]; e < x->order.first_edge[block + 1]; e++)
                        if (--waits[x->order.edges[e].to] == 0)
                                ready[count++] = x->order.edges[e].to;
        }
}

static size_t size_of_set(const struct ideals *x, const uint64_t *set)
{
        size_t size = 0;

        for (size_t w = 0; w < x->words; w++)
                size += (size_t) __builtin_popcountll(set[w]);
        return size;
}

/* By size, so that every subset stands before its supersets (counting sort). */
static int sort_sets(struct ideals *x)
{
        CLEANUP(free_p) size_t *begin = calloc(x->order.blocks + 2, sizeof(*begin));
        uint64_t *sorted = calloc((IDEALS_MAX + 1) * x->words + 1, sizeof(*sorted));

        if (begin == NULL || sorted == NULL) {
                free(sorted);
                return -ENOMEM;
        }
        for (size_t i = 0; i < x->count; i++)
                begin[size_of_set(x, set_at(x, i)) + 1]++;
        for (size_t k = 0; k <= x->order.blocks; k++)
                begin[k + 1] += begin[k];
        for (size_t i = 0; i < x->count; i++)
                memcpy(sorted + begin[size_of_set(x, set_at(x, i))]++ * x->words, set_at(x, i),
                       x->words * sizeof(*sorted));
        free(x->sets);
        x->sets = sorted;
        return 0;
}

static int choose_ideals(struct ideals *x, unsigned round)
{
        struct set_index index = { 0 };
        int r = set_index_init(&index, x);

        free(x->sets);
        x->sets = calloc((IDEALS_MAX + 1) * x->words + 1, sizeof(*x->sets));
        x->count = 0;
        if (x->sets == NULL)
                r = -ENOMEM;
        if (r == 0 && round == 0)
                x->complete = x->order.blocks < 1000 && enumerate(x, &index);
        if (r == 0 && !x->complete) {
                memset(index.slots, 0, index.size * sizeof(*index.slots));
                x->count = 0;
                for (size_t u = 0; u < x->s->units; u++)
                        index.stage[x->order.block[u]] = x->best->device[u];
                for (size_t i = 0; i < ORDERS_PER_SAMPLE; i++)
                        add_order(x, &index, round > 0 && i % 2 == 0 ? index.stage : NULL);
        }
        set_index_free(&index);
        return r < 0 ? r : sort_sets(x);
}

static int measure_ideals(struct ideals *x)
{
        const struct graph_state *s = x->s;

        if (x->count * (s->nets + 1) > COUNTS_MAX || x->count * x->mixes > TABLE_MAX)
                return -E2BIG;
        x->accelerator_ms = calloc(x->count, sizeof(double));
        x->cpu_ms = calloc(x->count, sizeof(double));
        x->memory = calloc(x->count, sizeof(double));
        x->only_cpu = calloc(x->count, sizeof(*x->only_cpu));
        x->in_net = calloc(x->count * (s->nets + 1), sizeof(*x->in_net));
        x->table = calloc(x->count * x->mixes, sizeof(*x->table));
        x->came_from = calloc(x->count * x->mixes, sizeof(*x->came_from));
        if (x->accelerator_ms == NULL || x->cpu_ms == NULL || x->memory == NULL || x->only_cpu == NULL ||
            x->in_net == NULL || x->table == NULL || x->came_from == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < x->count; i++)
                for (size_t u = 0; u < s->units; u++) {
                        const struct graph_state_unit *unit = &s->unit[u];

                        if (!has(set_at(x, i), x->order.block[u]))
                                continue;
                        x->accelerator_ms[i] += unit->accelerator_ms;
                        x->cpu_ms[i] += unit->cpu_ms;
                        x->memory[i] += unit->memory_bytes;
                        x->only_cpu[i] += unit->on_accelerator ? 0 : 1;
                        for (size_t k = 0; k < unit->net_count; k++)
                                x->in_net[i * s->nets + s->unit_nets[unit->first_net + k]]++;
                }
        return 0;
}

static bool is_subset(const struct ideals *x, size_t i, size_t j)
{
        const uint64_t *a = set_at(x, i), *b = set_at(x, j);

        for (size_t w = 0; w < x->words; w++)
                if ((a[w] & ~b[w]) != 0)
                        return false;
        return true;
}

static double border_ms(const struct ideals *x, size_t i, size_t j)
{
        const struct graph_state *s = x->s;
        const uint16_t *a = x->in_net + i * s->nets, *b = x->in_net + j * s->nets;
        double ms = 0;

        for (size_t n = 0; n < s->nets; n++) {
                unsigned inside = (unsigned) b[n] - a[n];

                if (inside != 0 && inside != s->net[n].pin_count)
                        ms += s->net[n].cost_ms;
        }
        return ms;
}

/* Load of the difference on a device of the class; INFINITY where it cannot be. */
static double load_on(const struct ideals *x, size_t class, size_t i, size_t j, double *border)
{
        const struct graph_type *type;

        if (class + 1 == x->classes)
                return x->cpu_ms[j] - x->cpu_ms[i];
        type = &x->s->problem->types[class];
        if (x->only_cpu[j] > x->only_cpu[i] || x->memory[j] - x->memory[i] > type->memory_bytes)
                return INFINITY;
        if ((x->accelerator_ms[j] - x->accelerator_ms[i]) / type->speed >= x->best->max_load_ms)
                return INFINITY; /* no better than what is known, whatever crosses the border */
        if (*border < 0)
                *border = border_ms(x, i, j);
        return (x->accelerator_ms[j] - x->accelerator_ms[i]) / type->speed + *border;
}

static void relax(struct ideals *x, size_t i, size_t j)
{
        double border = -1;

        for (size_t class = 0; class < x->classes; class ++) {
                double load;

                if (x->class_count[class] == 0)
                        continue;
                load = load_on(x, class, i, j, &border);
                if (load >= x->best->max_load_ms)
                        continue;
                for (size_t mix = 0; mix < x->mixes; mix++) {
                        double before, largest;

                        if (mix / x->stride[class] % (x->class_count[class] + 1) == 0)
                                continue;
                        before = x->table[i * x->mixes + mix - x->stride[class]];
                        largest = before > load ? before : load;
                        if (largest < x->table[j * x->mixes + mix]) {
                                x->table[j * x->mixes + mix] = largest;
                                x->came_from[j * x->mixes + mix] = (uint32_t) (i * x->classes + class);
                        }
                }
        }
}

static size_t first_device_of(const struct ideals *x, size_t class)
{
        size_t d = 0;

        for (size_t c = 0; c < class; c++)
                d += x->class_count[c];
        return d;
}

static void offer_chain(struct ideals *x, size_t mix)
{
        struct graph_state *s = x->s;
        size_t j = x->count - 1, used[GRAPH_TYPES_MAX + 1] = { 0 };

        graph_state_clear(s);
        while (j > 0) {
                uint32_t from = x->came_from[j * x->mixes + mix];
                size_t class = from % x->classes, i = from / x->classes;
                size_t device = first_device_of(x, class) + used[class]++;

                for (size_t u = 0; u < s->units; u++)
                        if (has(set_at(x, j), x->order.block[u]) && !has(set_at(x, i), x->order.block[u]))
                                graph_state_place(s, u, device);
                mix -= x->stride[class];
                j = i;
        }
        graph_best_offer(x->best, s);
}

/* Return: false when the search must end. */
static bool run_programme(struct ideals *x)
{
        size_t last = x->count - 1, best_mix = 0;

        assert(x->count > 0 && x->mixes > 0); /* the empty set is one, and so is the mix of no device */
        for (size_t v = 0; v < x->count * x->mixes; v++)
                x->table[v] = INFINITY;
        for (size_t mix = 0; mix < x->mixes; mix++)
                x->table[mix] = 0; /* nothing placed: any mix may be left over */
        for (size_t j = 1; j < x->count; j++)
                for (size_t i = 0; i < j; i++)
                        if (is_subset(x, i, j)) {
                                relax(x, i, j);
                                if (!graph_best_step(x->best))
                                        return false;
                        }
        for (size_t mix = 1; mix < x->mixes; mix++)
                if (x->table[last * x->mixes + mix] < x->table[last * x->mixes + best_mix])
                        best_mix = mix;
        if (isfinite(x->table[last * x->mixes + best_mix]))
                offer_chain(x, best_mix);
        return true;
}

static bool count_mixes(struct ideals *x)
{
        const struct graph_problem *p = x->s->problem;

        x->classes = p->type_count + 1;
        x->mixes = 1;
        for (size_t c = 0; c < x->classes; c++) {
                x->class_count[c] = c < p->type_count ? p->types[c].count : p->cpu_count;
                x->stride[c] = x->mixes;
                x->mixes *= x->class_count[c] + 1;
                if (x->mixes > TABLE_MAX)
                        return false;
        }
        return true;
}

int graph_ideals_search(struct graph_state *s, struct graph_best *best)
{
        struct ideals x = { .s = s, .best = best };
        unsigned rounds = 8;
        int r;

        if (s->units == 0 || !count_mixes(&x))
                return 0;
        r = graph_order_find(&x.order, s->problem);
        x.words = (x.order.blocks + 63) / 64;
        x.most = (size_t) sqrt(BORDERS_MAX / (double) (s->nets + 1));
        x.most = x.most < IDEALS_MIN ? IDEALS_MIN : x.most > IDEALS_MAX ? IDEALS_MAX : x.most;
        for (unsigned round = 0; r == 0 && round < rounds; round++) {
                r = choose_ideals(&x, round);
                if (r == 0)
                        r = measure_ideals(&x);
                if (r == 0 && !run_programme(&x))
                        round = rounds;
                forget_measures(&x);
                if (x.complete)
                        break;
        }
        ideals_free(&x);
        return r == -E2BIG ? 0 : r; /* too large for this method: the others go on */
}
