/* Host threads stand in for the CPEs (slave cores), each for several of them in turn. What a task leaves in a
 * local store means nothing to the next one, so the cores of a thread have one store after the other: it
 * stays in the host's cache. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "trainer/sunway/cpe_group.h"

struct threads {
        struct cpe *cores;
        size_t count, thread_count; /* the caller is thread 0 */
        pthread_t *threads;
        unsigned char *stores; /* one a thread */
        pthread_mutex_t lock;
        pthread_cond_t wake, finished;
        uint64_t run;      /* number of the run that is on */
        size_t still_busy; /* threads */
        bool closing;
        const struct cpe_order *order;
};

struct stand_in {
        struct threads *group;
        size_t index;
};

static void run_some(struct threads *g, size_t thread)
{
        for (size_t i = thread; i < g->count; i += g->thread_count)
                cpe_group_do(&g->cores[i], g->order);
}

static void *stand_in_main(void *argument)
{
        struct stand_in me = *(struct stand_in *) argument;
        struct threads *g = me.group;
        uint64_t seen = 0;

        free(argument);
        (void) pthread_mutex_lock(&g->lock);
        while (!g->closing) {
                if (g->run == seen) {
                        (void) pthread_cond_wait(&g->wake, &g->lock);
                        continue;
                }
                seen = g->run;
                (void) pthread_mutex_unlock(&g->lock);
                run_some(g, me.index);
                (void) pthread_mutex_lock(&g->lock);
                if (--g->still_busy == 0)
                        (void) pthread_cond_signal(&g->finished);
        }
        (void) pthread_mutex_unlock(&g->lock);
        return NULL;
}

static int start_threads(struct threads *g)
{
        size_t wanted = g->thread_count;

        for (g->thread_count = 1; g->thread_count < wanted; g->thread_count++) {
                struct stand_in *me = malloc(sizeof(*me));

                if (me == NULL)
                        return -ENOMEM;
                *me = (struct stand_in){ g, g->thread_count };
                if (pthread_create(&g->threads[g->thread_count], NULL, stand_in_main, me) != 0) {
                        free(me);
                        return -EAGAIN;
                }
        }
        return 0;
}

static void threads_close(void *state)
{
        struct threads *g = state;

        (void) pthread_mutex_lock(&g->lock);
        g->closing = true;
        (void) pthread_cond_broadcast(&g->wake);
        (void) pthread_mutex_unlock(&g->lock);
        for (size_t i = 1; g->threads != NULL && i < g->thread_count; i++)
                (void) pthread_join(g->threads[i], NULL);
        free(g->stores);
        free(g->threads);
        (void) pthread_mutex_destroy(&g->lock);
        (void) pthread_cond_destroy(&g->wake);
        (void) pthread_cond_destroy(&g->finished);
        free(g);
}

static int threads_open(struct cpe *cores, const struct cpe_group_rule *rule, void **ret, struct err *err)
{
        size_t count = rule->count;
        struct threads *g = calloc(1, sizeof(*g));

        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        g->cores = cores;
        g->count = count;
        g->thread_count = rule->cpus < count ? rule->cpus : count;
        g->thread_count = g->thread_count > 0 ? g->thread_count : 1;
        (void) pthread_mutex_init(&g->lock, NULL);
        (void) pthread_cond_init(&g->wake, NULL);
        (void) pthread_cond_init(&g->finished, NULL);
        g->threads = calloc(g->thread_count, sizeof(*g->threads));
        g->stores = aligned_alloc(4096, g->thread_count * rule->store_bytes);
        for (size_t i = 0; g->stores != NULL && i < count; i++)
                cores[i].store = g->stores + i % g->thread_count * rule->store_bytes;
        if (g->threads == NULL || g->stores == NULL || start_threads(g) < 0) {
                threads_close(g);
                return err_set(err, -ENOMEM, "%zu slave cores could not be set up", count);
        }
        *ret = g;
        return 0;
}

static void threads_run(void *state, const struct cpe_order *order)
{
        struct threads *g = state;

        (void) pthread_mutex_lock(&g->lock);
        g->order = order;
        g->still_busy = g->thread_count - 1;
        g->run++;
        if (g->still_busy > 0)
                (void) pthread_cond_broadcast(&g->wake);
        (void) pthread_mutex_unlock(&g->lock);
        run_some(g, 0);
        (void) pthread_mutex_lock(&g->lock);
        while (g->still_busy > 0)
                (void) pthread_cond_wait(&g->finished, &g->lock);
        (void) pthread_mutex_unlock(&g->lock);
}

const struct cpe_group_variant cpe_group_threads = { "threads", threads_open, threads_run, threads_close };
