#include "codec/report_words.h"

#include <math.h>
#include <string.h>

void report_append_escaped(struct text *out, const char *words)
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

const char *report_text(const json_t *view, const char *name)
{
        const char *text = json_string_value(json_object_get(view, name));

        return text == NULL ? "" : text;
}

double report_number(const json_t *view, const char *name)
{
        const json_t *value = json_object_get(view, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

void report_append_number(struct text *out, const char *unit, int decimals, double value)
{
        if (isfinite(value))
                text_printf(out, "%.*f%s", decimals, value, unit);
        else
                text_append(out, "&ndash;");
}
