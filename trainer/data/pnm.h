/* PNM: binary portable grey maps and pixmaps (P5, P6, 8 bits), read in stripes, so that an image need not fit
 * memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define PNM_EDGE_MAX 1048576

struct pnm {
        size_t height, width, channels; /* channels: 1 or 3 */
};

/* pnm_header() - read up to the first pixel. Return: 0, or -EINVAL (no P5 or P6, not 8 bits, sizes out of
 * range). */
int pnm_header(FILE *f, struct pnm *ret, struct err *err);

/* pnm_shrink() - read the pixels that follow and bring them to another size; holds one output row's input
 * rows at most one at a time. @to: to_height x to_width x channels. Return: 0, -EINVAL (cut short), -ENOMEM.
 */
int pnm_shrink(FILE *f, const struct pnm *image, size_t to_height, size_t to_width, uint8_t *to,
               struct err *err);
