/* A real CPE (slave core): gets the order, does its part out of its local store, puts its counts back.
 * Compiled for the CPEs (-mslave), together with cpe.c and the tasks. */
#include <slave.h>

#include "trainer/sunway/athread_cpe.h"

#define KEPT_BYTES 6144 /* stack and the variables below lie in the same 64 KB */

__thread_local unsigned char store[CPE_STORE_BYTES - KEPT_BYTES] __attribute__((aligned(CPE_ALIGN_BYTES)));
__thread_local struct cpe me;
__thread_local volatile unsigned long reply;

static void transfer_in(void *local, const void *main_memory, size_t bytes)
{
        reply = 0;
        athread_get(PE_MODE, (void *) main_memory, local, (int) bytes, (void *) &reply, 0, 0, 0);
        while (reply != 1)
                ;
}

static void transfer_out(void *main_memory, const void *local, size_t bytes)
{
        reply = 0;
        athread_put(PE_MODE, (void *) local, main_memory, (int) bytes, (void *) &reply, 0, 0);
        while (reply != 1)
                ;
}

void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes)
{
        if (bytes > 0)
                transfer_in(local, main_memory, bytes);
        core->read_bytes += bytes;
}

void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes)
{
        if (bytes > 0)
                transfer_out(main_memory, local, bytes);
        core->written_bytes += bytes;
}

void remuda_cpe_main(void *argument);
void remuda_cpe_main(void *argument)
{
        struct athread_cpe_order order;
        size_t index = (size_t) athread_get_id(-1);

        transfer_in(&order, argument, sizeof(order));
        transfer_in(&me, &order.cores[index], sizeof(me));
        me.store = store;
        me.store_bytes = sizeof(store);
        cpe_do(&me, &order.order);
        transfer_out(&order.cores[index], &me, sizeof(me));
}
