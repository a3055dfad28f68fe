/* Resizing by means of what a pixel covers; flips and crops drawn from seed, epoch and sample. */
#include "trainer/data/preprocess.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trainer/random.h"

int preprocess_parse(const char *spec, bool text, struct preprocess_steps *ret, struct err *err)
{
        int r = preprocess_steps_parse(spec, ret, err);

        if (r == 0)
                r = preprocess_steps_fit(ret, text, err);

        return r < 0 ? err_wrap(err, r, "--preprocess") : 0;
}

struct preprocess_span preprocess_span(size_t i, size_t from, size_t to)
{
        struct preprocess_span s = { i * from / to, (i + 1) * from / to };

        s.end = s.end > s.begin ? s.end : s.begin + 1;
        return s;
}

void preprocess_resize(const uint8_t *from, size_t height, size_t width, size_t channels, uint8_t *to,
                       size_t to_height, size_t to_width)
{
        for (size_t r = 0; r < to_height; r++) {
                struct preprocess_span rows = preprocess_span(r, height, to_height);

                for (size_t c = 0; c < to_width * channels; c++) {
                        struct preprocess_span cols = preprocess_span(c / channels, width, to_width);
                        size_t sum = 0, pixels = (rows.end - rows.begin) * (cols.end - cols.begin);

                        for (size_t y = rows.begin; y < rows.end; y++)
                                for (size_t x = cols.begin; x < cols.end; x++)
                                        sum += from[(y * width + x) * channels + c % channels];
                        to[r * to_width * channels + c] = (uint8_t) ((sum + pixels / 2) / pixels);
                }
        }
}

static void flip(size_t height, size_t width, size_t channels, const float *from, float *to)
{
        for (size_t r = 0; r < height; r++)
                for (size_t c = 0; c < width; c++)
                        memcpy(to + (r * width + c) * channels, from + (r * width + width - 1 - c) * channels,
                               channels * sizeof(*to));
}

static void move(size_t height, size_t width, size_t channels, long down, long right, float fill,
                 const float *from, float *to)
{
        for (size_t r = 0; r < height; r++)
                for (size_t c = 0; c < width; c++)
                        for (size_t k = 0; k < channels; k++) {
                                long y = (long) r - down, x = (long) c - right;
                                bool inside = y >= 0 && x >= 0 && y < (long) height && x < (long) width;

                                to[(r * width + c) * channels + k] =
                                        inside ? from[((size_t) y * width + (size_t) x) * channels + k]
                                               : fill;
                        }
}

void preprocess_augment(const struct preprocess_steps *p, uint64_t seed, uint64_t epoch, uint32_t sample,
                        const struct shape *size, float darkest, float *image, float *room)
{
        struct random_source r = random_for(seed ^ (epoch << 32), "augmentation", sample);
        size_t bytes = shape_size(size) * sizeof(*image);
        bool mirrored = (double) random_unit(&r) < p->flip;
        long down = (long) random_below(&r, 2 * p->crop + 1) - (long) p->crop;
        long right = (long) random_below(&r, 2 * p->crop + 1) - (long) p->crop;

        if (mirrored) {
                flip(size->height, size->width, size->channels, image, room);
                memcpy(image, room, bytes);
        }
        if (down != 0 || right != 0) {
                move(size->height, size->width, size->channels, down, right, darkest, image, room);
                memcpy(image, room, bytes);
        }
}
