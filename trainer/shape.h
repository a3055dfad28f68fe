/* Shape: of what goes from operator to operator. */
#pragma once

#include <stddef.h>

struct shape {
        size_t height, width, channels; /* a vector is 1 x 1 x n */
};

static inline size_t shape_size(const struct shape *s)
{
        return s->height * s->width * s->channels;
}
