/* Walks the rows of a table to write an object. */
#include "base/json/json_table_encode.h"

#include <math.h>

#include "base/json/json_table.h"
#include "base/json/json_table_row.h"
#include "base/text.h"
#include "base/timestamp.h"

#define TEXT_BYTES 512 /* of text that is no UTF-8 */

static json_t *encode_text(const char *text)
{
        json_t *value = json_string(text);
        char plain[TEXT_BYTES];

        if (value != NULL)
                return value;
        (void) text_copy(plain, sizeof(plain), text);
        for (char *c = plain; *c != '\0'; c++)
                if ((unsigned char) *c >= 0x80)
                        *c = '?';
        return json_string(plain);
}

static json_t *encode_time(uint64_t usec)
{
        char text[TIMESTAMP_BYTES];

        return json_string(timestamp_format(usec, text));
}

static json_t *encode_count(double count)
{
        return fabs(count) < 9e18 ? json_integer((json_int_t) count) : json_null();
}

static json_t *encode_choice(const char *const *names, int64_t choice)
{
        for (int64_t i = 0; names[i] != NULL; i++)
                if (i == choice)
                        return json_string(names[i]);
        return json_null();
}

static json_t *encode_value(const struct json_table_row *row, const char *object);

static json_t *encode_element(const struct json_table_row *row, const char *element)
{
        return row->element != NULL ? encode_value(row->element, element)
                                    : json_table_encode(row->table, element);
}

/* A list or a map; the object is not changed. */
static json_t *encode_elements(const struct json_table_row *row, char *object)
{
        json_t *list = row->kind == JSON_TABLE_MAP ? json_object() : json_array();
        int r = 0;

        for (size_t i = 0; r == 0 && i < *json_table_row_count(row, object); i++) {
                const char *element = json_table_row_elements(row, object) + i * json_table_row_stride(row);
                json_t *value = encode_element(row, element);

                if (row->kind == JSON_TABLE_MAP)
                        r = json_object_set_new(list, element + row->table->key, value);
                else
                        r = json_array_append_new(list, value);
        }
        if (r == 0)
                return list;
        json_decref(list);
        return NULL;
}

/* Return: a new reference, or NULL: no memory. */
static json_t *encode_value(const struct json_table_row *row, const char *object)
{
        const void *field = object + row->offset;
        const char *string;

        switch (row->kind) {
        case JSON_TABLE_BOOL:
                return json_boolean(*(const bool *) field);
        case JSON_TABLE_UINT:
        case JSON_TABLE_INT:
                return json_integer(json_table_row_load(field, row->size_bytes, row->kind == JSON_TABLE_INT) /
                                    json_table_row_scale(row));
        case JSON_TABLE_DOUBLE:
                return isfinite(*(const double *) field) ? json_real(*(const double *) field) : json_null();
        case JSON_TABLE_COUNT:
                return encode_count(*(const double *) field);
        case JSON_TABLE_CHARS:
                return encode_text(field);
        case JSON_TABLE_STRING:
        case JSON_TABLE_BORROWED:
                string = *(const char *const *) field;
                return string == NULL ? json_null() : encode_text(string);
        case JSON_TABLE_CHOICE:
                return encode_choice(row->names, json_table_row_load(field, row->size_bytes, false));
        case JSON_TABLE_TIME:
                return encode_time(*(const uint64_t *) field / (uint64_t) json_table_row_scale(row) *
                                   (uint64_t) json_table_row_scale(row));
        case JSON_TABLE_OBJECT:
                return json_table_encode(row->table, field);
        case JSON_TABLE_ARRAY:
        case JSON_TABLE_LIST:
        case JSON_TABLE_MAP:
                return encode_elements(row, (char *) object);
        case JSON_TABLE_VALUE:
                return *(json_t *const *) field == NULL ? json_null() : json_incref(*(json_t *const *) field);
        case JSON_TABLE_CONSTANT:
                return json_string(row->text);
        case JSON_TABLE_CUSTOM:
        case JSON_TABLE_UNREAD:
                break;
        }
        return row->encode(field);
}

static bool is_empty(const struct json_table_row *row, const json_t *value)
{
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return json_object_size(value) == 0;
        case JSON_ARRAY:
                return json_array_size(value) == 0;
        case JSON_STRING:
                return json_string_length(value) == 0 && row->kind != JSON_TABLE_CHOICE;
        case JSON_INTEGER:
        case JSON_REAL:
                return !(json_number_value(value) < 0 || json_number_value(value) > 0);
        case JSON_TRUE:
                return false;
        case JSON_FALSE:
        case JSON_NULL:
                break;
        }
        return true;
}

static bool is_unset(const json_t *value)
{
        return json_is_null(value) || json_number_value(value) < 0;
}

/* @name: what is left of the path below @in. Takes the reference. */
static int set_at_path(const struct json_table *table, json_t *in, const char *name, json_t *value)
{
        char first[JSON_TABLE_ROW_NAME_BYTES];
        const char *rest;
        json_t *inner;

        if (!json_table_row_step(table, name, first, &rest))
                return json_object_set_new(in, name, value);
        inner = json_object_get(in, first);
        if (inner == NULL && json_object_set_new(in, first, inner = json_object()) < 0) {
                json_decref(value);
                return -1;
        }
        return set_at_path(table, inner, rest, value);
}

json_t *json_table_encode(const struct json_table *table, const void *object)
{
        json_t *ret = json_object();
        int r = ret == NULL ? -1 : 0;

        for (const struct json_table_row *row = table->rows; r == 0 && row->name != NULL; row++) {
                json_t *value;

                if (row->read_only || row->kind == JSON_TABLE_UNREAD)
                        continue;
                value = encode_value(row, object);
                if (value != NULL && ((row->omit && is_empty(row, value)) || (row->unset && is_unset(value))))
                        json_decref(value);
                else
                        r = set_at_path(table, ret, row->name, value);
        }
        if (r == 0)
                return ret;
        json_decref(ret);
        return NULL;
}
