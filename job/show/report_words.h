/* Words and numbers of a report: what its page (report_page.c) and its pictures (report_picture.c) share.
 */
#pragma once

#include "base/text.h"

/* report_words_escaped() - words from outside, harmless in HTML and SVG; control characters are left out. */
void report_words_escaped(struct text *out, const char *words);

/* report_words_number() - with its unit; a dash where the value is not known (NAN). */
void report_words_number(struct text *out, const char *unit, int decimals, double value);
