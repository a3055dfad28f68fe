/* The portable variant: host threads stand in for the slave cores, each for several of them in turn. */
#include "trainer/slave_cores.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct slave_cores {
        struct slave_core *cores;
        size_t count, thread_count; /* the caller is thread 0 */
        pthread_t *threads;
        pthread_mutex_t lock;
        pthread_cond_t wake, finished;
        uint64_t run;      /* number of the run that is on */
        size_t still_busy; /* threads */
        bool closing;
        void (*work)(struct slave_core *core, const void *job);
        const void *job;
        size_t job_bytes;
};

struct stand_in {
        struct slave_cores *group;
        size_t index;
};

const char *slave_cores_variant(void)
{
        return "threads";
}

static void run_one(struct slave_cores *g, struct slave_core *core)
{
        void *job;

        core->used_bytes = 0;
        job = local_take(core, g->job_bytes);
        if (job == NULL)
                return;
        local_get(core, job, g->job, g->job_bytes);
        g->work(core, job);
}

static void run_some(struct slave_cores *g, size_t thread)
{
        for (size_t i = thread; i < g->count; i += g->thread_count)
                run_one(g, &g->cores[i]);
}

static void *stand_in_main(void *argument)
{
        struct stand_in me = *(struct stand_in *) argument;
        struct slave_cores *g = me.group;
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

static int start_threads(struct slave_cores *g)
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

int slave_cores_open(size_t count, size_t cpus, struct slave_cores **ret, struct err *err)
{
        struct slave_cores *g = calloc(1, sizeof(*g));

        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        g->count = count;
        g->thread_count = cpus < count ? cpus : count;
        g->thread_count = g->thread_count > 0 ? g->thread_count : 1;
        (void) pthread_mutex_init(&g->lock, NULL);
        (void) pthread_cond_init(&g->wake, NULL);
        (void) pthread_cond_init(&g->finished, NULL);
        g->cores = calloc(count, sizeof(*g->cores));
        g->threads = calloc(g->thread_count, sizeof(*g->threads));
        for (size_t i = 0; g->cores != NULL && i < count; i++) {
                g->cores[i] = (struct slave_core){ .index = i, .count = count };
                g->cores[i].store = aligned_alloc(4096, LOCAL_STORE_BYTES);
                if (g->cores[i].store == NULL)
                        break;
        }
        if (g->cores == NULL || g->threads == NULL || g->cores[count - 1].store == NULL ||
            start_threads(g) < 0) {
                slave_cores_close(g);
                return err_set(err, -ENOMEM, "%zu slave cores could not be set up", count);
        }
        *ret = g;
        return 0;
}

void slave_cores_close(struct slave_cores *g)
{
        if (g == NULL)
                return;
        (void) pthread_mutex_lock(&g->lock);
        g->closing = true;
        (void) pthread_cond_broadcast(&g->wake);
        (void) pthread_mutex_unlock(&g->lock);
        for (size_t i = 1; g->threads != NULL && i < g->thread_count; i++)
                (void) pthread_join(g->threads[i], NULL);
        for (size_t i = 0; g->cores != NULL && i < g->count; i++)
                free(g->cores[i].store);
        free(g->cores);
        free(g->threads);
        (void) pthread_mutex_destroy(&g->lock);
        (void) pthread_cond_destroy(&g->wake);
        (void) pthread_cond_destroy(&g->finished);
        free(g);
}

size_t slave_cores_count(const struct slave_cores *g)
{
        return g->count;
}

void slave_cores_run(struct slave_cores *g, void (*work)(struct slave_core *core, const void *job),
                     const void *job, size_t bytes)
{
        (void) pthread_mutex_lock(&g->lock);
        g->work = work;
        g->job = job;
        g->job_bytes = bytes;
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

size_t local_left(const struct slave_core *core)
{
        return LOCAL_STORE_BYTES - core->used_bytes;
}

void *local_take(struct slave_core *core, size_t bytes)
{
        size_t rounded = (bytes + LOCAL_ALIGN_BYTES - 1) / LOCAL_ALIGN_BYTES * LOCAL_ALIGN_BYTES;
        void *memory = core->store + core->used_bytes;

        if (rounded < bytes || rounded > local_left(core)) {
                core->refused_bytes = bytes > core->refused_bytes ? bytes : core->refused_bytes;
                return NULL;
        }
        core->used_bytes += rounded;
        if (core->used_bytes > core->peak_bytes)
                core->peak_bytes = core->used_bytes;
        return memory;
}

void local_get(struct slave_core *core, void *local, const void *main_memory, size_t bytes)
{
        memcpy(local, main_memory, bytes);
        core->read_bytes += bytes;
}

void local_put(struct slave_core *core, void *main_memory, const void *local, size_t bytes)
{
        memcpy(main_memory, local, bytes);
        core->written_bytes += bytes;
}

void slave_cores_totals(const struct slave_cores *g, struct slave_totals *ret)
{
        *ret = (struct slave_totals){ 0 };
        for (size_t i = 0; i < g->count; i++) {
                ret->read_bytes += g->cores[i].read_bytes;
                ret->written_bytes += g->cores[i].written_bytes;
                if (g->cores[i].peak_bytes > ret->peak_bytes)
                        ret->peak_bytes = g->cores[i].peak_bytes;
                if (g->cores[i].refused_bytes > ret->refused_bytes)
                        ret->refused_bytes = g->cores[i].refused_bytes;
        }
}
