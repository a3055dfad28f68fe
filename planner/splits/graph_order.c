/* Blocks are strongly connected units, by Tarjan's algorithm (SIAM J. Comput. 1, 1972) without recursion. */
#include "planner/splits/graph_order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct tarjan {
        size_t *first; /* edges by unit */
        uint32_t *targets;
        uint32_t *index, *low, *stack, *path;
        size_t *next;
        bool *on_stack;
        size_t depth, path_depth, counter;
};

static void tarjan_free(struct tarjan *t)
{
        free(t->first);
        free(t->targets);
        free(t->index);
        free(t->low);
        free(t->stack);
        free(t->path);
        free(t->next);
        free(t->on_stack);
}

/* Does the edge say that one unit comes before another, and which? */
static bool is_order(const struct graph_problem *p, const struct graph_edge *e, bool turned, uint32_t *from,
                     uint32_t *to)
{
        const struct graph_node *a = &p->nodes[e->source], *b = &p->nodes[e->target];

        if (a->backward != b->backward || a->unit == b->unit)
                return false;
        turned = turned && a->backward;
        *from = (uint32_t) (turned ? b->unit : a->unit);
        *to = (uint32_t) (turned ? a->unit : b->unit);
        return true;
}

static int tarjan_init(struct tarjan *t, const struct graph_problem *p, bool turned)
{
        size_t n = p->unit_count;
        uint32_t from, to;

        t->first = calloc(n + 2, sizeof(*t->first));
        t->targets = calloc(p->edge_count + 1, sizeof(*t->targets));
        t->index = calloc(n + 1, sizeof(*t->index));
        t->low = calloc(n + 1, sizeof(*t->low));
        t->stack = calloc(n + 1, sizeof(*t->stack));
        t->path = calloc(n + 1, sizeof(*t->path));
        t->next = calloc(n + 1, sizeof(*t->next));
        t->on_stack = calloc(n + 1, sizeof(*t->on_stack));
        if (t->first == NULL || t->targets == NULL || t->index == NULL || t->low == NULL ||
            t->stack == NULL || t->path == NULL || t->next == NULL || t->on_stack == NULL)
                return -ENOMEM;
        for (size_t e = 0; e < p->edge_count; e++)
                if (is_order(p, &p->edges[e], turned, &from, &to))
                        t->first[from + 2]++;
        for (size_t u = 1; u <= n; u++)
                t->first[u + 1] += t->first[u];
        for (size_t e = 0; e < p->edge_count; e++)
                if (is_order(p, &p->edges[e], turned, &from, &to))
                        t->targets[t->first[from + 1]++] = to;
        return 0;
}

static void enter(struct tarjan *t, uint32_t u)
{
        t->index[u] = t->low[u] = (uint32_t) ++t->counter;
        t->next[u] = t->first[u];
        t->stack[t->depth++] = u;
        t->on_stack[u] = true;
        t->path[t->path_depth++] = u;
}

static void leave(struct tarjan *t, struct graph_order *x, uint32_t u)
{
        t->path_depth--;
        if (t->path_depth > 0 && t->low[u] < t->low[t->path[t->path_depth - 1]])
                t->low[t->path[t->path_depth - 1]] = t->low[u];
        if (t->low[u] != t->index[u])
                return;
        for (;;) {
                uint32_t member = t->stack[--t->depth];

                t->on_stack[member] = false;
                x->block[member] = (uint32_t) x->blocks;
                if (member == u)
                        break;
        }
        x->blocks++;
}

static void walk_from(struct tarjan *t, struct graph_order *x, uint32_t start)
{
        enter(t, start);
        while (t->path_depth > 0) {
                uint32_t u = t->path[t->path_depth - 1], v;

                if (t->next[u] == t->first[u + 1]) {
                        leave(t, x, u);
                        continue;
                }
                v = t->targets[t->next[u]++];
                if (t->index[v] == 0)
                        enter(t, v);
                else if (t->on_stack[v] && t->index[v] < t->low[u])
                        t->low[u] = t->index[v];
        }
}

static int compare_edges(const void *a, const void *b)
{
        const struct graph_order_edge *x = a, *y = b;

        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return x->to < y->to ? -1 : x->to > y->to;
}

/* Blocks and the edges between them. Tarjan numbers a block after all that it precedes: turned round, the
 * numbers are a topological order. */
static int find_blocks(struct graph_order *x, const struct graph_problem *p, bool turned)
{
        struct tarjan t = { 0 };
        int r = tarjan_init(&t, p, turned);

        x->block = calloc(p->unit_count + 1, sizeof(*x->block));
        x->edges = calloc(p->edge_count + 1, sizeof(*x->edges));
        if (x->block == NULL || x->edges == NULL)
                r = -ENOMEM;
        for (size_t u = 0; r == 0 && u < p->unit_count; u++)
                if (t.index[u] == 0)
                        walk_from(&t, x, (uint32_t) u);
        tarjan_free(&t);
        if (r < 0)
                return r;
        for (size_t u = 0; u < p->unit_count; u++)
                x->block[u] = (uint32_t) (x->blocks - 1 - x->block[u]);
        for (size_t e = 0; e < p->edge_count; e++) {
                uint32_t from, to;

                if (is_order(p, &p->edges[e], turned, &from, &to) && x->block[from] != x->block[to])
                        x->edges[x->edge_count++] = (struct graph_order_edge){ x->block[from], x->block[to] };
        }
        if (x->edge_count > 0)
                qsort(x->edges, x->edge_count, sizeof(*x->edges), compare_edges);
        x->first_edge = calloc(x->blocks + 2, sizeof(*x->first_edge));
        if (x->first_edge == NULL)
                return -ENOMEM;
        for (size_t e = 0; e < x->edge_count; e++)
                x->first_edge[x->edges[e].from + 1]++;
        for (size_t b = 0; b < x->blocks; b++)
                x->first_edge[b + 1] += x->first_edge[b];
        return 0;
}

void graph_order_free(struct graph_order *order)
{
        free(order->block);
        free(order->edges);
        free(order->first_edge);
        order->block = NULL;
        order->edges = NULL;
        order->first_edge = NULL;
        order->blocks = order->edge_count = 0;
}

/* The reading of the backward edges that leaves more blocks is the one that was meant. */
int graph_order_find(struct graph_order *order, const struct graph_problem *p)
{
        size_t as_they_are;
        int r = find_blocks(order, p, false);

        as_they_are = order->blocks;
        graph_order_free(order);
        if (r == 0)
                r = find_blocks(order, p, true);
        if (r == 0 && order->blocks < as_they_are) {
                graph_order_free(order);
                r = find_blocks(order, p, false);
        }
        return r;
}
