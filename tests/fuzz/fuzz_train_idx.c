/* Any bytes as an IDX file: either an error, or exactly the values that the header promises. */
#include <stdint.h>
#include <stdlib.h>

#include "trainer/data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (size_t rank = 1; rank <= 3; rank += 2) {
                struct err err = { 0 };
                struct idx x = { 0 };
                size_t total = 1;

                if (idx_parse(data, size, rank, &x, &err) < 0) {
                        if (err.msg[0] == '\0' || x.values != NULL)
                                abort();
                        continue;
                }
                for (size_t i = 0; i < x.rank; i++)
                        total *= x.sizes[i];
                if (total + 4 + 4 * rank != size || x.item_bytes * x.sizes[0] != total)
                        abort();
                idx_free(&x);
        }
        return 0;
}
