/* Look, and sleep the longer, the longer it has taken. */
#include "trainer/in_step/patience.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "io/clock.h"

#define AWAKE_USEC 500
#define PART       32
#define SLEEP_USEC 2000

/* @begin_usec: of the wait */
static void rest(uint64_t begin_usec)
{
        uint64_t waited_usec = clock_monotonic_usec() - begin_usec, usec = waited_usec / PART;
        struct timespec t;

        if (waited_usec < AWAKE_USEC)
                return;
        usec = usec < SLEEP_USEC ? usec : SLEEP_USEC;
        t = (struct timespec){ .tv_nsec = (long) usec * 1000 };
        (void) nanosleep(&t, NULL);
}

void patience_wait(MPI_Request *requests, int count)
{
        uint64_t begin_usec = clock_monotonic_usec();
        int done = 0;

        for (;; rest(begin_usec)) {
                MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
                if (done)
                        return;
        }
}

int patience_look(MPI_Request *requests, int count, uint64_t begin_usec)
{
        int done = 0, index = MPI_UNDEFINED;

        MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE);
        if (done)
                return index;
        rest(begin_usec);
        return -1;
}

int patience_any(MPI_Request *requests, int count)
{
        uint64_t begin_usec = clock_monotonic_usec();
        int index;

        do
                index = patience_look(requests, count, begin_usec);
        while (index == -1);
        return index;
}

/* A large message arrives piece by piece, and each needs a look: it is waited for anew once it has begun. */
void patience_receive(void *values, size_t count, MPI_Datatype type, int rank, int tag)
{
        uint64_t begin_usec = clock_monotonic_usec();
        MPI_Request arrived;
        int begun = 0;

        for (;; rest(begin_usec)) {
                MPI_Iprobe(rank, tag, MPI_COMM_WORLD, &begun, MPI_STATUS_IGNORE);
                if (begun)
                        break;
        }
        MPI_Irecv(values, (int) count, type, rank, tag, MPI_COMM_WORLD, &arrived);
        patience_wait(&arrived, 1);
}

void patience_send(const void *values, size_t count, MPI_Datatype type, int rank, int tag)
{
        MPI_Request sent;

        MPI_Isend(values, (int) count, type, rank, tag, MPI_COMM_WORLD, &sent);
        patience_wait(&sent, 1);
}

void patience_gather(void)
{
        MPI_Request all;

        MPI_Ibarrier(MPI_COMM_WORLD, &all);
        patience_wait(&all, 1);
}
