/* The walk over the mixes of kinds of workers. */
#include "planner/splits/pipeline_mixes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define KINDS_MAX 32
#define CELLS_MAX ((size_t) 1 << 24) /* 24 bytes each; and no more than the effort */

struct cell { /* the best suffix that begins at a layer, with the mix of its state */
        struct pipeline_cut_cost cost;
        uint32_t end;    /* where the foremost worker's layers end */
        uint8_t kind;    /* of the foremost worker */
        uint8_t further; /* link class of the worker behind it; its own for the last one */
};

struct kind {
        size_t worker; /* one of them */
        unsigned count;
        size_t stride; /* in a state's number */
        unsigned link; /* class */
};

struct walk {
        const struct pipeline_problem *problem;
        struct kind kinds[KINDS_MAX];
        size_t kind_count, states, row;                 /* layers + 1 */
        const struct pipeline_worker *links[KINDS_MAX]; /* one whose links are such */
        size_t link_count;
        size_t *kind_of; /* [worker] */
        struct cell *cells;
        struct cell *own, *next; /* [row] each: inside a worker of several chips */
        double most_ms;
        struct pipeline_cut_effort *effort;
};

static bool same_links(const struct pipeline_worker *x, const struct pipeline_worker *y)
{
        return x->bytes_per_ms == y->bytes_per_ms && x->inside_bytes_per_ms == y->inside_bytes_per_ms &&
               (x->inside_bytes_per_ms <= 0 || x->node == y->node);
}

static void walk_free(struct walk *w)
{
        free(w->kind_of);
        free(w->cells);
        free(w->own);
        free(w->next);
}

bool pipeline_alike(const struct pipeline_problem *p, size_t a, size_t b)
{
        const struct pipeline_worker *x = &p->workers[a], *y = &p->workers[b];

        if (x->role != y->role || x->chips != y->chips || x->memory_bytes != y->memory_bytes ||
            !same_links(x, y) || x->begin_ms != y->begin_ms)
                return false;
        return x->ms == y->ms || memcmp(x->ms, y->ms, p->layer_count * sizeof(*x->ms)) == 0;
}

static unsigned link_of(struct walk *w, const struct pipeline_worker *worker)
{
        size_t l = 0;

        while (l < w->link_count && !same_links(w->links[l], worker))
                l++;
        if (l == w->link_count)
                w->links[w->link_count++] = worker;
        return (unsigned) l;
}

/* Return: 0 or -E2BIG. */
static int find_kinds(struct walk *w)
{
        const struct pipeline_problem *p = w->problem;

        for (size_t i = 0; i < p->worker_count; i++) {
                size_t k = 0;

                while (k < w->kind_count && !pipeline_alike(p, i, w->kinds[k].worker))
                        k++;
                if (k == KINDS_MAX)
                        return -E2BIG;
                if (k == w->kind_count)
                        w->kinds[w->kind_count++] =
                                (struct kind){ .worker = i, .link = link_of(w, &p->workers[i]) };
                w->kinds[k].count++;
                w->kind_of[i] = k;
        }
        w->states = 1;
        for (size_t k = 0; k < w->kind_count; k++) {
                w->kinds[k].stride = w->states;
                if (w->kinds[k].count >= CELLS_MAX / w->states)
                        return -E2BIG;
                w->states *= w->kinds[k].count + 1;
        }
        return 0;
}

static unsigned count_of(const struct walk *w, size_t state, size_t kind)
{
        return (unsigned) (state / w->kinds[kind].stride % (w->kinds[kind].count + 1));
}

static size_t chips_of(const struct walk *w, size_t state)
{
        size_t chips = 0;

        for (size_t k = 0; k < w->kind_count; k++)
                chips += (size_t) count_of(w, state, k) * w->problem->workers[w->kinds[k].worker].chips;
        return chips;
}

/* Cells of a state whose foremost worker has a link of class `own` and will stand behind one of `left`. */
static struct cell *cells_of(const struct walk *w, size_t state, size_t own, size_t left)
{
        return w->cells + ((state * w->link_count + own) * w->link_count + left) * w->row;
}

/* Stages are about layers / chips long; one that is slow has short ones, one that is fast long ones. */
static bool is_too_much(const struct walk *w)
{
        double chips = (double) chips_of(w, w->states - 1), layers = (double) w->row;
        double length = isfinite(w->most_ms) ? fmin(layers, 4 * layers / chips + 2) : layers / 2;
        double pairs = (double) (w->link_count * w->link_count);
        double each = chips / (double) w->problem->worker_count;

        return (double) w->states * pairs * layers > fmin((double) CELLS_MAX, w->effort->most) ||
               (double) w->states * (double) w->kind_count * pairs * each * layers * length > w->effort->most;
}

static int walk_init(struct walk *w)
{
        size_t cells;
        int r;

        w->row = w->problem->layer_count + 1;
        w->kind_of = calloc(w->problem->worker_count, sizeof(*w->kind_of));
        if (w->kind_of == NULL)
                return -ENOMEM;
        r = find_kinds(w);
        if (r < 0 || is_too_much(w))
                return -E2BIG;
        cells = w->states * w->link_count * w->link_count * w->row;
        w->cells = malloc(cells * sizeof(*w->cells));
        w->own = malloc(w->row * sizeof(*w->own));
        w->next = malloc(w->row * sizeof(*w->next));
        if (w->cells == NULL || w->own == NULL || w->next == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < cells; i++)
                w->cells[i].cost.largest_ms = INFINITY;
        w->effort->spent += (double) cells;
        return 0;
}

struct chip { /* one that is put in front */
        const struct pipeline_worker *worker;
        double left, right; /* links beside it */
        unsigned held;
        bool first; /* of its worker, from behind: cells begin to remember here */
        uint8_t kind, further;
};

/* A stage of this chip in front of the cell that begins at layer @j, where it is the better one. */
static void take_over(struct cell *to, struct pipeline_cut_cost cost, const struct chip *chip,
                      const struct cell *from, size_t j)
{
        if (!pipeline_cut_less(cost, to->cost))
                return;
        *to = (struct cell){ .cost = cost,
                             .end = chip->first ? (uint32_t) j : from->end,
                             .kind = chip->kind,
                             .further = chip->first ? chip->further : from->further };
}

/* Adds to @to what a stage of the chip in front of the cells of @from makes possible. */
static void put_in_front(const struct walk *w, const struct cell *from, struct cell *to,
                         const struct chip *chip)
{
        const struct pipeline_problem *p = w->problem;

        w->effort->spent += (double) w->row;
        for (size_t j = 1; j < w->row && w->effort->spent <= w->effort->most; j++) {
                double ms = chip->worker->begin_ms, behind;
                uint64_t used = 0;

                if (!isfinite(from[j].cost.largest_ms))
                        continue;
                behind = pipeline_cut_crossing_ms(p, j, chip->right);
                for (size_t i = j; i-- > 0;) {
                        struct pipeline_cut_cost cost;
                        double load;

                        w->effort->spent++;
                        if (chip->worker->ms[i] < 0 ||
                            !pipeline_cut_room(p, chip->worker, i, chip->held, &used))
                                break;
                        ms += chip->worker->ms[i];
                        if (ms > w->most_ms)
                                break;
                        load = behind + ms + pipeline_cut_crossing_ms(p, i, chip->left);
                        cost = pipeline_cut_add(p, load, from[j].cost);
                        if ((p->layers[i].begin != PIPELINE_NO_BEGIN || i == 0) && load <= w->most_ms)
                                take_over(&to[i], cost, chip, &from[j], j);
                        if (p->layers[i].begin == PIPELINE_BEGINS)
                                break;
                }
        }
}

static void clear(const struct walk *w, struct cell *cells)
{
        for (size_t i = 0; i < w->row; i++)
                cells[i].cost = (struct pipeline_cut_cost){ .largest_ms = INFINITY };
}

/* One worker of a kind in front of a smaller state, behind one whose link is of class `left`. */
static void extend(struct walk *w, size_t state, size_t kind, size_t left)
{
        const struct kind *k = &w->kinds[kind];
        const struct pipeline_worker *worker = &w->problem->workers[k->worker];
        size_t smaller = state - k->stride, behind = chips_of(w, smaller);
        struct chip chip = { .worker = worker, .kind = (uint8_t) kind };

        clear(w, w->own);
        for (unsigned n = 0; n < worker->chips; n++) {
                chip.first = n == 0;
                chip.held = pipeline_cut_held(w->problem, behind + n + 1);
                chip.left = pipeline_cut_link(worker, n + 1 == worker->chips ? w->links[left] : worker);
                chip.right = pipeline_cut_link(worker, worker);
                clear(w, w->next);
                if (n > 0)
                        put_in_front(w, w->own, w->next, &chip);
                for (size_t l = 0; n == 0 && l < w->link_count; l++) {
                        chip.right = pipeline_cut_link(worker, w->links[l]);
                        chip.further = (uint8_t) l;
                        put_in_front(w, cells_of(w, smaller, l, k->link), w->next, &chip);
                }
                struct cell *swap = w->own;
                w->own = w->next;
                w->next = swap;
        }
        for (size_t i = 0; i < w->row; i++) {
                struct cell *to = &cells_of(w, state, k->link, left)[i];

                if (isfinite(w->own[i].cost.largest_ms) && pipeline_cut_less(w->own[i].cost, to->cost))
                        *to = w->own[i];
        }
}

/* Has each role what it must have? */
static bool is_enough(const struct walk *w, size_t state)
{
        unsigned chips[PIPELINE_ROLES_MAX] = { 0 };

        for (size_t k = 0; k < w->kind_count; k++) {
                const struct pipeline_worker *worker = &w->problem->workers[w->kinds[k].worker];

                chips[worker->role] += count_of(w, state, k) * worker->chips;
        }
        for (size_t r = 0; r < PIPELINE_ROLES_MAX; r++)
                if (chips[r] < w->problem->min_chips[r])
                        return false;
        return true;
}

/* Who is placed, from the first stage on: each cell says of which kind its foremost worker is. */
static int collect(const struct walk *w, size_t state, size_t own, size_t *ret_order)
{
        CLEANUP(free_p) bool *taken = calloc(w->problem->worker_count, sizeof(*taken));
        size_t left = own, begin = 0, count = 0;

        if (taken == NULL)
                return -ENOMEM;
        while (begin < w->problem->layer_count) {
                const struct cell *cell = &cells_of(w, state, own, left)[begin];
                size_t i = 0;

                while (taken[i] || w->kind_of[i] != cell->kind)
                        i++;
                taken[i] = true;
                ret_order[count++] = i;
                state -= w->kinds[cell->kind].stride;
                begin = cell->end;
                left = own; /* who stands behind it was promised its link */
                own = cell->further;
        }
        return (int) count;
}

int pipeline_mixes(const struct pipeline_problem *problem, double most_ms, struct pipeline_cut_effort *effort,
                   size_t *ret_order)
{
        CLEANUP(walk_free)
        struct walk w = { .problem = problem, .most_ms = most_ms * (1 + 1e-9), .effort = effort };
        struct pipeline_cut_cost best = { INFINITY, INFINITY };
        size_t best_state = 0, best_own = 0;
        int r = walk_init(&w);

        if (r < 0)
                return r;
        for (size_t own = 0; own < w.link_count; own++) /* nobody stands behind the last one */
                for (size_t left = 0; left < w.link_count; left++)
                        cells_of(&w, 0, own, left)[problem->layer_count].cost =
                                (struct pipeline_cut_cost){ own == left ? 0 : INFINITY, 0 };
        for (size_t state = 1; state < w.states && effort->spent <= effort->most;
             state++) { /* smaller ones have smaller numbers */
                for (size_t kind = 0; kind < w.kind_count; kind++)
                        for (size_t left = 0; left < w.link_count && count_of(&w, state, kind) > 0; left++)
                                extend(&w, state, kind, left);
                for (size_t own = 0; own < w.link_count; own++) {
                        struct pipeline_cut_cost cost = cells_of(&w, state, own, own)[0].cost;

                        if (pipeline_cut_less(cost, best) && is_enough(&w, state)) {
                                best = cost;
                                best_state = state;
                                best_own = own;
                        }
                }
        }
        if (effort->spent > effort->most)
                return -E2BIG; /* it may lack what was not looked at */
        return isfinite(best.largest_ms) ? collect(&w, best_state, best_own, ret_order) : 0;
}
