/* Simulates the waiting of a list of jobs for each number of nodes of class single, on a grid and then around
 * its best by halves.
 *
 * Example: 40 nodes are tried with 0, 3, 6 ... 39 single ones; with the best at 12 also with 11 and 13.
 * The wait need not fall and rise once, so the answer is the best of those tried, which is what the header
 * promises. Invariant: a queue is served from its front alone; nobody overtakes within a class. */
#include "planner/traces/class_split.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum queue { QUEUE_SINGLE, QUEUE_MULTI, QUEUE_SHARED, QUEUE_COUNT };

struct running {
        uint64_t end_sec;
        uint32_t node, milli;
};

struct simulation {
        const struct class_split_node *nodes;
        const uint8_t *classes;
        size_t node_count;
        const struct class_split_job *jobs;
        uint32_t *free_milli;
        struct running *heap;
        size_t heap_count;
        uint32_t *queues[QUEUE_COUNT];
        size_t begin[QUEUE_COUNT], end[QUEUE_COUNT];
        bool shared; /* some node is of class any: one queue */
        double waited_sec;
        size_t placed;
};

static void push(struct simulation *s, struct running item)
{
        size_t at = s->heap_count++;

        for (; at > 0 && s->heap[(at - 1) / 2].end_sec > item.end_sec; at = (at - 1) / 2)
                s->heap[at] = s->heap[(at - 1) / 2];
        s->heap[at] = item;
}

static struct running pop(struct simulation *s)
{
        struct running first = s->heap[0], last = s->heap[--s->heap_count];
        size_t at = 0;

        for (size_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
                child += child + 1 < s->heap_count && s->heap[child + 1].end_sec < s->heap[child].end_sec;
                if (s->heap[child].end_sec >= last.end_sec)
                        break;
                s->heap[at] = s->heap[child];
        }
        if (s->heap_count > 0)
                s->heap[at] = last;
        return first;
}

static bool class_takes(uint8_t node_class, const struct class_split_job *job)
{
        return node_class == CLASS_SPLIT_ANY || (node_class == CLASS_SPLIT_MULTI) == job->multi;
}

/* The node where least is left over; SIZE_MAX = none has room. */
static size_t best_node(const struct simulation *s, const struct class_split_job *job)
{
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < s->node_count; i++)
                if (s->free_milli[i] >= job->milli && class_takes(s->classes[i], job) &&
                    (best == SIZE_MAX || s->free_milli[i] < s->free_milli[best]))
                        best = i;
        return best;
}

static void serve(struct simulation *s, enum queue queue, uint64_t now_sec)
{
        while (s->begin[queue] < s->end[queue]) {
                const struct class_split_job *job = &s->jobs[s->queues[queue][s->begin[queue]]];
                size_t node = best_node(s, job);

                if (node == SIZE_MAX)
                        return;
                s->begin[queue]++;
                s->free_milli[node] -= job->milli;
                s->waited_sec += (double) (now_sec - job->arrival_sec);
                s->placed++;
                push(s, (struct running){ now_sec + job->duration_sec, (uint32_t) node, job->milli });
        }
}

static void serve_all(struct simulation *s, uint64_t now_sec)
{
        for (int queue = 0; queue < QUEUE_COUNT; queue++)
                serve(s, (enum queue) queue, now_sec);
}

static void finish_until(struct simulation *s, uint64_t limit_sec)
{
        while (s->heap_count > 0 && s->heap[0].end_sec <= limit_sec) {
                struct running ended = pop(s);

                s->free_milli[ended.node] += ended.milli;
                if (s->heap_count == 0 || s->heap[0].end_sec > ended.end_sec)
                        serve_all(s, ended.end_sec);
        }
}

/* Return: 0 it may run; 1 no node is large enough; -ERANGE only nodes of the other class are. */
static int may_run(const struct simulation *s, const struct class_split_job *job)
{
        bool somewhere = false;

        for (size_t i = 0; i < s->node_count; i++)
                if ((uint64_t) s->nodes[i].chips * 1000 >= job->milli) {
                        somewhere = true;
                        if (class_takes(s->classes[i], job))
                                return 0;
                }
        return somewhere ? -ERANGE : 1;
}

static int run(struct simulation *s, size_t job_count, size_t *ret_impossible)
{
        for (size_t i = 0; i < job_count; i++) {
                const struct class_split_job *job = &s->jobs[i];
                enum queue queue = s->shared ? QUEUE_SHARED : job->multi ? QUEUE_MULTI : QUEUE_SINGLE;
                int r = may_run(s, job);

                if (r < 0)
                        return r;
                if (r > 0) {
                        (*ret_impossible)++;
                        continue;
                }
                finish_until(s, job->arrival_sec);
                s->queues[queue][s->end[queue]++] = (uint32_t) i;
                serve(s, queue, job->arrival_sec);
        }
        finish_until(s, UINT64_MAX);
        return 0;
}

int class_split_wait(const struct class_split_node *nodes, const uint8_t *classes, size_t node_count,
                     const struct class_split_job *jobs, size_t job_count, double *ret_sec,
                     size_t *ret_impossible)
{
        CLEANUP(free_p) uint32_t *free_milli = malloc((node_count + 1) * sizeof(*free_milli));
        CLEANUP(free_p) uint32_t *queues = malloc((job_count + 1) * QUEUE_COUNT * sizeof(*queues));
        CLEANUP(free_p) struct running *heap = malloc((job_count + 1) * sizeof(*heap));
        struct simulation s = { .nodes = nodes, .classes = classes, .node_count = node_count, .jobs = jobs };
        int r;

        *ret_impossible = 0;
        if (free_milli == NULL || queues == NULL || heap == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < node_count; i++) {
                free_milli[i] = nodes[i].chips * 1000;
                s.shared = s.shared || classes[i] == CLASS_SPLIT_ANY;
        }
        s.free_milli = free_milli;
        s.heap = heap;
        for (size_t queue = 0; queue < QUEUE_COUNT; queue++)
                s.queues[queue] = &queues[queue * (job_count + 1)];
        r = run(&s, job_count, ret_impossible);
        *ret_sec = s.placed > 0 ? s.waited_sec / (double) s.placed : 0;
        return r;
}

struct trial {
        const struct class_split_node *nodes;
        const struct class_split_job *jobs;
        size_t node_count, job_count;
        uint8_t *classes;
        struct class_split *best;
        bool found;
};

static int try_single(struct trial *t, size_t single)
{
        size_t impossible;
        double wait = 0;
        int r;

        for (size_t i = 0; i < t->node_count; i++)
                t->classes[i] = i < single ? CLASS_SPLIT_SINGLE : CLASS_SPLIT_MULTI;
        r = class_split_wait(t->nodes, t->classes, t->node_count, t->jobs, t->job_count, &wait, &impossible);
        if (r == -ENOMEM)
                return r;
        if (r == 0 && (!t->found || wait < t->best->wait_sec)) {
                t->found = true;
                t->best->single = single;
                t->best->wait_sec = wait;
        }
        return 0;
}

static int refine(struct trial *t, size_t step)
{
        int r = 0;

        for (; step > 0 && r == 0; step /= 2) {
                size_t middle = t->best->single;

                if (middle >= step)
                        r = try_single(t, middle - step);
                if (r == 0 && middle + step <= t->node_count)
                        r = try_single(t, middle + step);
        }
        return r;
}

int class_split_find(const struct class_split_node *nodes, size_t node_count,
                     const struct class_split_job *jobs, size_t job_count, struct class_split *ret)
{
        CLEANUP(free_p) uint8_t *classes = malloc(node_count + 1);
        struct trial trial = { .nodes = nodes,
                               .jobs = jobs,
                               .node_count = node_count,
                               .job_count = job_count,
                               .classes = classes,
                               .best = ret };
        size_t step = node_count / (CLASS_SPLIT_GRID - 1) + 1;
        int r;

        *ret = (struct class_split){ .jobs = job_count, .wait_sec = INFINITY };
        if (classes == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < node_count; i++)
                classes[i] = nodes[i].node_class;
        r = class_split_wait(nodes, classes, node_count, jobs, job_count, &ret->present_wait_sec,
                             &ret->impossible);
        if (r == -ERANGE)
                ret->present_wait_sec = INFINITY; /* jobs there wait for ever */
        for (size_t single = 0; r != -ENOMEM && single <= node_count; single += step)
                r = try_single(&trial, single);
        if (r == 0 && trial.found)
                r = refine(&trial, step / 2);
        return r == -ENOMEM ? r : 0;
}
