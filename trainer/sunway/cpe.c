/* What a CPE (slave core) does with an order: the table of its tasks, the local store's allocator, and what
 * both kinds of CPE make of a transfer. */
#include "trainer/sunway/cpe.h"

#include "trainer/sunway/cpe_class.h"
#include "trainer/sunway/cpe_image.h"
#include "trainer/sunway/cpe_product.h"
#include "trainer/sunway/cpe_vector.h"

/* clang-format off */
static void (*const tasks[CPE_TASKS])(struct cpe *core, const void *job) = {
        [CPE_PRODUCT]          = cpe_product_work,
        [CPE_VECTOR]           = cpe_vector_work,
        [CPE_BIAS]             = cpe_vector_bias,
        [CPE_SUMS]             = cpe_vector_sums,
        [CPE_MERGE]            = cpe_vector_merge,
        [CPE_IM2COL]           = cpe_image_im2col,
        [CPE_COL2IM]          = cpe_image_col2im,
        [CPE_POOL]             = cpe_image_pool,
        [CPE_POOL_GRADIENT]    = cpe_image_pool_gradient,
        [CPE_SOFTMAX]          = cpe_class_softmax,
        [CPE_SOFTMAX_GRADIENT] = cpe_class_softmax_gradient,
        [CPE_EMBED]            = cpe_class_embed,
        [CPE_EMBED_GRADIENT]   = cpe_class_embed_gradient,
};
/* clang-format on */

void cpe_do(struct cpe *core, const struct cpe_order *order)
{
        void *job;

        core->used_bytes = 0;
        job = cpe_take(core, order->bytes);
        if (job == NULL)
                return;
        cpe_get(core, job, order->job, order->bytes);
        tasks[order->task](core, job);
}

size_t cpe_left(const struct cpe *core)
{
        return core->store_bytes - core->used_bytes;
}

void *cpe_take(struct cpe *core, size_t bytes)
{
        size_t rounded = (bytes + CPE_ALIGN_BYTES - 1) / CPE_ALIGN_BYTES * CPE_ALIGN_BYTES;
        void *memory = core->store + core->used_bytes;

        if (rounded < bytes || rounded > cpe_left(core)) {
                core->refused_bytes = bytes > core->refused_bytes ? bytes : core->refused_bytes;
                return NULL;
        }
        core->used_bytes += rounded;
        if (core->used_bytes > core->peak_bytes)
                core->peak_bytes = core->used_bytes;
        return memory;
}

size_t cpe_piece(const struct cpe *core, size_t arrays)
{
        size_t each = cpe_left(core) / arrays / CPE_ALIGN_BYTES * CPE_ALIGN_BYTES / sizeof(float);

        return cpe_smaller(each > 0 ? each : 1, CPE_PIECE_MOST); /* one that does not fit is refused */
}
