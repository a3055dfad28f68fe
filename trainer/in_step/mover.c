/* One thread, which has the library while the lock is free. */
#include "trainer/in_step/mover.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "io/clock.h"

#define LOOK_USEC 50 /* between two looks: 6 kB of a gigabit link, of whose buffers hold ten times that */

#define AWAKE_USEC 500 /* since something moved last: of shared memory the rest follows at once */
#define MOVED_USEC 3   /* a look that takes longer has copied or added something */

struct mover {
        pthread_t thread;
        pthread_mutex_t lock; /* the library's */
        pthread_cond_t given;
        MPI_Request *requests;
        size_t count; /* 0 = nothing is under way */
        bool closing;
        _Atomic uint64_t done_usec;
};

/* Once the requests have ended the thread sleeps until it is given others. */
static void look(struct mover *m)
{
        int done = 0;

        MPI_Testall((int) m->count, m->requests, &done, MPI_STATUSES_IGNORE);
        if (!done)
                return;
        m->count = 0;
        atomic_store(&m->done_usec, clock_monotonic_usec());
}

static void rest(void)
{
        const struct timespec t = { .tv_nsec = LOOK_USEC * 1000L };

        (void) nanosleep(&t, NULL);
}

static void *mover_main(void *context)
{
        struct mover *m = context;

        (void) prctl(PR_SET_TIMERSLACK, 1000UL); /* of this thread: otherwise each sleep is twice as long */
        (void) pthread_mutex_lock(&m->lock);
        while (!m->closing) {
                if (m->count == 0) {
                        (void) pthread_cond_wait(&m->given, &m->lock);
                        continue;
                }
                look(m);
                (void) pthread_mutex_unlock(&m->lock);
                rest();
                (void) pthread_mutex_lock(&m->lock);
        }
        (void) pthread_mutex_unlock(&m->lock);
        return NULL;
}

struct mover *mover_new(int level)
{
        struct mover *m;
        int opened = MPI_THREAD_SINGLE;

        MPI_Query_thread(&opened);
        m = opened >= level ? calloc(1, sizeof(*m)) : NULL;
        if (m == NULL)
                return NULL;
        (void) pthread_mutex_init(&m->lock, NULL);
        (void) pthread_cond_init(&m->given, NULL);
        (void) pthread_mutex_lock(&m->lock);
        if (pthread_create(&m->thread, NULL, mover_main, m) == 0)
                return m;
        (void) pthread_mutex_unlock(&m->lock);
        (void) pthread_cond_destroy(&m->given);
        (void) pthread_mutex_destroy(&m->lock);
        free(m);
        return NULL;
}

void mover_free(struct mover *m)
{
        if (m == NULL)
                return;
        m->closing = true;
        (void) pthread_cond_signal(&m->given);
        (void) pthread_mutex_unlock(&m->lock);
        (void) pthread_join(m->thread, NULL);
        (void) pthread_cond_destroy(&m->given);
        (void) pthread_mutex_destroy(&m->lock);
        free(m);
}

void mover_give(struct mover *m, MPI_Request *requests, size_t count)
{
        if (m == NULL)
                return;
        m->requests = requests;
        m->count = count;
        atomic_store(&m->done_usec, count == 0 ? clock_monotonic_usec() : 0);
        if (count > 0)
                (void) pthread_cond_signal(&m->given);
        (void) pthread_mutex_unlock(&m->lock);
}

void mover_take(struct mover *m)
{
        if (m == NULL)
                return;
        (void) pthread_mutex_lock(&m->lock);
        m->count = 0;
}

void mover_wait(MPI_Request *requests, size_t count)
{
        uint64_t until_usec = clock_monotonic_usec() + AWAKE_USEC, look_usec, now_usec;
        int done = count == 0; /* where nothing was begun, MPI may not have been either */
        bool rested = false;

        while (!done) {
                look_usec = clock_monotonic_usec();
                MPI_Testall((int) count, requests, &done, MPI_STATUSES_IGNORE);
                now_usec = clock_monotonic_usec();
                /* the first look after a rest is slow by itself: it takes a second one to be believed */
                if (now_usec - look_usec >= MOVED_USEC) {
                        until_usec = now_usec + (rested ? LOOK_USEC : AWAKE_USEC);
                        rested = false;
                }
                if (!done && now_usec >= until_usec) {
                        rest();
                        rested = true;
                }
        }
}

uint64_t mover_done_usec(const struct mover *m)
{
        return m != NULL ? atomic_load(&m->done_usec) : 0;
}

uint64_t mover_processor_usec(const struct mover *m)
{
        clockid_t clock;

        return m != NULL && pthread_getcpuclockid(m->thread, &clock) == 0 ? clock_usec(clock) : 0;
}
