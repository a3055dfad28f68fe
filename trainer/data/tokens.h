/* Tokens: text cut into numbered words or bytes.
 *
 * Words are letters and digits without case, or one other mark. They get numbers by falling frequency, then
 * by spelling: "the cat and the hat" is 1 3 2 1 4. Number 0 stands for all words beyond the most frequent.
 * Bytes are their value + 1. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TOKENS_WORDS_MAX 8192 /* known; number 0 included */

struct tokens_vocabulary; /* opaque: the words that have numbers */

/* tokens_learn() - a text's tokens' numbers, and the vocabulary that gives them.
 * @ret: allocated; @ret_known: numbers used, the one for all others (0) included; @ret_vocabulary: NULL for
 * bytes; the argument may be NULL */
int tokens_learn(const char *text, size_t size_bytes, bool bytes, uint32_t **ret, size_t *ret_count,
                 size_t *ret_known, struct tokens_vocabulary **ret_vocabulary, struct err *err);

/* tokens_of() - numbers of another text's tokens. @v: NULL = bytes; @tokens: room for as many as the text has
 * bytes. Return: how many. */
size_t tokens_of(const struct tokens_vocabulary *v, const char *text, size_t size_bytes, uint32_t *tokens);

void tokens_vocabulary_free(struct tokens_vocabulary *v);
