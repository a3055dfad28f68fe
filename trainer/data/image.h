/* Image: one encoded picture in memory, JPEG (libjpeg-turbo), PNG (libpng) or PNM, told by its first bytes.
 *
 * What comes from strangers is believed as far as it is there: sizes are looked at before memory is taken for
 * them, a JPEG's scans are counted, and what the libraries refuse is an error with their words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define IMAGE_PIXELS_MAX ((size_t) 1 << 26)
#define IMAGE_SCANS_MAX  100

struct image {
        size_t height, width, channels; /* channels: 1, or 3 */
};

/* image_header() - its size. Return: 0 or -EINVAL. */
int image_header(const uint8_t *bytes, size_t size_bytes, struct image *ret, struct err *err);

/* image_decode() - its pixels, brought to another size, as grey (channels 1) or red, green and blue (3); a
 * PNM must have so many. @to: to_height x to_width x channels. Return: 0, -EINVAL or -ENOMEM. */
int image_decode(const uint8_t *bytes, size_t size_bytes, size_t to_height, size_t to_width, size_t channels,
                 uint8_t *to, struct err *err);

/* image_has_name() - does the name end as an image's does, in small letters or capitals? */
bool image_has_name(const char *name);
