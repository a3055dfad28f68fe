/* Sums of rows and columns, divided when an output row is whole. */
#include "trainer/data/shrink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/preprocess.h"

/* Adds an input row to the sums of the output row that it belongs to. */
static void add_row(const struct shrink *image, const uint8_t *row, size_t to_width, uint64_t *sums)
{
        for (size_t c = 0; c < to_width; c++) {
                struct preprocess_span cols = preprocess_span(c, image->width, to_width);

                for (size_t x = cols.begin; x < cols.end; x++)
                        for (size_t k = 0; k < image->channels; k++)
                                sums[c * image->channels + k] += row[x * image->channels + k];
        }
}

static void finish_row(const struct shrink *image, size_t rows, size_t to_width, const uint64_t *sums,
                       uint8_t *to)
{
        for (size_t c = 0; c < to_width * image->channels; c++) {
                struct preprocess_span cols = preprocess_span(c / image->channels, image->width, to_width);
                uint64_t pixels = rows * (cols.end - cols.begin);

                to[c] = (uint8_t) ((sums[c] + pixels / 2) / pixels);
        }
}

int shrink_image(const struct shrink *image, size_t to_height, size_t to_width, uint8_t *to, struct err *err)
{
        size_t out_bytes = to_width * image->channels, have = 0;
        CLEANUP(free_p) uint8_t *row = malloc(image->width * image->channels);
        CLEANUP(free_p) uint64_t *sums = calloc(out_bytes, sizeof(*sums));
        int r = 0;

        if (row == NULL || sums == NULL)
                return err_set(err, -ENOMEM, "no memory for a row of %zu pixels", image->width);
        for (size_t y = 0; r == 0 && y < to_height; y++) {
                struct preprocess_span rows = preprocess_span(y, image->height, to_height);

                memset(sums, 0, out_bytes * sizeof(*sums));
                for (size_t in = rows.begin; r == 0 && in < rows.end; in++) {
                        /* when the image grows, a row serves more than once */
                        if (have == in) {
                                r = image->next_row(image->context, row, err);
                                have++;
                        }
                        if (r == 0)
                                add_row(image, row, to_width, sums);
                }
                finish_row(image, rows.end - rows.begin, to_width, sums, to + y * out_bytes);
        }
        return r;
}
