/* WordPiece: text cut into the pieces of a vocabulary file, as BERT's have it: a piece a line, numbered from
 * 0; `##` before one that goes on a word; `[UNK]` for a word that cannot be made of pieces.
 *
 * Words are letters and digits, or one other mark (as in trainer/data/tokens.h); where the vocabulary has no
 * capital letter they are taken in lower case. From the front the longest piece is taken that is there:
 *
 *         un, ##aff, ##able, ##a in the vocabulary:     "unaffable" is un ##aff ##able
 *
 * Accents stay as they are. O(longest piece) look-ups a piece. Pure but for the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WORDPIECE_PIECES_MAX ((size_t) 1 << 18)
#define WORDPIECE_WORD_BYTES 200 /* a longer word is unknown */

struct wordpiece; /* opaque */

/* wordpiece_parse() - a vocabulary file's bytes. Return: 0; -EINVAL with the line: a piece twice, an empty
 * one, none or too many, no [UNK]; -ENOMEM. */
int wordpiece_parse(const char *bytes, size_t size_bytes, struct wordpiece **ret, struct err *err);
void wordpiece_free(struct wordpiece *w);

size_t wordpiece_count(const struct wordpiece *w); /* of pieces */

/* wordpiece_of() - the numbers of a text's pieces. @tokens: room for as many as the text has bytes. Return:
 * how many. */
size_t wordpiece_of(const struct wordpiece *w, const char *text, size_t size_bytes, uint32_t *tokens);
