/* Any bytes as an exported model of a small made-up shape, mlp or, where it says so, resnet: an error, or a
 * model that runs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "trainer/export/quantised.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct model_size shape = { .input = { 4, 4, 1 }, .classes = 2 };
        struct model m;
        struct quantised *q = NULL;
        struct err err = { 0 };
        float x[16] = { 0.5F, -1, 2 };
        bool branches = size > 0 && memmem(data, size, "model=resnet", 12) != NULL;

        if (model_build(branches ? "resnet" : "mlp", &shape, &m, &err) < 0)
                abort();
        if (quantised_open(&m, data, size, &q, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
                return 0;
        }
        (void) quantised_forward(q, x, 1);
        quantised_free_p(&q);
        return 0;
}
