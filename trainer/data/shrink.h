/* Shrink: an image brought to another size row by row, while it is read; an output pixel is the mean of the
 * input pixels that it covers. Holds one input row and one output row's sums: an image need not fit memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct shrink {
        size_t height, width, channels;                                /* of the input */
        int (*next_row)(void *context, uint8_t *row, struct err *err); /* 0 or a negative errno */
        void *context;
};

/* shrink_image() - @to: to_height x to_width x channels. Return: 0, -ENOMEM or next_row()'s error. */
int shrink_image(const struct shrink *image, size_t to_height, size_t to_width, uint8_t *to, struct err *err);
