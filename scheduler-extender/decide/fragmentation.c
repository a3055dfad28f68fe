/* Measures what is left of a node by what typical pods could still use of it, and chooses the chip that
 * wastes least. */
#include "scheduler-extender/decide/fragmentation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"

#define ANY_AMOUNT 0

static bool is_shared(const struct fragmentation_pod *pod)
{
        return pod->chips == 1 && pod->milli < CHIP_MILLI;
}

/* CPU, memory and model; chips apart. */
static bool has_rest(const struct fragmentation_node *node, const struct fragmentation_pod *pod)
{
        return node->cpu_milli >= pod->cpu_milli && node->memory_mib >= pod->memory_mib &&
               (pod->models == 0 || pod->chips == 0 || (pod->models >> node->model & 1) != 0);
}

uint32_t fragmentation_left(const struct fragmentation_node *node)
{
        uint32_t left = node->whole * CHIP_MILLI;

        for (uint32_t i = 0; i < node->partial_count; i++)
                left += node->partial[i];
        return left;
}

/* The shared chip with least room that has enough, -1 = none has. */
static int tightest(const struct fragmentation_node *node, uint32_t milli)
{
        int best = -1;

        for (uint32_t i = 0; i < node->partial_count; i++)
                if (node->partial[i] >= milli && (best < 0 || node->partial[i] < node->partial[best]))
                        best = (int) i;
        return best;
}

bool fragmentation_fits(const struct fragmentation_node *node, const struct fragmentation_pod *pod)
{
        if (!has_rest(node, pod))
                return false;
        if (is_shared(pod))
                return node->whole > 0 || tightest(node, pod->milli) >= 0;
        return node->whole >= pod->chips;
}

void fragmentation_take(struct fragmentation_node *node, const struct fragmentation_pod *pod, int partial)
{
        node->cpu_milli -= pod->cpu_milli;
        node->memory_mib -= pod->memory_mib;
        if (!is_shared(pod)) {
                node->whole -= pod->chips;
        } else if (partial >= 0) {
                node->partial[partial] = (uint16_t) (node->partial[partial] - pod->milli);
                if (node->partial[partial] == 0)
                        node->partial[partial] = node->partial[--node->partial_count];
        } else {
                node->whole--;
                node->partial[node->partial_count++] = (uint16_t) (CHIP_MILLI - pod->milli);
        }
}

/* What one typical pod could use of what is free. */
static uint32_t usable_by(const struct fragmentation_node *node, const struct fragmentation_pod *pod)
{
        uint32_t usable = node->whole * CHIP_MILLI;

        if (!is_shared(pod))
                return node->whole >= pod->chips ? usable : 0;
        for (uint32_t i = 0; i < node->partial_count; i++)
                usable += node->partial[i] >= pod->milli ? node->partial[i] : 0u;
        return usable;
}

/* Pods of the same chips follow one another in the list: what they could use is worked out once. */
static double lost_to_single_pods(const struct fragmentation_typical *typical,
                                  const struct fragmentation_node *node, uint32_t left)
{
        const struct fragmentation_pod *before = NULL;
        double lost = 0;
        uint32_t unusable = 0;

        for (size_t i = 0; i < typical->count; i++) {
                const struct fragmentation_pod *pod = &typical->pods[i];

                if (before == NULL || before->chips != pod->chips || before->milli != pod->milli)
                        unusable = left - usable_by(node, pod);
                lost += typical->shares[i] * (has_rest(node, pod) ? unusable : left);
                before = pod;
        }
        return lost;
}

/* Can none of a sequence's pods be placed that are still to come? */
static bool is_over(const struct fragmentation_node *node, const struct fragmentation_pod *least,
                    uint32_t left)
{
        return left < least->milli || node->cpu_milli < least->cpu_milli ||
               node->memory_mib < least->memory_mib;
}

static uint32_t left_after(struct fragmentation_node node, const struct fragmentation_pod *sequence,
                           const struct fragmentation_pod *least, uint32_t left)
{
        if (is_over(&node, &least[0], left))
                return left;
        for (size_t i = 0; i < TYPICAL_LENGTH; i++) {
                const struct fragmentation_pod *pod = &sequence[i];
                int partial = -1;

                if (!has_rest(&node, pod))
                        continue;
                if (is_shared(pod)) {
                        partial = tightest(&node, pod->milli);
                        if (partial < 0 && node.whole == 0)
                                continue;
                } else if (node.whole < pod->chips) {
                        continue;
                }
                fragmentation_take(&node, pod, partial);
                left -= pod->chips * pod->milli;
                if (i + 1 == TYPICAL_LENGTH || is_over(&node, &least[i + 1], left))
                        break;
        }
        return left;
}

double fragmentation_of(const struct fragmentation_typical *typical, const struct fragmentation_node *node)
{
        uint32_t left = fragmentation_left(node);
        double lost, after = 0;

        if (left == 0)
                return 0;
        lost = lost_to_single_pods(typical, node, left);
        if (typical->sequences[0] == NULL)
                return lost;
        for (size_t i = 0; i < TYPICAL_SEQUENCES; i++)
                after += left_after(*node, typical->sequences[i], typical->least[i], left);
        return (lost + after / TYPICAL_SEQUENCES) / 2;
}

static double growth_on(const struct fragmentation_typical *typical, const struct fragmentation_node *node,
                        double before, const struct fragmentation_pod *pod, int partial)
{
        struct fragmentation_node after = *node;

        fragmentation_take(&after, pod, partial);
        return fragmentation_of(typical, &after) - before;
}

static bool seen_before(const struct fragmentation_node *node, uint32_t i)
{
        for (uint32_t k = 0; k < i; k++)
                if (node->partial[k] == node->partial[i])
                        return true;
        return false;
}

int64_t fragmentation_choose(const struct fragmentation_typical *typical,
                             const struct fragmentation_node *node, double before,
                             const struct fragmentation_pod *pod, int *ret_partial)
{
        double best = INFINITY;

        *ret_partial = -1;
        if (!is_shared(pod) || (node->whole > 0 && node->partial_count < PARTIAL_CHIPS_MAX))
                best = growth_on(typical, node, before, pod, -1);
        for (uint32_t i = 0; is_shared(pod) && i < node->partial_count; i++) {
                double growth;

                if (node->partial[i] < pod->milli || seen_before(node, i))
                        continue;
                growth = growth_on(typical, node, before, pod, (int) i);
                if (growth < best || (growth == best &&
                                      (*ret_partial < 0 || node->partial[i] < node->partial[*ret_partial]))) {
                        best = growth;
                        *ret_partial = (int) i;
                }
        }
        return (int64_t) llround(best * FRAGMENTATION_STEPS / CHIP_MILLI);
}

struct counted {
        struct fragmentation_pod pod;
        size_t count;
};

static int compare_pods(const void *a, const void *b)
{
        return memcmp(a, b, sizeof(struct fragmentation_pod));
}

/* By chips, so that pods of the same chips stand together. */
static int compare_kinds(const void *a, const void *b)
{
        const struct counted *x = a, *y = b;

        if (x->pod.chips != y->pod.chips)
                return x->pod.chips < y->pod.chips ? -1 : 1;
        if (x->pod.milli != y->pod.milli)
                return x->pod.milli < y->pod.milli ? -1 : 1;
        return compare_pods(&x->pod, &y->pod);
}

static int count_kinds(const struct fragmentation_pod *pods, size_t count, struct fragmentation_typical *ret)
{
        CLEANUP(free_p) struct fragmentation_pod *sorted = malloc((count + 1) * sizeof(*sorted));
        CLEANUP(free_p) struct counted *kinds = malloc((count + 1) * sizeof(*kinds));
        size_t kind_count = 0;

        if (sorted == NULL || kinds == NULL)
                return -ENOMEM;
        memcpy(sorted, pods, count * sizeof(*pods));
        qsort(sorted, count, sizeof(*sorted), compare_pods);
        for (size_t i = 0; i < count; i++) {
                if (i == 0 || compare_pods(&sorted[i], &sorted[i - 1]) != 0)
                        kinds[kind_count++] = (struct counted){ .pod = sorted[i] };
                kinds[kind_count - 1].count++;
        }
        qsort(kinds, kind_count, sizeof(*kinds), compare_kinds);
        ret->pods = malloc((kind_count + 1) * sizeof(*ret->pods));
        ret->shares = malloc((kind_count + 1) * sizeof(*ret->shares));
        if (ret->pods == NULL || ret->shares == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < kind_count; i++)
                if (kinds[i].pod.chips > 0) { /* the others do not care how chips are packed */
                        ret->pods[ret->count] = kinds[i].pod;
                        ret->shares[ret->count++] = (double) kinds[i].count / (double) count;
                }
        return 0;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

static void note_least(const struct fragmentation_pod *sequence, struct fragmentation_pod *least)
{
        for (size_t i = TYPICAL_LENGTH; i-- > 0;) {
                least[i] = (struct fragmentation_pod){ .cpu_milli = sequence[i].cpu_milli,
                                                       .memory_mib = sequence[i].memory_mib,
                                                       .milli = sequence[i].chips * sequence[i].milli };
                if (i + 1 == TYPICAL_LENGTH)
                        continue;
                least[i].cpu_milli = lesser(least[i].cpu_milli, least[i + 1].cpu_milli);
                least[i].memory_mib = lesser(least[i].memory_mib, least[i + 1].memory_mib);
                least[i].milli = lesser(least[i].milli, least[i + 1].milli);
        }
}

/* Pods without chips are left out of the sequences: they do not wait for chips. */
static int draw_sequences(const struct fragmentation_pod *pods, size_t count, uint64_t seed,
                          struct fragmentation_typical *ret)
{
        bool any = false;

        for (size_t i = 0; i < count && !any; i++)
                any = pods[i].chips > 0;
        for (size_t s = 0; s < TYPICAL_SEQUENCES && any; s++) {
                ret->sequences[s] = malloc(TYPICAL_LENGTH * sizeof(*pods));
                ret->least[s] = malloc(TYPICAL_LENGTH * sizeof(*pods));
                if (ret->sequences[s] == NULL || ret->least[s] == NULL)
                        return -ENOMEM;
                for (size_t i = 0; i < TYPICAL_LENGTH; i++)
                        do
                                ret->sequences[s][i] = pods[random_below(&seed, count)];
                        while (ret->sequences[s][i].chips == 0);
                note_least(ret->sequences[s], ret->least[s]);
        }
        return 0;
}

int fragmentation_learn(const struct fragmentation_pod *pods, size_t count, uint64_t seed,
                        struct fragmentation_typical *ret)
{
        int r;

        *ret = (struct fragmentation_typical){ 0 };
        r = count_kinds(pods, count, ret);
        if (r == 0)
                r = draw_sequences(pods, count, seed, ret);
        if (r < 0)
                fragmentation_forget(ret);
        return r;
}

void fragmentation_forget(struct fragmentation_typical *typical)
{
        free(typical->pods);
        free(typical->shares);
        for (size_t i = 0; i < TYPICAL_SEQUENCES; i++) {
                free(typical->sequences[i]);
                free(typical->least[i]);
        }
        *typical = (struct fragmentation_typical){ 0 };
}

#define WHOLE(n)                                                                                             \
        {                                                                                                    \
                .cpu_milli = ANY_AMOUNT, .memory_mib = ANY_AMOUNT, .chips = (n), .milli = CHIP_MILLI         \
        }

const struct fragmentation_typical *fragmentation_of_class(enum node_class node_class)
{
        static struct fragmentation_pod pods[] = { WHOLE(1), WHOLE(2), WHOLE(4), WHOLE(8) };
        static double quarter[] = { 0.25, 0.25, 0.25, 0.25 };
        static const struct fragmentation_typical any = { .pods = pods, .shares = quarter, .count = 4 },
                                                  single = { .pods = pods, .shares = quarter, .count = 1 },
                                                  multi = { .pods = pods + 1, .shares = quarter, .count = 3 };

        return node_class == NODE_CLASS_SINGLE ? &single : node_class == NODE_CLASS_MULTI ? &multi : &any;
}
