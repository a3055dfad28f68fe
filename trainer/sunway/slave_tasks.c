/* What a slave core does with an order: the table of its tasks, compiled for the slave cores. */
#include "trainer/sunway/slave_cores.h"
#include "trainer/sunway/slave_work.h"

/* clang-format off */
static void (*const tasks[SLAVE_TASKS])(struct slave_core *core, const void *job) = {
        [SLAVE_PRODUCT]          = products_work,
        [SLAVE_VECTOR]           = vectors_work,
        [SLAVE_BIAS]             = rows_bias,
        [SLAVE_SUMS]             = rows_sums,
        [SLAVE_GATHER]           = images_gather,
        [SLAVE_SCATTER]          = images_scatter,
        [SLAVE_POOL]             = images_pool,
        [SLAVE_POOL_GRADIENT]    = images_pool_gradient,
        [SLAVE_SOFTMAX]          = classes_softmax,
        [SLAVE_SOFTMAX_GRADIENT] = classes_softmax_gradient,
        [SLAVE_EMBED]            = classes_embed,
        [SLAVE_EMBED_GRADIENT]   = classes_embed_gradient,
};
/* clang-format on */

void slave_core_do(struct slave_core *core, const struct slave_order *order)
{
        void *job;

        core->used_bytes = 0;
        job = local_take(core, order->bytes);
        if (job == NULL)
                return;
        local_get(core, job, order->job, order->bytes);
        tasks[order->task](core, job);
}

size_t local_left(const struct slave_core *core)
{
        return core->store_bytes - core->used_bytes;
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
