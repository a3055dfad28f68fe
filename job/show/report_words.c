/* Escapes, and numbers that may not be known. */
#include "job/show/report_words.h"

#include <math.h>

void report_words_escaped(struct text *out, const char *words)
{
        for (; *words != '\0'; words++) {
                if (*words == '<')
                        text_append(out, "&lt;");
                else if (*words == '>')
                        text_append(out, "&gt;");
                else if (*words == '&')
                        text_append(out, "&amp;");
                else if (*words == '"')
                        text_append(out, "&quot;");
                else if (*words == '\'')
                        text_append(out, "&#39;");
                else if ((unsigned char) *words >= ' ' || *words == '\n' || *words == '\t')
                        text_append_char(out, *words);
        }
}

void report_words_number(struct text *out, const char *unit, int decimals, double value)
{
        if (isfinite(value))
                text_printf(out, "%.*f%s", decimals, value, unit);
        else
                text_append(out, "&ndash;");
}
