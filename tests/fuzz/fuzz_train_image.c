/* Any bytes as an image, brought to 8 x 8: a sentence, or pixels. */
#include <stdint.h>
#include <stdlib.h>

#include "trainer/data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct err err = { 0 };
        struct image image = { 0 };
        uint8_t to[8 * 8 * 3];

        if (image_header(data, size, &image, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
                return 0;
        }
        if (image.height * image.width > 1 << 20) /* seconds a case */
                return 0;
        if (image.height < 1 || image.width < 1 || (image.channels != 1 && image.channels != 3))
                abort();
        err = (struct err){ 0 };
        if (image_decode(data, size, 8, 8, image.channels, to, &err) < 0 && err.msg[0] == '\0')
                abort();
        return 0;
}
