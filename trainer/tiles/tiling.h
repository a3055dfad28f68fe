/* Tiling: which operators of a model go through an image in tiles, and how large these are. Pure.
 *
 * A tile is some rows of the image, as wide as the image, so that it lies in one piece in memory, with a halo
 * of rows above and below. The leading operators of a model that look at places of an image (convolution,
 * bias, add, ReLU, pooling) all go through a tile before the next one; what they keep from the way forward to
 * the way back is that of one tile, and is computed again on the way back. Of what comes out the rows that
 * came of the halo are left out: they are wrong, as a tile ends where the image goes on.
 *
 *         image      a tile            convolution 5 x 5      pooled         what counts
 *         row  0..7                                           0..3
 *         row  8..   halo  8 rows      2 of them wrong        1 wrong        4 left out
 *         row 16..31 16 rows           right                  8 right        8 rows
 *         row 32..39 halo              2 wrong                1 wrong        4 left out
 *
 * A halo has as many rows as can be wrong in the end, times the rows of the image that make one: so tiles
 * begin where a square of every pooling begins. The image's own edges need none: there the zeros outside are
 * what the whole image has, too.
 *
 * A branch (trainer/operators/node_buffers.h) that goes around nodes of a tile comes together in it, or
 * begins behind it.
 *
 * Every place of a tile has the sums that it has in the whole image, so the way forward has the same bits
 * where a kernel adds up in one order. Gradients of weights are added tile by tile: the same numbers added in
 * another order, which is as far apart as two sizes of a batch's parts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"
#include "trainer/operators/kernels.h"

struct tiling_rule {
        const struct kernels *kernels;
        const struct model_node *nodes; /* that are run */
        size_t count;
        size_t samples;       /* at once, at most */
        uint64_t limit_bytes; /* 0 = no tiles */
        bool input_gradient;  /* is wanted */
};

struct tiling {
        size_t nodes;   /* leading ones, that go through tiles; 0 = none does */
        size_t samples; /* at once */
        size_t rows;    /* of what the last of them gives, at once; all of them = images are left whole */
        size_t scale;   /* rows of the image that make one of these */
        size_t halo;    /* rows of the image on each side, a multiple of `scale` */
        uint64_t tile_bytes, whole_bytes; /* what the nodes take with tiles, and without */
};

/* tiling_plan() - no tiles where all samples fit the limit. Otherwise as many whole images at once as fit, or
 * one in as few tiles as fit, but one row of the result at the least, whatever that takes. */
struct tiling tiling_plan(const struct tiling_rule *rule);

struct tiling_rows { /* of the image; of the tile's result those that count, and where they are in the whole
                      */
        size_t first, count;
        size_t skip, rows, at;
};

/* tiling_rows() - the tile whose result begins with row `at`. @height: of the image; @rows: of the result */
struct tiling_rows tiling_rows(const struct tiling *t, size_t height, size_t rows, size_t at);

/* tiling_shape() - the nodes as they are for an image of so many rows. */
void tiling_shape(const struct model_node *nodes, size_t count, size_t height, struct model_node *ret);
