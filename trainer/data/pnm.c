/* An image is shrunk row by row while it is read. */
#include "trainer/data/pnm.h"

#include <ctype.h>
#include <errno.h>

#include "trainer/data/shrink.h"

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

struct rows {
        FILE *f;
        const struct pnm *image;
        size_t next;
};

static int next_row(void *context, uint8_t *row, struct err *err)
{
        struct rows *r = context;
        size_t bytes = r->image->width * r->image->channels;

        if (fread(row, 1, bytes, r->f) != bytes)
                return err_set(err, -EINVAL, "cut short in row %zu of %zu", r->next, r->image->height);
        r->next++;
        return 0;
}

int pnm_shrink(FILE *f, const struct pnm *image, size_t to_height, size_t to_width, uint8_t *to,
               struct err *err)
{
        struct rows rows = { .f = f, .image = image };
        struct shrink shrink = { image->height, image->width, image->channels, next_row, &rows };

        return shrink_image(&shrink, to_height, to_width, to, err);
}
