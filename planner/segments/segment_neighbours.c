/* A set of places is a row of marks, one a tensor: one mark is flipped, or two that lie side by side change
 * places. */
#include "planner/segments/segment_neighbours.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct search {
        const struct segment_tensor *tensors;
        const struct segment_cost *cost;
        size_t count;
        bool *marks; /* a segment ends with this tensor */
        double until_ms;
        struct segment_neighbour *found;
        size_t found_count, most;
};

/* Into the list, if it is early enough for it. */
static void keep(struct search *s, const struct segment_neighbour *n)
{
        size_t at = s->found_count;

        if (n->end_ms > s->until_ms || s->most == 0)
                return;
        while (at > 0 && s->found[at - 1].end_ms > n->end_ms)
                at--;
        if (at == s->most)
                return;
        s->found_count += s->found_count < s->most;
        for (size_t i = s->found_count - 1; i > at; i--)
                s->found[i] = s->found[i - 1];
        s->found[at] = *n;
}

static int foretell(struct search *s, struct err *err)
{
        struct segment_neighbour n = { 0 };
        int r;

        for (size_t i = 0; i < s->count; i++) {
                if (!s->marks[i])
                        continue;
                if (n.count == SEGMENT_NEIGHBOURS_CUTS)
                        return 0;
                n.last[n.count++] = i;
        }
        if (n.count < 2)
                return 0;
        r = segments_foretell(s->tensors, s->count, s->cost, n.last, n.count, &n.end_ms, err);
        if (r == 0)
                keep(s, &n);
        return r;
}

/* Is there something to wait for behind it? */
static bool is_place(const struct search *s, size_t i)
{
        return i + 1 < s->count && s->tensors[i + 1].ready_ms > s->tensors[i].ready_ms;
}

static size_t place_after(const struct search *s, size_t i)
{
        do
                i++;
        while (i < s->count && !is_place(s, i));
        return i;
}

static int flip(struct search *s, size_t i, struct err *err)
{
        int r;

        s->marks[i] = !s->marks[i];
        r = foretell(s, err);
        s->marks[i] = !s->marks[i];
        return r;
}

static int swap(struct search *s, size_t i, size_t k, struct err *err)
{
        int r;

        if (k >= s->count || s->marks[i] == s->marks[k])
                return 0;
        s->marks[i] = !s->marks[i];
        r = flip(s, k, err);
        s->marks[i] = !s->marks[i];
        return r;
}

int segment_neighbours(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                       const struct segments_plan *plan, double until_ms, struct segment_neighbour *ret,
                       size_t most, struct err *err)
{
        CLEANUP(free_p) bool *marks = calloc(count, sizeof(*marks));
        struct search s = { tensors, cost, count, marks, until_ms, ret, 0, most };
        int r = 0;

        if (marks == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        for (size_t i = 0; i < plan->segment_count; i++)
                marks[plan->segments[i].last] = true;
        for (size_t i = 0; r == 0 && i + 1 < count; i++) {
                if (is_place(&s, i) || marks[i])
                        r = flip(&s, i, err);
                if (r == 0 && (is_place(&s, i) || marks[i]))
                        r = swap(&s, i, place_after(&s, i), err);
        }
        return r < 0 ? r : (int) s.found_count;
}
