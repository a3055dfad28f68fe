/* Words and numbers of a report: what its page (report_html.c) and its pictures (report_picture.c) share.
 * Nobody else includes this. */
#pragma once

#include "base/text.h"

/* report_append_escaped() - words from outside, harmless in HTML and SVG; control characters are left out. */
void report_append_escaped(struct text *out, const char *words);

/* report_append_number() - with its unit; a dash where the value is not known (NAN). */
void report_append_number(struct text *out, const char *unit, int decimals, double value);
