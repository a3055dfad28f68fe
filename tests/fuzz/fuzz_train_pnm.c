/* Any bytes as a PGM or PPM image, brought to 8 x 8. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "trainer/data/pnm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct err err = { 0 };
        struct pnm image;
        uint8_t to[8 * 8 * 3];
        FILE *f = size > 0 ? fmemopen((void *) (uintptr_t) data, size, "r") : NULL;

        if (f == NULL)
                return 0;
        if (pnm_header(f, &image, &err) == 0) {
                if (image.width < 1 || image.width > PNM_EDGE_MAX ||
                    (image.channels != 1 && image.channels != 3))
                        abort();
                (void) pnm_shrink(f, &image, 8, 8, to, &err);
        }
        (void) fclose(f);
        return 0;
}
