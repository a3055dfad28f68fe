/* Walks the rows of a table to read an object, and to release what a struct owns. */
#include "base/json/json_table.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_table_row.h"
#include "base/json/json_written.h"
#include "base/text.h"
#include "base/timestamp.h"

#define ROWS_MAX 64 /* of a strict table */

static void free_row(const struct json_table_row *row, char *object);

static void free_elements(const struct json_table_row *row, char *object)
{
        size_t *count = json_table_row_count(row, object);

        for (size_t i = 0; i < *count; i++) {
                char *element = json_table_row_elements(row, object) + i * json_table_row_stride(row);

                if (row->element != NULL)
                        free_row(row->element, element);
                else
                        json_table_free(row->table, element);
        }
        *count = 0;
}

static void free_row(const struct json_table_row *row, char *object)
{
        char *field = object + row->offset;

        switch (row->kind) {
        case JSON_TABLE_STRING:
                free(*(char **) (void *) field);
                *(char **) (void *) field = NULL;
                break;
        case JSON_TABLE_VALUE:
                json_decref(*(json_t **) (void *) field);
                *(json_t **) (void *) field = NULL;
                break;
        case JSON_TABLE_OBJECT:
                json_table_free(row->table, field);
                break;
        case JSON_TABLE_ARRAY:
                free_elements(row, object);
                break;
        case JSON_TABLE_LIST:
        case JSON_TABLE_MAP:
                free_elements(row, object);
                free(*(void **) (void *) field);
                *(void **) (void *) field = NULL;
                break;
        default:
                break;
        }
}

void json_table_free(const struct json_table *table, void *object)
{
        for (const struct json_table_row *row = table->rows; row->name != NULL; row++)
                free_row(row, object);
}

static int decode_struct(const struct json_table *table, const struct json_field *at, void *object,
                         struct err *err);
static int decode_value(const struct json_table_row *row, const struct json_field *at, char *object,
                        bool lenient, struct err *err);

static int decode_integer(const struct json_table_row *row, const struct json_field *at, void *field,
                          struct err *err)
{
        unsigned unused = (unsigned) (8 * (sizeof(int64_t) - row->size_bytes));
        int64_t most = row->kind == JSON_TABLE_UINT && unused > 0
                               ? (int64_t) (UINT64_MAX >> unused)
                               : (int64_t) ((uint64_t) INT64_MAX >> unused),
                least = row->kind == JSON_TABLE_INT && row->min == 0 && row->max == 0 ? -most - 1 : row->min,
                value = 0;
        int r = json_field_as_int64(at, least, row->max == 0 ? most : row->max, &value, err);

        if (r == 0)
                json_table_row_store(field, row->size_bytes, value * json_table_row_scale(row));
        return r;
}

static int decode_choice(const struct json_table_row *row, const struct json_field *at, void *field,
                         struct err *err)
{
        unsigned choice = 0;
        int r = json_field_as_choice(at, row->names, &choice, err);

        if (r == 0)
                json_table_row_store(field, row->size_bytes, choice);
        return r;
}

static int decode_time(const struct json_field *at, uint64_t *field, struct err *err)
{
        const char *text = NULL;
        int r = json_field_as_string(at, &text, err);

        if (r == 0 && timestamp_parse(text, field) < 0)
                return json_field_error(at, err, "must be a time such as 2026-11-21T10:00:00Z");
        return r;
}

static int decode_string(const struct json_field *at, char **field, struct err *err)
{
        const char *text = NULL;
        char *copy;
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        copy = strdup(text);
        if (copy == NULL)
                return err_set(err, -ENOMEM, "no memory for a string of %zu bytes", strlen(text));
        free(*field);
        *field = copy;
        return 0;
}

/* A text that has to say something says nothing. */
static bool is_blank(const struct json_table_row *row, const char *object)
{
        const char *text = object + row->offset;

        if (row->min == 0 || row->table != NULL || row->element != NULL)
                return false;
        if (row->kind == JSON_TABLE_STRING || row->kind == JSON_TABLE_BORROWED)
                text = *(const char *const *) (const void *) text;
        else if (row->kind != JSON_TABLE_CHARS)
                return false;
        return *text == '\0';
}

/* A text that is what its row's rule asks for. */
static int check_rule(const struct json_table_row *row, const struct json_field *at, struct err *err)
{
        const char *text = json_string_value(at->value);

        if (row->rule == NULL || row->kind == JSON_TABLE_MAP || text == NULL || *text == '\0' ||
            row->rule->valid(text))
                return 0;
        return json_field_error(at, err, "'%.100s' %s", text, row->rule->otherwise);
}

/* An element of what is no struct. Of a list with help it is the list that is refused. */
static int decode_plain_element(const struct json_table_row *row, const struct json_field *at, char *element,
                                bool lenient, struct err *err)
{
        int r = decode_value(row->element, at, element, lenient, err);

        if (row->help != NULL && (r > 0 || r == -EBADMSG || !json_written_plain(row->element, at) ||
                                  is_blank(row->element, element)))
                return json_written_refuse(row, at->in, err);
        if (r == JSON_FIELD_ABSENT && !lenient)
                return json_field_error(at, err, "must not be null");
        if (r == 0)
                r = check_rule(row->element, at, err);
        return lenient && r != -ENOMEM ? 0 : r;
}

/* One element of a list, or member of a map, into the place that was made for it. */
static int decode_element(const struct json_table_row *row, const struct json_field *at, const char *key,
                          char *element, bool lenient, struct err *err)
{
        bool fits;

        assert(row->element != NULL || row->table != NULL);
        assert(key == NULL || row->table != NULL);
        if (row->element == NULL && row->help != NULL && !json_is_object(at->value))
                return json_written_no_mapping(at, err);
        if (row->table != NULL && row->table->initial != NULL)
                memcpy(element, row->table->initial, row->table->size_bytes);
        fits = key == NULL || text_copy(element + row->table->key, row->table->key_bytes, key) || lenient;
        if (key != NULL && row->rule != NULL && (fits || row->help != NULL) && !row->rule->valid(key))
                return json_field_error(at, err, "%s", row->rule->otherwise);
        if (!fits)
                return json_field_error(at, err, "its name must have at most %zu bytes",
                                        row->table->key_bytes - 1);
        return row->element == NULL ? decode_struct(row->table, at, element, err)
                                    : decode_plain_element(row, at, element, lenient, err);
}

/* Room for `count` elements and a zeroed one after them; what was there before is released. */
static int make_room(const struct json_table_row *row, char *object, size_t count, struct err *err)
{
        free_row(row, object);
        if (row->kind == JSON_TABLE_ARRAY)
                memset(object + row->offset, 0, row->size_bytes);
        else
                *(void **) (void *) (object + row->offset) = calloc(count + 1, json_table_row_stride(row));
        return json_table_row_elements(row, object) != NULL
                       ? 0
                       : err_set(err, -ENOMEM, "no memory for %zu elements of '%s'", count, row->name);
}

/* The most elements that fit, or are allowed. */
static size_t most_elements(const struct json_table_row *row)
{
        size_t fit = row->kind == JSON_TABLE_ARRAY ? row->size_bytes / json_table_row_stride(row) : SIZE_MAX;

        assert(row->max < 0 || (size_t) row->max <= fit);
        return row->max > 0 ? (size_t) row->max : fit;
}

/* Says of what is wrong with the row itself, not with what lies within it, how to mend it. */
static int with_mend(const struct json_table_row *row, const struct json_field *at, int r, struct err *err)
{
        struct err wrong;

        if (r == -EBADMSG && row->help != NULL)
                return json_written_refuse(row, at, err);
        if (r >= 0 || row->mend == NULL || err == NULL)
                return r;
        wrong = *err;
        return err_set(err, r, "%.300s; give %s", wrong.msg, row->mend);
}

static int decode_list(const struct json_table_row *row, const struct json_field *at, char *object,
                       bool lenient, struct err *err)
{
        size_t most = most_elements(row), found, *count = json_table_row_count(row, object);
        int r = json_field_as_array(at, lenient ? SIZE_MAX : most, err);

        if (r == 0 && row->min > 0 && json_field_count(at) == 0)
                r = json_field_error(at, err, "must not be empty");
        if (r != 0)
                return with_mend(row, at, r, err);
        found = json_field_count(at) < most ? json_field_count(at) : most;
        r = make_room(row, object, found, err);
        while (r == 0 && *count < found) {
                struct json_field item = json_field_at(at, *count);
                char *element = json_table_row_elements(row, object) + *count * json_table_row_stride(row);

                (*count)++; /* before it is read: a half-read element is released, too */
                r = decode_element(row, &item, NULL, element, lenient, err);
        }
        return r;
}

static int decode_map(const struct json_table_row *row, const struct json_field *at, char *object,
                      bool lenient, struct err *err)
{
        size_t most = most_elements(row), found = json_object_size(at->value),
               *count = json_table_row_count(row, object);
        const char *key;
        json_t *value;
        int r;

        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        r = json_field_is_object(at, err);
        if (r == 0 && found > most && !lenient)
                r = json_field_error(at, err, "must have at most %zu members, not %zu", most, found);
        if (r < 0 && row->help != NULL)
                return json_written_refuse(row, at, err);
        if (r == 0)
                r = make_room(row, object, found < most ? found : most, err);
        if (r < 0)
                return r;
        json_object_foreach((json_t *) at->value, key, value)
        {
                struct json_field item = json_field_get(at, key);
                char *element = json_table_row_elements(row, object) + *count * json_table_row_stride(row);

                if (*count == most)
                        break;
                (*count)++;
                r = decode_element(row, &item, key, element, lenient, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_nested(const struct json_table_row *row, const struct json_field *at, void *field,
                         struct err *err)
{
        assert(row->size_bytes == row->table->size_bytes);
        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (row->help != NULL && !json_is_object(at->value))
                return json_written_no_mapping(at, err);
        if (row->table->initial != NULL)
                memcpy(field, row->table->initial, row->table->size_bytes);
        return decode_struct(row->table, at, field, err);
}

static int decode_passed_on(const struct json_field *at, json_t **field)
{
        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        json_decref(*field);
        *field = json_incref((json_t *) at->value);
        return 0;
}

static int decode_real(const struct json_table_row *row, const struct json_field *at, double *field,
                       struct err *err)
{
        bool any = row->least == 0 && row->most == 0;

        return json_field_as_double(at, any ? -HUGE_VAL : row->least, any ? HUGE_VAL : row->most, field, err);
}

/* Return: 0, JSON_FIELD_ABSENT or a negative errno. */
static int decode_value(const struct json_table_row *row, const struct json_field *at, char *object,
                        bool lenient, struct err *err)
{
        void *field = object + row->offset;

        switch (row->kind) {
        case JSON_TABLE_BOOL:
                return json_field_as_bool(at, field, err);
        case JSON_TABLE_UINT:
        case JSON_TABLE_INT:
                return decode_integer(row, at, field, err);
        case JSON_TABLE_DOUBLE:
        case JSON_TABLE_COUNT:
                return decode_real(row, at, field, err);
        case JSON_TABLE_CHARS:
                return json_field_as_text(at, field, row->size_bytes, err);
        case JSON_TABLE_STRING:
                return decode_string(at, field, err);
        case JSON_TABLE_BORROWED:
                return json_field_as_string(at, field, err);
        case JSON_TABLE_CHOICE:
                return decode_choice(row, at, field, err);
        case JSON_TABLE_TIME:
                return decode_time(at, field, err);
        case JSON_TABLE_OBJECT:
                return decode_nested(row, at, field, err);
        case JSON_TABLE_ARRAY:
        case JSON_TABLE_LIST:
                return decode_list(row, at, object, lenient, err);
        case JSON_TABLE_MAP:
                return decode_map(row, at, object, lenient, err);
        case JSON_TABLE_VALUE:
                return decode_passed_on(at, field);
        case JSON_TABLE_CONSTANT:
        case JSON_TABLE_UNREAD:
                return 0;
        case JSON_TABLE_CUSTOM:
                break;
        }
        return at->value == NULL || row->decode == NULL ? JSON_FIELD_ABSENT : row->decode(at, field, err);
}

/* The value at the end of the row's path, by the row's kind and rule. */
static int decode_leaf(const struct json_table *table, const struct json_table_row *row,
                       const struct json_field *at, char *object, struct err *err)
{
        int r = decode_value(row, at, object, table->lenient, table->lenient ? NULL : err);

        if (r == 0 && (is_blank(row, object) || (row->help != NULL && !json_written_plain(row, at))))
                r = json_field_error(at, err, "must not be empty");
        if (row->table == NULL && row->element == NULL &&
            (row->kind != JSON_TABLE_CUSTOM || row->help == NULL))
                r = with_mend(row, at, r, err);
        if (r == 0)
                r = check_rule(row, at, err);
        if (row->given > 0 && at->value != NULL)
                *(bool *) (object + row->given) = true;
        return r;
}

/* @name: of the row, or what is left of its path below @in. */
static int decode_row(const struct json_table *table, const struct json_table_row *row,
                      const struct json_field *in, const char *name, char *object, struct err *err)
{
        char first[JSON_TABLE_ROW_NAME_BYTES];
        struct json_field at;
        const char *rest;
        int r;

        if (json_table_row_step(table, name, first, &rest)) {
                r = json_field_object(in, first, &at, table->lenient ? NULL : err);
                if (r >= 0)
                        return decode_row(table, row, &at, rest, object, err);
        } else {
                at = json_field_get(in, name);
                if (row->help != NULL)
                        at.value = json_object_get(in->value, name);
                r = decode_leaf(table, row, &at, object, err);
        }
        if (r == JSON_FIELD_ABSENT && row->required)
                return row->help != NULL ? json_field_error(&at, err, "missing; %s", row->mend)
                                         : with_mend(row, &at, json_field_error(&at, err, "is missing"), err);
        return r > 0 || (table->lenient && r != -ENOMEM) ? 0 : r;
}

static int refuse_unknown(const struct json_table *table, const struct json_field *at, struct err *err)
{
        const char *names[ROWS_MAX + 1] = { NULL };

        for (size_t i = 0; table->rows[i].name != NULL; i++) {
                assert(i < ROWS_MAX);
                names[i] = table->rows[i].name;
        }
        return json_field_only(at, names,
                               table->rows[0].help != NULL ? "no such field; there are" : JSON_FIELD_UNKNOWN,
                               err);
}

static int decode_struct(const struct json_table *table, const struct json_field *at, void *object,
                         struct err *err)
{
        int r = table->lenient ? 0 : json_field_is_object(at, err);

        if (r == 0 && table->strict)
                r = refuse_unknown(table, at, err);
        for (const struct json_table_row *row = table->rows; r == 0 && row->name != NULL; row++)
                r = decode_row(table, row, at, row->name, object, err);
        return r == 0 && table->check != NULL ? table->check(at, object, err) : r;
}

int json_table_decode_at(const struct json_table *table, const struct json_field *at, void *object,
                         struct err *err)
{
        int r = decode_struct(table, at, object, err);

        if (r < 0)
                json_table_free(table, object);
        if (r == -ENOMEM)
                (void) err_set(err, r, "no memory for what the JSON holds");
        return r;
}

int json_table_decode(const struct json_table *table, const json_t *value, void *object, struct err *err)
{
        struct json_field root = json_field_root(value);

        return json_table_decode_at(table, &root, object, err);
}
