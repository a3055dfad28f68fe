/* Hint: what may be done about a rank that failed, as far as it can be told from its last words and from what
 * the others did. Pure.
 *
 * Its last words are the last line that says something: not blank, neither indented nor with a ':' at its
 * end, as traces are below an error; where there is none such, the last one that is not blank. */
#pragma once

#include "base/text.h"
#include "job/world/world.h"

/* hint_words() - of the end of what it wrote. Return: their length; 0 = there are none. */
size_t hint_words(const char *text, const char **ret);

/* hint_add() - "; ..." behind the sentence that says how it ended, or nothing. */
void hint_add(const struct world *world, size_t rank, struct text *to);
