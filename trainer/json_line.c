/* Members are appended to a text; what stands at its end says whether a comma is due. */
#include "trainer/json_line.h"

#include <math.h>
#include <string.h>

#include "base/json/json_writer.h"

static struct text *begin(struct json_line *l, const char *name)
{
        struct text *t = &l->text;

        if (t->size_bytes > 0 && strchr("{[", t->data[t->size_bytes - 1]) == NULL)
                text_append_char(t, ',');
        if (name != NULL) {
                json_writer_append_string(t, name);
                text_append_char(t, ':');
        }
        return t;
}

void json_line_open(struct json_line *l, const char *name, char bracket)
{
        text_append_char(begin(l, name), bracket);
}

void json_line_close(struct json_line *l, char bracket)
{
        text_append_char(&l->text, bracket);
}

void json_line_uint(struct json_line *l, const char *name, uint64_t value)
{
        text_printf(begin(l, name), "%llu", (unsigned long long) value);
}

void json_line_real(struct json_line *l, const char *name, double value, int decimals)
{
        if (isfinite(value))
                text_printf(begin(l, name), "%.*f", decimals, value);
        else
                text_append(begin(l, name), "null");
}

void json_line_bool(struct json_line *l, const char *name, bool value)
{
        text_append(begin(l, name), value ? "true" : "false");
}

void json_line_text(struct json_line *l, const char *name, const char *value)
{
        json_writer_append_string(begin(l, name), value);
}

void json_line_print(struct json_line *l, FILE *to)
{
        if (!l->text.failed && l->text.data != NULL)
                (void) fprintf(to, "%s\n", l->text.data);
        json_line_free(l);
}

void json_line_free(struct json_line *l)
{
        text_free(&l->text);
}
