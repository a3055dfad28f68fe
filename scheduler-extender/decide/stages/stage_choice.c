/* The search for the best mix: all of them where they are few, else by exchange. */
#include "scheduler-extender/decide/stages/stage_choice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define OF_NONE (-1)

/* All mixes of the kinds from the k-th on; those of one entry follow each other. @before: chips of its entry
 * in the kinds before it */
static int try_all(struct stage_mix *m, size_t k, uint32_t before)
{
        struct stage_mix_kind *kind = &m->kinds[k];
        size_t role = kind->role;
        bool last = k + 1 >= m->kind_count || kind[1].role != role;
        int r = 0;

        if (k == m->kind_count)
                return stage_mix_try(m);
        for (uint32_t chips = 0; r >= 0 && chips <= kind->open && before + chips <= m->most[role]; chips++) {
                kind->chips = chips;
                if (stage_mix_spent(m))
                        break;
                if (!last || before + chips >= m->least[role])
                        r = try_all(m, k + 1, last ? 0 : before + chips);
        }
        kind->chips = 0;
        return r;
}

/* How many mixes there are; more than STAGE_CHOICE_MIXES is not counted to its end. */
static double count_mixes(const struct stage_mix *m)
{
        double mixes = 1;

        for (size_t role = 0; role < m->problem->job->worker_count && mixes <= STAGE_CHOICE_MIXES; role++) {
                uint32_t most = m->most[role];
                CLEANUP(free_p) double *ways = calloc(most + 1, sizeof(*ways));
                double of_role = 0;

                if (ways == NULL)
                        return INFINITY;
                ways[0] = 1;
                for (size_t k = 0; k < m->kind_count; k++)
                        for (uint32_t n = most; m->kinds[k].role == role && n > 0; n--)
                                for (uint32_t of = 1; of <= n && of <= m->kinds[k].open; of++)
                                        ways[n] += ways[n - of];
                for (uint32_t n = m->least[role]; n <= most; n++)
                        of_role += ways[n];
                mixes *= of_role;
        }
        return mixes;
}

/* The entry's chips: as many of one kind as there are, then of the others in turn. */
static void fill(struct stage_mix *m, size_t role, size_t first)
{
        uint32_t wanted = m->most[role];

        for (size_t k = 0; k < m->kind_count; k++)
                if (m->kinds[k].role == role)
                        m->kinds[k].chips = 0;
        for (size_t i = 0; i <= m->kind_count; i++) {
                struct stage_mix_kind *kind = &m->kinds[i == 0 ? first : i - 1];
                uint32_t more = kind->open - kind->chips;

                if (kind->role != role)
                        continue;
                more = more < wanted ? more : wanted;
                kind->chips += more;
                wanted -= more;
        }
}

static void keep_mix(const struct stage_mix *m, uint32_t *ret)
{
        for (size_t k = 0; k < m->kind_count; k++)
                ret[k] = m->kinds[k].chips;
}

static void take_mix(struct stage_mix *m, const uint32_t *mix)
{
        for (size_t k = 0; k < m->kind_count; k++)
                m->kinds[k].chips = mix[k];
}

/* So many chips of one kind become chips of another; the mix is as before unless that is better.
 * @from, @to: OF_NONE = of none, an entry then has more or fewer chips */
static int try_change(struct stage_mix *m, long from, long to, uint32_t chips)
{
        struct stage_mix_kind *less = from < 0 ? NULL : &m->kinds[from],
                              *more = to < 0 ? NULL : &m->kinds[to];
        int r;

        if ((less != NULL && less->chips < chips) || (more != NULL && more->chips + chips > more->open))
                return 0;
        if (less != NULL)
                less->chips -= chips;
        if (more != NULL)
                more->chips += chips;
        r = stage_mix_try(m);
        if (r > 0)
                return r;
        if (less != NULL)
                less->chips += chips;
        if (more != NULL)
                more->chips -= chips;
        return r;
}

/* An entry of a range has a chip of the kind less, or more. */
static int try_range(struct stage_mix *m, size_t k)
{
        size_t role = m->kinds[k].role;
        uint32_t chips;
        int r = 0;

        if (m->least[role] == m->most[role])
                return 0;
        chips = stage_mix_chips(m, role);
        if (chips > m->least[role])
                r = try_change(m, (long) k, OF_NONE, 1);
        if (r == 0 && chips < m->most[role])
                r = try_change(m, OF_NONE, (long) k, 1);
        return r;
}

/* Chips of a kind go on to others as long as that helps, so that one walk finds their best kind. Return: 1 =
 * a step got shorter; 0; -ENOMEM. */
static int exchange_of(struct stage_mix *m, size_t k)
{
        int better = try_range(m, k);

        for (size_t to = 0; better >= 0 && m->kinds[k].chips > 0 && to < m->kind_count && !stage_mix_spent(m);
             to++) {
                uint32_t all = m->kinds[k].chips < m->kinds[to].open - m->kinds[to].chips
                                       ? m->kinds[k].chips
                                       : m->kinds[to].open - m->kinds[to].chips;
                int r = 0;

                if (to == k || m->kinds[to].role != m->kinds[k].role || all == 0)
                        continue;
                r = try_change(m, (long) k, (long) to, all);
                if (r == 0 && all > 1)
                        r = try_change(m, (long) k, (long) to, 1);
                better = r != 0 ? r : better;
                k = r > 0 ? to : k;
        }
        return better;
}

static int exchange(struct stage_mix *m)
{
        int better = 1;

        while (better > 0 && !stage_mix_spent(m)) {
                better = 0;
                for (size_t k = 0; better >= 0 && k < m->kind_count && !stage_mix_spent(m); k++) {
                        int r = exchange_of(m, k);

                        better = r != 0 ? r : better;
                }
        }
        return better < 0 ? better : 0;
}

/* From what the policy took, where that is in the scope; then from each kind filled first. */
static int try_some(struct stage_mix *m)
{
        CLEANUP(free_p) uint32_t *mix = calloc(m->kind_count + 1, sizeof(*mix));
        const struct stage_mix_problem *p = m->problem;
        int r;

        if (mix == NULL)
                return -ENOMEM;
        for (size_t k = 0; k < m->kind_count; k++) {
                m->kinds[k].chips = 0;
                for (size_t i = m->kinds[k].first;
                     m->scope == NULL && i < m->kinds[k].first + m->kinds[k].count; i++)
                        m->kinds[k].chips += p->offers[i].chips;
        }
        for (size_t k = 0; m->scope != NULL && k < m->kind_count; k++)
                if (k == 0 || m->kinds[k - 1].role != m->kinds[k].role)
                        fill(m, m->kinds[k].role, k);
        keep_mix(m, mix);
        r = stage_mix_try(m);
        for (size_t k = 0; r >= 0 && k < m->kind_count && !stage_mix_spent(m); k++) {
                fill(m, m->kinds[k].role, k);
                r = stage_mix_try(m);
                if (r > 0)
                        keep_mix(m, mix);
                take_mix(m, mix);
        }
        return r < 0 ? r : exchange(m);
}

/* Return: were all mixes of the scope planned? -ENOMEM. */
static int look_at(struct stage_mix *m)
{
        bool all = count_mixes(m) <= STAGE_CHOICE_MIXES;
        int r = all ? try_all(m, 0, 0) : try_some(m);

        return r < 0 ? r : all && !stage_mix_spent(m);
}

/* Do two nodes offer the same? Their offers stand in the same kinds, with as many chips. */
static bool is_alike(const struct stage_mix *m, const char *a, const char *b)
{
        const struct stage_mix_problem *p = m->problem;

        for (size_t k = 0; k < m->kind_count; k++) {
                uint64_t of_a = 0, of_b = 0; /* 4 + 4 chips are not 6 + 2, nor 7 + 1 chips 5 + 5 */

                for (size_t i = m->kinds[k].first; i < m->kinds[k].first + m->kinds[k].count; i++) {
                        uint64_t open = p->offers[i].place.open;

                        of_a += strcmp(p->offers[i].place.node, a) == 0 ? (open << 32) + open * open + 1 : 0;
                        of_b += strcmp(p->offers[i].place.node, b) == 0 ? (open << 32) + open * open + 1 : 0;
                }
                if (of_a != of_b)
                        return false;
        }
        return true;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Each node by itself, but for those that are as one before them. Return: as look_at(). */
static int look_at_nodes(struct stage_mix *m)
{
        const struct stage_mix_problem *p = m->problem;
        CLEANUP(free_p) const char **nodes = calloc(p->count + 1, sizeof(*nodes));
        size_t looked = 0;
        int all = 1;

        if (nodes == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < p->count; i++)
                nodes[i] = p->offers[i].place.node;
        qsort(nodes, p->count, sizeof(*nodes), by_name);
        if (p->count == 0 || strcmp(nodes[0], nodes[p->count - 1]) == 0)
                return 1; /* it was looked at */
        for (size_t i = 0; all >= 0 && i < p->count; i++) {
                bool seen = i > 0 && strcmp(nodes[i], nodes[i - 1]) == 0;
                int r;

                if (stage_mix_spent(m))
                        return 0;
                m->spent += (double) p->count;
                if (seen || !stage_mix_enter(m, nodes[i]))
                        continue;
                for (size_t k = 0; k < looked && !seen; k++) {
                        seen = is_alike(m, nodes[k], nodes[i]);
                        m->spent += (double) p->count;
                }
                if (seen)
                        continue;
                nodes[looked++] = nodes[i];
                r = look_at(m);
                all = r <= 0 ? r : all;
        }
        return all;
}

/* Keeps the policy's chips unless others are better by enough. */
static void settle(struct stage_mix *m, struct stage_choice *ret)
{
        struct stage_mix_problem *p = m->problem;

        ret->plans = m->plans;
        ret->after = m->best_step;
        ret->changed = isfinite(m->best_step.ms) && !(m->best_step.ms > ret->before.ms * STAGE_CHOICE_GAIN);
        if (!ret->changed)
                ret->after = ret->before;
        for (size_t i = 0; ret->changed && i < p->count; i++)
                p->offers[i].chips = m->best[i];
}

int stage_choice(struct stage_mix_problem *problem, struct stage_choice *ret)
{
        CLEANUP(stage_mix_free) struct stage_mix m = { 0 };
        int r = stage_mix_init(&m, problem), nodes = 1;

        *ret = (struct stage_choice){ 0 };
        if (r < 0)
                return r;
        ret->before = ret->after = m.before;
        if (stage_mix_cut_cost(&m) > problem->effort / 2)
                return 0;                             /* not even a few could be compared */
        m.most_spent = m.spent + problem->effort / 2; /* the other half is for the nodes */
        if (stage_mix_enter(&m, NULL))
                r = look_at(&m);
        m.most_spent = m.spent + problem->effort / 2;
        if (r >= 0)
                nodes = look_at_nodes(&m);
        if (r < 0 || nodes < 0)
                return -ENOMEM;
        ret->exact = r > 0 && nodes > 0;
        settle(&m, ret);
        return 0;
}
