/* The sentences about a value that a person wrote: what it is not, and what it should be. */
#include "base/json/json_written.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *json_written_shown(const json_t *value, char buffer[JSON_WRITTEN_SHOWN_BYTES])
{
        char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        (void) text_copy(buffer, JSON_WRITTEN_SHOWN_BYTES, dump == NULL ? "?" : dump);
        free(dump);
        return buffer;
}

bool json_written_plain(const struct json_table_row *row, const struct json_field *at)
{
        const char *s = json_string_value(at->value);

        if (row->kind == JSON_TABLE_UINT || row->kind == JSON_TABLE_INT)
                return json_is_integer(at->value);
        if (row->kind == JSON_TABLE_CHARS)
                for (; s != NULL && *s != '\0'; s++)
                        if ((unsigned char) *s < 0x20 || *s == 0x7f)
                                return false;
        return true;
}

/* "is none of a, b": what a value of the row should have been. */
static void append_wrong(struct text *to, const struct json_table_row *row)
{
        switch (row->kind) {
        case JSON_TABLE_CHOICE:
                for (size_t i = 0; row->names[i] != NULL; i++)
                        text_printf(to, "%s%s", i == 0 ? "is none of " : ", ", row->names[i]);
                break;
        case JSON_TABLE_BOOL:
                text_printf(to, "is neither true nor false");
                break;
        case JSON_TABLE_UINT:
        case JSON_TABLE_INT:
                text_printf(to, "is not a whole number in %" PRId64 "..%" PRId64, row->min, row->max);
                break;
        case JSON_TABLE_DOUBLE:
                text_printf(to, "is not a number in %g..%g", row->least, row->most);
                break;
        case JSON_TABLE_CHARS:
                text_printf(to, "is not text of %d to %zu bytes without line ends", row->min > 0,
                            row->size_bytes - 1);
                break;
        default:
                text_printf(to, "is not understood");
                break;
        }
}

int json_written_refuse(const struct json_table_row *row, const struct json_field *at, struct err *err)
{
        struct text wrong = { .max_bytes = 256 };
        char shown[JSON_WRITTEN_SHOWN_BYTES];
        int r;

        append_wrong(&wrong, row);
        r = json_field_error(at, err, "%s %s; %s", json_written_shown(at->value, shown),
                             wrong.data == NULL ? "is wrong" : wrong.data, row->help);
        text_free(&wrong);
        return r;
}

int json_written_no_mapping(const struct json_field *at, struct err *err)
{
        char shown[JSON_WRITTEN_SHOWN_BYTES];

        return json_field_error(at, err, "%s is not a mapping of fields; write `name: value` lines below it",
                                json_written_shown(at->value, shown));
}
