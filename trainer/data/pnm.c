/* An image is shrunk row by row while it is read. */
#include "trainer/data/pnm.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/preprocess.h"

/* A number of the header, after blanks and comments. Return: -1 if there is none up to a million or so. */
static long header_number(FILE *f)
{
        long value = 0;
        int c = getc(f), digits = 0;

        while (isspace(c) || c == '#') {
                while (c == '#' && c != EOF)
                        while ((c = getc(f)) != '\n' && c != EOF)
                                ;
                c = getc(f);
        }
        for (; c >= '0' && c <= '9' && digits < 8; digits++, c = getc(f))
                value = value * 10 + (c - '0');
        return digits > 0 && isspace(c) ? value : -1; /* exactly one blank ends the header */
}

int pnm_header(FILE *f, struct pnm *ret, struct err *err)
{
        int p = getc(f), kind = getc(f);
        long width, height, deepest;

        if (p != 'P' || (kind != '5' && kind != '6'))
                return err_set(err, -EINVAL, "no binary PGM (P5) or PPM (P6) image");
        width = header_number(f);
        height = header_number(f);
        deepest = header_number(f);
        if (width < 1 || height < 1 || width > PNM_EDGE_MAX || height > PNM_EDGE_MAX)
                return err_set(err, -EINVAL, "its header has no size from 1 x 1 to %d x %d", PNM_EDGE_MAX,
                               PNM_EDGE_MAX);
        if (deepest != 255)
                return err_set(err, -EINVAL, "its deepest value is %ld: 255 is wanted", deepest);
        *ret = (struct pnm){ .height = (size_t) height,
                             .width = (size_t) width,
                             .channels = kind == '6' ? 3 : 1 };
        return 0;
}

/* Adds an input row to the sums of the output row that it belongs to. */
static void add_row(const struct pnm *image, const uint8_t *row, size_t to_width, uint64_t *sums)
{
        for (size_t c = 0; c < to_width; c++) {
                struct preprocess_span cols = preprocess_span(c, image->width, to_width);

                for (size_t x = cols.begin; x < cols.end; x++)
                        for (size_t k = 0; k < image->channels; k++)
                                sums[c * image->channels + k] += row[x * image->channels + k];
        }
}

static void finish_row(const struct pnm *image, size_t rows, size_t to_width, const uint64_t *sums,
                       uint8_t *to)
{
        for (size_t c = 0; c < to_width * image->channels; c++) {
                struct preprocess_span cols = preprocess_span(c / image->channels, image->width, to_width);
                uint64_t pixels = rows * (cols.end - cols.begin);

                to[c] = (uint8_t) ((sums[c] + pixels / 2) / pixels);
        }
}

int pnm_shrink(FILE *f, const struct pnm *image, size_t to_height, size_t to_width, uint8_t *to,
               struct err *err)
{
        size_t row_bytes = image->width * image->channels, out_bytes = to_width * image->channels, have = 0;
        CLEANUP(free_p) uint8_t *row = malloc(row_bytes);
        CLEANUP(free_p) uint64_t *sums = calloc(out_bytes, sizeof(*sums));

        if (row == NULL || sums == NULL)
                return err_set(err, -ENOMEM, "no memory for a row of %zu pixels", image->width);
        for (size_t r = 0; r < to_height; r++) {
                struct preprocess_span rows = preprocess_span(r, image->height, to_height);

                memset(sums, 0, out_bytes * sizeof(*sums));
                for (size_t y = rows.begin; y < rows.end; y++) {
                        /* when the image grows, a row serves more than once */
                        if (have == y) {
                                if (fread(row, 1, row_bytes, f) != row_bytes)
                                        return err_set(err, -EINVAL, "cut short in row %zu of %zu", y,
                                                       image->height);
                                have++;
                        }
                        add_row(image, row, to_width, sums);
                }
                finish_row(image, rows.end - rows.begin, to_width, sums, to + r * out_bytes);
        }
        return 0;
}
