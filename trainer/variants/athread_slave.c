/* A real slave core: gets the order, does its part out of its local store, puts its counts back. Compiled for
 * the slave cores (-mslave), together with slave_tasks.c, slave_work.c, slave_product.c and slave_vectors.c.
 */
#include <slave.h>

#include "trainer/variants/athread_order.h"

#define KEPT_BYTES 6144 /* stack and the variables below lie in the same 64 KB */

__thread_local unsigned char store[LOCAL_STORE_BYTES - KEPT_BYTES]
        __attribute__((aligned(LOCAL_ALIGN_BYTES)));
__thread_local struct slave_core me;
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

void local_get(struct slave_core *core, void *local, const void *main_memory, size_t bytes)
{
        if (bytes > 0)
                transfer_in(local, main_memory, bytes);
        core->read_bytes += bytes;
}

void local_put(struct slave_core *core, void *main_memory, const void *local, size_t bytes)
{
        if (bytes > 0)
                transfer_out(main_memory, local, bytes);
        core->written_bytes += bytes;
}

void remuda_slave_main(void *argument);
void remuda_slave_main(void *argument)
{
        struct athread_order order;
        size_t index = (size_t) athread_get_id(-1);

        transfer_in(&order, argument, sizeof(order));
        transfer_in(&me, &order.cores[index], sizeof(me));
        me.store = store;
        me.store_bytes = sizeof(store);
        slave_core_do(&me, &order.order);
        transfer_out(&order.cores[index], &me, sizeof(me));
}
