/* Typed reads at a cursor. The path of an error is put together from the cursors on the stack, and only then.
 */
#include "base/json/json_field.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SHOWN_BYTES 64 /* of a wrong string, in a message */

struct json_field json_field_root(const json_t *value)
{
        return (struct json_field){ .value = value };
}

static const json_t *present(const json_t *value)
{
        return json_is_null(value) ? NULL : value;
}

struct json_field json_field_get(const struct json_field *in, const char *name)
{
        return (struct json_field){ .value = present(json_object_get(in->value, name)),
                                    .in = in,
                                    .name = name };
}

struct json_field json_field_at(const struct json_field *in, size_t index)
{
        return (struct json_field){ .value = present(json_array_get(in->value, index)),
                                    .in = in,
                                    .index = index };
}

size_t json_field_count(const struct json_field *array)
{
        return json_array_size(array->value);
}

static void append_path(struct text *path, const struct json_field *at)
{
        if (at->in == NULL)
                return;
        append_path(path, at->in);
        if (at->name == NULL)
                text_printf(path, "[%zu]", at->index);
        else
                text_printf(path, "%s%.*s", path->size_bytes > 0 ? "." : "", SHOWN_BYTES, at->name);
}

int json_field_error(const struct json_field *at, struct err *err, const char *fmt, ...)
{
        struct text path = { 0 };
        char line[400];
        va_list ap;

        if (err == NULL)
                return -EBADMSG;
        va_start(ap, fmt);
        (void) vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        append_path(&path, at);
        if (path.size_bytes > 0)
                (void) err_set(err, -EBADMSG, "%s: %s", path.data, line);
        else
                (void) err_set(err, -EBADMSG, "%s", line);
        text_free(&path);
        return -EBADMSG;
}

/* By enum json_type. */
static const char *const type_names[] = {
        [JSON_OBJECT] = "an object",    [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number",    [JSON_REAL] = "a number", [JSON_TRUE] = "true or false",
        [JSON_FALSE] = "true or false", [JSON_NULL] = "null",
};

static int wrong_type(const struct json_field *at, const char *wanted, struct err *err)
{
        if (json_is_string(at->value))
                return json_field_error(at, err, "must be %s, not the string '%.*s'", wanted, SHOWN_BYTES,
                                        json_string_value(at->value));
        return json_field_error(at, err, "must be %s, not %s", wanted, type_names[json_typeof(at->value)]);
}

int json_field_require(const struct json_field *in, const char *name, struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return at.value == NULL ? json_field_error(&at, err, "is missing") : 0;
}

int json_field_is_object(const struct json_field *at, struct err *err)
{
        if (at->value == NULL)
                return json_field_error(at, err, "must be an object, not null");
        return json_is_object(at->value) ? 0 : wrong_type(at, "an object", err);
}

int json_field_object(const struct json_field *in, const char *name, struct json_field *ret, struct err *err)
{
        *ret = json_field_get(in, name);
        if (ret->value == NULL)
                return JSON_FIELD_ABSENT;
        return json_is_object(ret->value) ? 0 : wrong_type(ret, "an object", err);
}

int json_field_as_array(const struct json_field *at, size_t max, struct err *err)
{
        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (!json_is_array(at->value))
                return wrong_type(at, "a list", err);
        if (json_array_size(at->value) > max)
                return json_field_error(at, err, "must have at most %zu elements, not %zu", max,
                                        json_array_size(at->value));
        return 0;
}

int json_field_array(const struct json_field *in, const char *name, size_t max, struct json_field *ret,
                     struct err *err)
{
        *ret = json_field_get(in, name);
        return json_field_as_array(ret, max, err);
}

int json_field_as_string(const struct json_field *at, const char **ret, struct err *err)
{
        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (!json_is_string(at->value))
                return wrong_type(at, "a string", err);
        if (strlen(json_string_value(at->value)) != json_string_length(at->value))
                return json_field_error(at, err, "must not contain a NUL character");
        *ret = json_string_value(at->value);
        return 0;
}

int json_field_string(const struct json_field *in, const char *name, const char **ret, struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_string(&at, ret, err);
}

const char *json_field_word(const struct json_field *in, const char *name)
{
        const char *text = NULL;

        return json_field_string(in, name, &text, NULL) == 0 ? text : "";
}

int json_field_as_text(const struct json_field *at, char *field, size_t field_bytes, struct err *err)
{
        const char *value = NULL;
        int r = json_field_as_string(at, &value, err);

        if (r != 0)
                return r;
        assert(value != NULL);
        if (strlen(value) >= field_bytes)
                return json_field_error(at, err, "must have at most %zu bytes, not %zu", field_bytes - 1,
                                        strlen(value));
        (void) text_copy(field, field_bytes, value);
        return 0;
}

int json_field_text(const struct json_field *in, const char *name, char *field, size_t field_bytes,
                    struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_text(&at, field, field_bytes, err);
}

int json_field_as_bool(const struct json_field *at, bool *ret, struct err *err)
{
        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (!json_is_boolean(at->value))
                return wrong_type(at, "true or false", err);
        *ret = json_is_true(at->value);
        return 0;
}

int json_field_bool(const struct json_field *in, const char *name, bool *ret, struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_bool(&at, ret, err);
}

/* whole() - the number as an integer. Reals beyond 2^53 are refused: their last digits are made up. */
static bool whole(const json_t *value, int64_t *ret)
{
        double real;

        if (json_is_integer(value)) {
                *ret = json_integer_value(value);
                return true;
        }
        real = json_real_value(value);
        if (real != floor(real) || fabs(real) > 9007199254740992.0)
                return false;
        *ret = (int64_t) real;
        return true;
}

int json_field_as_int64(const struct json_field *at, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
        int64_t value = 0;

        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (!json_is_number(at->value))
                return wrong_type(at, "a whole number", err);
        if (!whole(at->value, &value))
                return json_field_error(at, err, "must be a whole number in %" PRId64 "..%" PRId64 ", not %g",
                                        min, max, json_number_value(at->value));
        if (value < min || value > max)
                return json_field_error(at, err,
                                        "must be a whole number in %" PRId64 "..%" PRId64 ", not %" PRId64,
                                        min, max, value);
        *ret = value;
        return 0;
}

int json_field_int64(const struct json_field *in, const char *name, int64_t min, int64_t max, int64_t *ret,
                     struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_int64(&at, min, max, ret, err);
}

int json_field_unsigned(const struct json_field *in, const char *name, unsigned min, unsigned max,
                        unsigned *ret, struct err *err)
{
        int64_t value = 0;
        int r = json_field_int64(in, name, min, max, &value, err);

        if (r == 0)
                *ret = (unsigned) value;
        return r;
}

int json_field_as_double(const struct json_field *at, double min, double max, double *ret, struct err *err)
{
        double value;

        if (at->value == NULL)
                return JSON_FIELD_ABSENT;
        if (!json_is_number(at->value))
                return wrong_type(at, "a number", err);
        value = json_number_value(at->value);
        if (!(value >= min && value <= max))
                return json_field_error(at, err, "must be a number in %g..%g, not %g", min, max, value);
        *ret = value;
        return 0;
}

int json_field_double(const struct json_field *in, const char *name, double min, double max, double *ret,
                      struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_double(&at, min, max, ret, err);
}

static void append_names(struct text *list, const char *const *names)
{
        for (size_t i = 0; names[i] != NULL; i++)
                text_printf(list, "%s%s", i > 0 ? ", " : "", names[i]);
}

int json_field_as_choice(const struct json_field *at, const char *const *names, unsigned *ret,
                         struct err *err)
{
        struct text list = { 0 };
        const char *value = NULL;
        int r = json_field_as_string(at, &value, err);

        if (r != 0)
                return r;
        assert(value != NULL);
        for (unsigned i = 0; names[i] != NULL; i++)
                if (strcmp(names[i], value) == 0) {
                        *ret = i;
                        return 0;
                }
        append_names(&list, names);
        r = json_field_error(at, err, "must be one of %s, not '%.*s'", list.data, SHOWN_BYTES, value);
        text_free(&list);
        return r;
}

int json_field_choice(const struct json_field *in, const char *name, const char *const *names, unsigned *ret,
                      struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return json_field_as_choice(&at, names, ret, err);
}

static bool among(const char *const *names, const char *name)
{
        for (size_t i = 0; names[i] != NULL; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

int json_field_only(const struct json_field *object, const char *const *names, const char *otherwise,
                    struct err *err)
{
        struct text list = { 0 };
        const char *name;
        json_t *value;
        int r;

        json_object_foreach((json_t *) object->value, name, value)
        {
                struct json_field at = json_field_get(object, name);

                if (among(names, name))
                        continue;
                append_names(&list, names);
                r = json_field_error(&at, err, "%s %s", otherwise, list.data);
                text_free(&list);
                return r;
        }
        return 0;
}
