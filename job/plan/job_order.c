/* Cycles are found by strongly connected parts, then every job is judged after its parents. */
#include "job/plan/job_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CYCLE_NAMES_MAX 16
#define NONE            SIZE_MAX

struct job_order_entry job_order_entry_of(const struct job *job, uint64_t created_usec)
{
        return (struct job_order_entry){
                .namespace_ = job->namespace_,
                .name = job->name,
                .depends_on = (const char(*)[JOB_NAME_BYTES]) job->depends_on,
                .dependency_count = job->dependency_count,
                .urgency = job->urgency,
                .priority = job->priority,
                .chips = job_worker_chips(job) + job_server_chips(job),
                .created_usec = created_usec,
                .state = JOB_ORDER_WAITING,
        };
}

static const char *or_empty(const char *s)
{
        return s == NULL ? "" : s;
}

static int compare_names(const struct job_order_entry *a, const struct job_order_entry *b)
{
        int r = strcmp(or_empty(a->namespace_), or_empty(b->namespace_));

        return r != 0 ? r : strcmp(a->name, b->name);
}

static int by_name(const void *a, const void *b, void *entries)
{
        const struct job_order_entry *e = entries;

        return compare_names(&e[*(const size_t *) a], &e[*(const size_t *) b]);
}

static size_t find(const struct job_order_entry *entries, const size_t *names, size_t count,
                   const struct job_order_entry *wanted)
{
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int r = compare_names(&entries[names[middle]], wanted);

                if (r == 0)
                        return names[middle];
                if (r < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NONE;
}

/* The jobs as a graph: parents[first[i]..first[i + 1]) are the indices of i's parents, NONE where unknown. */
struct graph {
        size_t *names, *first, *parents;
};

static void graph_free(struct graph *g)
{
        free(g->names);
        free(g->first);
        free(g->parents);
}

static int graph_make(struct graph *g, const struct job_order_entry *entries, size_t count)
{
        size_t edges = 0;

        for (size_t i = 0; i < count; i++)
                edges += entries[i].dependency_count;
        g->names = calloc(count + 1, sizeof(size_t));
        g->first = calloc(count + 1, sizeof(size_t));
        g->parents = calloc(edges + 1, sizeof(size_t));
        if (g->names == NULL || g->first == NULL || g->parents == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                g->names[i] = i;
        qsort_r(g->names, count, sizeof(size_t), by_name, (void *) entries);
        edges = 0;
        for (size_t i = 0; i < count; i++) {
                g->first[i] = edges;
                for (size_t k = 0; k < entries[i].dependency_count; k++) {
                        struct job_order_entry wanted = { .namespace_ = entries[i].namespace_,
                                                          .name = entries[i].depends_on[k] };

                        g->parents[edges++] = find(entries, g->names, count, &wanted);
                }
        }
        g->first[count] = edges;
        return 0;
}

struct visit {
        size_t *number, *low, *component; /* number 0 = not seen; component 0 = not closed yet */
        size_t *path, *stack, *edge;
        size_t numbers, components, path_count, stack_count;
};

static void close_component(struct visit *v, size_t root)
{
        size_t top;

        v->components++;
        do {
                top = v->stack[--v->stack_count];
                v->component[top] = v->components;
        } while (top != root);
}

static void enter(struct visit *v, const struct graph *g, size_t node)
{
        v->number[node] = v->low[node] = ++v->numbers;
        v->edge[node] = g->first[node];
        v->path[v->path_count++] = node;
        v->stack[v->stack_count++] = node;
}

static void visit_from(struct visit *v, const struct graph *g, const struct job_order_entry *entries,
                       size_t start)
{
        enter(v, g, start);
        while (v->path_count > 0) {
                size_t node = v->path[v->path_count - 1];

                if (v->edge[node] < g->first[node + 1]) {
                        size_t parent = g->parents[v->edge[node]++];

                        if (parent == NONE || entries[parent].state != JOB_ORDER_WAITING)
                                continue;
                        if (v->number[parent] == 0)
                                enter(v, g, parent);
                        else if (v->component[parent] == 0 && v->number[parent] < v->low[node])
                                v->low[node] = v->number[parent];
                        continue;
                }
                v->path_count--;
                if (v->path_count > 0 && v->low[node] < v->low[v->path[v->path_count - 1]])
                        v->low[v->path[v->path_count - 1]] = v->low[node];
                if (v->low[node] == v->number[node])
                        close_component(v, node);
        }
}

/* Components close parents first: judging in that order, every parent's verdict is known.
 * Return: the component of each entry, from 1; NULL = out of memory. */
static size_t *find_components(const struct graph *g, const struct job_order_entry *entries, size_t count)
{
        size_t *memory = calloc(count * 6 + 1, sizeof(size_t));
        struct visit v = { .number = memory };

        if (memory == NULL)
                return NULL;
        v.low = memory + count;
        v.component = memory + 2 * count;
        v.path = memory + 3 * count;
        v.stack = memory + 4 * count;
        v.edge = memory + 5 * count;
        for (size_t i = 0; i < count; i++)
                if (entries[i].state == JOB_ORDER_WAITING && v.number[i] == 0)
                        visit_from(&v, g, entries, i);
        memmove(memory, v.component, count * sizeof(size_t));
        return memory;
}

/* How bad a parent is; the worst, and of equals the first, is the one that is named. */
static enum job_order_verdict verdict_by(const struct job_order_entry *parent, bool same_component)
{
        if (parent == NULL)
                return JOB_ORDER_PARENT_UNKNOWN;
        if (parent->state == JOB_ORDER_SUCCEEDED)
                return JOB_ORDER_READY;
        if (parent->state == JOB_ORDER_FAILED)
                return JOB_ORDER_PARENT_FAILED;
        if (parent->state == JOB_ORDER_RUNNING)
                return JOB_ORDER_PARENT_UNFINISHED;
        if (same_component)
                return JOB_ORDER_CYCLE;
        if (parent->verdict == JOB_ORDER_CYCLE || parent->verdict == JOB_ORDER_PARENT_FAILED)
                return JOB_ORDER_PARENT_FAILED;
        return JOB_ORDER_PARENT_UNFINISHED;
}

static void judge(struct job_order_entry *entries, const struct graph *g, const size_t *component, size_t i)
{
        struct job_order_entry *entry = &entries[i];

        entry->verdict = JOB_ORDER_READY;
        entry->parent = 0;
        for (size_t k = 0; k < entry->dependency_count; k++) {
                size_t parent = g->parents[g->first[i] + k];
                enum job_order_verdict v = verdict_by(parent == NONE ? NULL : &entries[parent],
                                                      parent != NONE && component[parent] == component[i]);

                if (v > entry->verdict) {
                        entry->verdict = v;
                        entry->parent = k;
                }
        }
}

static int compare_components(const void *a, const void *b, void *component)
{
        size_t x = ((const size_t *) component)[*(const size_t *) a],
               y = ((const size_t *) component)[*(const size_t *) b];

        return (x > y) - (x < y);
}

static void judge_all(struct job_order_entry *entries, size_t count, const struct graph *g,
                      const size_t *component, size_t *order)
{
        for (size_t i = 0; i < count; i++)
                order[i] = i;
        qsort_r(order, count, sizeof(size_t), compare_components, (void *) component);
        for (size_t i = 0; i < count; i++)
                if (entries[order[i]].state == JOB_ORDER_WAITING)
                        judge(entries, g, component, order[i]);
                else
                        entries[order[i]].verdict = JOB_ORDER_NOT_WAITING;
}

#define COMPARE(x, y) (((x) > (y)) - ((x) < (y)))

/* Entries, and for each of them the one whose place it takes. */
struct places {
        const struct job_order_entry *entries;
        size_t *of;
};

static int by_namespace(const struct job_order_entry *x, const struct job_order_entry *y)
{
        int r = COMPARE(y->verdict == JOB_ORDER_READY, x->verdict == JOB_ORDER_READY);

        return r != 0 ? r : strcmp(or_empty(x->namespace_), or_empty(y->namespace_));
}

/* Without a word of their owners but the urgency, which not everybody may ask for. */
static int by_place(const struct job_order_entry *x, const struct job_order_entry *y)
{
        int r = COMPARE(y->verdict == JOB_ORDER_READY, x->verdict == JOB_ORDER_READY);

        if (r == 0)
                r = COMPARE(y->urgency, x->urgency);
        if (r == 0)
                r = COMPARE(y->class_value, x->class_value);
        if (r == 0)
                r = COMPARE(y->chips, x->chips);
        if (r == 0)
                r = COMPARE(x->created_usec, y->created_usec);
        return r == 0 ? compare_names(x, y) : r;
}

static int by_namespace_and_place(const void *a, const void *b, void *all)
{
        const struct job_order_entry *entries = ((struct places *) all)->entries,
                                     *x = &entries[*(const size_t *) a], *y = &entries[*(const size_t *) b];
        int r = by_namespace(x, y);

        return r == 0 ? by_place(x, y) : r;
}

static int by_namespace_and_wish(const void *a, const void *b, void *all)
{
        const struct job_order_entry *entries = ((struct places *) all)->entries,
                                     *x = &entries[*(const size_t *) a], *y = &entries[*(const size_t *) b];
        int r = by_namespace(x, y);

        if (r == 0)
                r = COMPARE(y->urgency, x->urgency);
        if (r == 0)
                r = COMPARE(y->class_value, x->class_value);
        if (r == 0)
                r = COMPARE(y->priority, x->priority);
        return r == 0 ? by_place(x, y) : r;
}

static int by_place_taken(const void *a, const void *b, void *all)
{
        const struct places *p = all;

        return by_place(&p->entries[p->of[*(const size_t *) a]], &p->entries[p->of[*(const size_t *) b]]);
}

/* The jobs of a namespace take its places in the queue in the order of their priorities: they change nothing
 * for anybody else. */
static int sort_all(const struct job_order_entry *entries, size_t count, size_t *order)
{
        CLEANUP(free_p) size_t *places = calloc(count + 1, sizeof(*places));
        CLEANUP(free_p) size_t *taken = calloc(count + 1, sizeof(*taken));
        struct places context = { .entries = entries, .of = taken };

        if (places == NULL || taken == NULL)
                return -ENOMEM;
        memcpy(places, order, count * sizeof(*places));
        qsort_r(places, count, sizeof(size_t), by_namespace_and_place, &context);
        qsort_r(order, count, sizeof(size_t), by_namespace_and_wish, &context);
        for (size_t i = 0; i < count; i++)
                taken[order[i]] = places[i];
        qsort_r(order, count, sizeof(size_t), by_place_taken, &context);
        return 0;
}

long job_order(struct job_order_entry *entries, size_t count, size_t *ret_order)
{
        CLEANUP(graph_free) struct graph g = { 0 };
        CLEANUP(free_p) size_t *component = NULL;
        long ready = 0;
        int r = graph_make(&g, entries, count);

        if (r < 0)
                return r;
        for (size_t i = 1; i < count; i++)
                if (compare_names(&entries[g.names[i - 1]], &entries[g.names[i]]) == 0) {
                        ret_order[0] = g.names[i];
                        return -EEXIST;
                }
        component = find_components(&g, entries, count);
        if (component == NULL)
                return -ENOMEM;
        judge_all(entries, count, &g, component, ret_order);
        if (sort_all(entries, count, ret_order) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                ready += entries[i].verdict == JOB_ORDER_READY;
        return ready;
}

/* The shortest way from a job over its parents back to itself: breadth first; came[i] is the child by which i
 * was reached. Return: false if there is none. */
static bool find_circle(const struct graph *g, const struct job_order_entry *entries, size_t count,
                        size_t start, size_t *came, size_t *queue)
{
        size_t head = 0, tail = 0;

        for (size_t i = 0; i < count; i++)
                came[i] = NONE;
        queue[tail++] = start;
        while (head < tail) {
                size_t node = queue[head++];

                for (size_t e = g->first[node]; e < g->first[node + 1]; e++) {
                        size_t parent = g->parents[e];

                        if (parent == NONE || entries[parent].verdict != JOB_ORDER_CYCLE ||
                            came[parent] != NONE)
                                continue;
                        came[parent] = node;
                        if (parent == start)
                                return true;
                        queue[tail++] = parent;
                }
        }
        return false;
}

/* came[] leads from the start's last parent back to the start: it is turned round into queue[]. */
static size_t turn_round(const size_t *came, size_t start, size_t *queue)
{
        size_t length = 0, node = start;

        do {
                node = came[node];
                queue[length++] = node;
        } while (node != start);
        return length;
}

void job_order_cycle(const struct job_order_entry *entries, size_t count, size_t index, struct text *sentence)
{
        CLEANUP(graph_free) struct graph g = { 0 };
        CLEANUP(free_p) size_t *memory = calloc(2 * count + 1, sizeof(size_t));
        size_t length;

        if (memory == NULL || graph_make(&g, entries, count) < 0 ||
            !find_circle(&g, entries, count, index, memory, memory + count)) {
                text_printf(sentence, "%s -> ... -> %s", entries[index].name, entries[index].name);
                return;
        }
        length = turn_round(memory, index, memory + count);
        for (size_t i = 0; i < length && i < CYCLE_NAMES_MAX; i++)
                text_printf(sentence, "%s -> ", entries[memory[count + length - 1 - i]].name);
        text_printf(sentence, "%s%s", length > CYCLE_NAMES_MAX ? "... -> " : "", entries[index].name);
}
