/* Preprocess: what is done to samples before they are trained on, from a specification like
 * "resize:28x28,normalise,flip:0.5,crop:2" or "tokenise:byte".
 *
 * - resize:HxW: images, when they are read; an output pixel is the mean of the input pixels that it covers.
 * - normalise: images; (pixel - mean) / 3 deviations of the training images, so within +-1: the default.
 * - scale: images; pixel / 255 instead.
 * - flip[:P]: training images; mirrored left to right with probability P (0.5).
 * - crop[:N]: training images; moved by up to N (2) pixels each way, the border filled with the darkest
 * value.
 * - tokenise:word: text; words of letters and digits in lower case, and each other mark: the default.
 * - tokenise:byte: text; bytes.
 * - tokenise:wordpiece: text; the pieces of a vocabulary file, vocab.txt beside the text
 * (trainer/data/wordpiece.h).
 *
 * Flip and crop are drawn from (seed, epoch, sample): the same pixels on every backend, rank and strategy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/spec/preprocess_steps.h"
#include "trainer/shape.h"

/* preprocess_parse() - of --preprocess; as preprocess_steps_parse(), and the steps fit the data. */
int preprocess_parse(const char *spec, bool text, struct preprocess_steps *ret, struct err *err);

/* preprocess_span() - the input pixels that output pixel i of `to` covers, of `from` in a line: at least one.
 * Of 7 to 3: 0..2, 2..4, 4..7. */
struct preprocess_span {
        size_t begin, end; /* end not included */
};
struct preprocess_span preprocess_span(size_t i, size_t from, size_t to);

/* preprocess_resize() - one image of unsigned bytes, height x width x channels, into another size. */
void preprocess_resize(const uint8_t *from, size_t height, size_t width, size_t channels, uint8_t *to,
                       size_t to_height, size_t to_width);

/* preprocess_augment() - flip and crop one image in place.
 * @room: as many floats as the image has; @darkest: fills the border */
void preprocess_augment(const struct preprocess_steps *p, uint64_t seed, uint64_t epoch, uint32_t sample,
                        const struct shape *size, float darkest, float *image, float *room);
