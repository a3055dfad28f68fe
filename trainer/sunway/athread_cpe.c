/* A real CPE (slave core): gets the order, does its part out of its local store, puts its counts back.
 * Compiled for the CPEs (-mslave), together with cpe.c and the tasks. */
#include <slave.h>

#include "trainer/sunway/athread_cpe.h"

/* Stack and the variables below lie in the rest. */
__thread_local unsigned char store[ATHREAD_STORE_BYTES - CPE_KEPT_BYTES]
        __attribute__((aligned(CPE_ALIGN_BYTES)));
__thread_local struct cpe me;

void cpe_begin_get(struct cpe *core, struct cpe_transfer *t, void *local, const void *main_memory,
                   size_t bytes)
{
        core->read_bytes += bytes;
        if (bytes == 0)
                return;
        athread_get(PE_MODE, (void *) main_memory, local, (int) bytes, (void *) &t->arrived, 0, 0, 0);
        t->begun++;
}

void cpe_begin_get_rows(struct cpe *core, struct cpe_transfer *t, float *local, const float *main_memory,
                        size_t rows, size_t cols, size_t stride)
{
        if (cols == stride) {
                cpe_begin_get(core, t, local, main_memory, rows * cols * sizeof(*local));
                return;
        }
        for (size_t r = 0; r < rows; r++)
                cpe_begin_get(core, t, local + r * cols, main_memory + r * stride, cols * sizeof(*local));
}

void cpe_begin_put(struct cpe *core, struct cpe_transfer *t, void *main_memory, const void *local,
                   size_t bytes)
{
        core->written_bytes += bytes;
        if (bytes == 0)
                return;
        athread_put(PE_MODE, (void *) local, main_memory, (int) bytes, (void *) &t->arrived, 0, 0);
        t->begun++;
}

void cpe_begin_put_rows(struct cpe *core, struct cpe_transfer *t, float *main_memory, const float *local,
                        size_t rows, size_t cols, size_t stride)
{
        if (cols == stride) {
                cpe_begin_put(core, t, main_memory, local, rows * cols * sizeof(*local));
                return;
        }
        for (size_t r = 0; r < rows; r++)
                cpe_begin_put(core, t, main_memory + r * stride, local + r * cols, cols * sizeof(*local));
}

void cpe_wait(struct cpe *core, struct cpe_transfer *t)
{
        (void) core;
        while (t->arrived != t->begun)
                ;
        t->arrived = t->begun = 0;
}

void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes)
{
        struct cpe_transfer t = { 0 };

        cpe_begin_get(core, &t, local, main_memory, bytes);
        cpe_wait(core, &t);
}

void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes)
{
        struct cpe_transfer t = { 0 };

        cpe_begin_put(core, &t, main_memory, local, bytes);
        cpe_wait(core, &t);
}

void remuda_cpe_main(void *argument);
void remuda_cpe_main(void *argument)
{
        struct athread_cpe_order order;
        struct cpe uncounted = { 0 };
        size_t index = (size_t) athread_get_id(-1);

        cpe_get(&uncounted, &order, argument, sizeof(order));
        cpe_get(&uncounted, &me, &order.cores[index], sizeof(me));
        me.store = store; /* at most as large: athread.c has seen to that */
        cpe_do(&me, &order.order);
        cpe_put(&uncounted, &order.cores[index], &me, sizeof(me));
}
