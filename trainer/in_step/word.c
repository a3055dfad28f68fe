/* One non-blocking reduction at a time. */
#include "trainer/in_step/word.h"

#include <string.h>

#include "trainer/in_step/patience.h"

void word_begin(struct word *w)
{
        memcpy(w->sent, w->said, sizeof(w->sent));
        MPI_Iallreduce(w->sent, w->heard, WORD_NUMBERS, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD, &w->request);
        w->under_way = true;
}

void word_end(struct word *w)
{
        if (w->under_way)
                patience_wait(&w->request, 1);
        w->under_way = false;
}
