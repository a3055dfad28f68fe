/* Walks the rows over an object; one function a kind of value. */
#include "job/spec/field.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PATH_BYTES 256

static void join(char path[PATH_BYTES], const char *parent, const char *name)
{
        (void) text_format(path, PATH_BYTES, parent[0] == '\0' ? "%s%.120s" : "%.120s.%.120s", parent, name);
}

const char *field_shown(const json_t *value, char buffer[FIELD_SHOWN_BYTES])
{
        char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        (void) text_copy(buffer, FIELD_SHOWN_BYTES, dump == NULL ? "?" : dump);
        free(dump);
        return buffer;
}

static int refuse(const struct field *field, const char *path, const json_t *value, struct err *err)
{
        struct text choices = { .max_bytes = 256 };
        char buffer[FIELD_SHOWN_BYTES];
        const char *shown = field_shown(value, buffer);

        switch (field->kind) {
        case FIELD_CHOICE:
                for (int i = 0; i < field->choice_count; i++)
                        text_printf(&choices, "%s%s", i == 0 ? "" : ", ", field->choices[i]);
                err_set(err, -EINVAL, "%s: %s is none of %s; %s", path, shown,
                        choices.data == NULL ? "" : choices.data, field->help);
                break;
        case FIELD_BOOL:
                err_set(err, -EINVAL, "%s: %s is neither true nor false; %s", path, shown, field->help);
                break;
        case FIELD_UINT:
        case FIELD_INT:
                err_set(err, -EINVAL, "%s: %s is not a whole number in %.0f..%.0f; %s", path, shown,
                        field->min, field->max, field->help);
                break;
        case FIELD_REAL:
                err_set(err, -EINVAL, "%s: %s is not a number in %g..%g; %s", path, shown, field->min,
                        field->max, field->help);
                break;
        case FIELD_TEXT:
                err_set(err, -EINVAL, "%s: %s is not text of %d to %zu bytes without line ends; %s", path,
                        shown, field->min > 0 ? 1 : 0, field->size_bytes - 1, field->help);
                break;
        default:
                err_set(err, -EINVAL, "%s: %s is not understood; %s", path, shown, field->help);
                break;
        }
        text_free(&choices);
        return -EINVAL;
}

/* Text becomes arguments, variables and file names: no control characters, so also no NUL and no line end. */
static const char *clean_text(const json_t *value)
{
        const char *s = json_string_value(value);

        if (s == NULL || strlen(s) != json_string_length(value))
                return NULL;
        for (const char *p = s; *p != '\0'; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        return NULL;
        return s;
}

/* Every kind returns 1 where the row's help is to be given. */
static int decode_choice(const json_t *value, const struct field *field, int *into)
{
        const char *s = clean_text(value);

        for (int i = 0; s != NULL && i < field->choice_count; i++)
                if (strcmp(s, field->choices[i]) == 0) {
                        *into = i;
                        return 0;
                }
        return 1;
}

static int decode_number(const json_t *value, const struct field *field, void *into)
{
        double number = json_number_value(value);

        if (!(field->kind == FIELD_REAL ? json_is_number(value) : json_is_integer(value)) ||
            !(number >= field->min) || !(number <= field->max))
                return 1;
        if (field->kind == FIELD_REAL)
                *(double *) into = number;
        else if (field->kind == FIELD_INT)
                *(int64_t *) into = json_integer_value(value);
        else
                *(uint64_t *) into = (uint64_t) json_integer_value(value);
        return 0;
}

static int decode_text(const json_t *value, const struct field *field, const char *path, char *into,
                       struct err *err)
{
        const char *s = clean_text(value);

        if (s == NULL || (field->min > 0 && s[0] == '\0') || !text_copy(into, field->size_bytes, s))
                return 1;
        if (field->rule != NULL && s[0] != '\0' && !field->rule->valid(s))
                return err_set(err, -EINVAL, "%s: '%.100s' %s", path, s, field->rule->otherwise);
        return 0;
}

static int decode_string(const json_t *value, char **into, struct err *err)
{
        const char *s = json_string_value(value);

        if (s == NULL || strlen(s) != json_string_length(value))
                return 1;
        *into = strdup(s);
        return *into == NULL ? err_set(err, -ENOMEM, "no memory for the job") : 0;
}

static void *make_room(const struct field *field, size_t count, void *base, struct err *err)
{
        void **list = (void **) (void *) ((char *) base + field->offset);

        *list = calloc(count + 1, field->size_bytes);
        *(size_t *) (void *) ((char *) base + field->count) = 0;
        if (*list == NULL)
                (void) err_set(err, -ENOMEM, "no memory for the job");
        return *list;
}

static bool is_many(const struct field *field, size_t count)
{
        return (double) count >= field->min && (double) count <= field->max;
}

/* An element that is no object is refused with the list's own help. */
static int decode_element(const json_t *value, const char *path, const struct field *field, size_t i,
                          void *base, struct err *err)
{
        char *items = *(char **) (void *) ((char *) base + field->offset);

        *(size_t *) (void *) ((char *) base + field->count) = i + 1;
        return field_decode_value(value, path, field->element, items + i * field->size_bytes, err);
}

static int decode_list(const json_t *value, const char *path, const struct field *field, void *base,
                       struct err *err)
{
        size_t count = json_array_size(value);
        int r = 0;

        if (!json_is_array(value) || !is_many(field, count))
                return 1;
        if (make_room(field, count, base, err) == NULL)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < count; i++) {
                char entry[PATH_BYTES];

                (void) text_format(entry, sizeof(entry), "%s[%zu]", path, i);
                r = decode_element(json_array_get(value, i), entry, field, i, base, err);
        }
        return r;
}

static int decode_map(const json_t *value, const char *path, const struct field *field, void *base,
                      struct err *err)
{
        size_t count = json_object_size(value), i = 0;
        const char *key;
        json_t *member;
        int r = 0;

        if (!json_is_object(value) || !is_many(field, count))
                return 1;
        if (make_room(field, count, base, err) == NULL)
                return -ENOMEM;
        json_object_foreach((json_t *) value, key, member)
        {
                char *items = *(char **) (void *) ((char *) base + field->offset), entry[PATH_BYTES];

                join(entry, path, key);
                if (!field->rule->valid(key))
                        return err_set(err, -EINVAL, "%s: %s", entry, field->rule->otherwise);
                (void) text_copy(items + i * field->size_bytes, field->size_bytes,
                                 key); /* the rule holds its length */
                r = decode_element(member, entry, field, i++, base, err);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int decode_value(const json_t *value, const char *path, const struct field *field, void *base,
                        struct err *err)
{
        void *into = (char *) base + field->offset;

        switch (field->kind) {
        case FIELD_CHOICE:
                return decode_choice(value, field, into);
        case FIELD_BOOL:
                *(bool *) into = json_is_true(value);
                return !json_is_boolean(value);
        case FIELD_UINT:
        case FIELD_INT:
        case FIELD_REAL:
                return decode_number(value, field, into);
        case FIELD_TEXT:
                return decode_text(value, field, path, into, err);
        case FIELD_STRING:
                return decode_string(value, into, err);
        case FIELD_OBJECT:
                memset(into, 0, field->size_bytes);
                return field_decode(value, path, field->fields, false, into, err);
        case FIELD_LIST:
                return decode_list(value, path, field, base, err);
        case FIELD_MAP:
                return decode_map(value, path, field, base, err);
        case FIELD_CUSTOM:
                break;
        }
        return 0;
}

int field_decode_value(const json_t *value, const char *path, const struct field *field, void *base,
                       struct err *err)
{
        int r = decode_value(value, path, field, base, err);

        if (r == 0 && field->decode != NULL)
                r = field->decode(value, path, base, err);
        if (field->given != 0)
                *((bool *) base + field->given) = true;
        return r;
}

static int no_such_field(const char *parent, const char *name, const struct field *fields, struct err *err)
{
        struct text known = { .max_bytes = 400 };
        char path[PATH_BYTES];

        for (const struct field *field = fields; field->name != NULL; field++)
                text_printf(&known, "%s%s", field == fields ? "" : ", ", field->name);
        join(path, parent, name);
        err_set(err, -EINVAL, "%s: no such field; there are %s", path,
                known.data == NULL ? "none" : known.data);
        text_free(&known);
        return -EINVAL;
}

static int refuse_unknown(const json_t *object, const char *path, const struct field *fields, struct err *err)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) object, name, value)
        {
                const struct field *field = fields;

                while (field->name != NULL && strcmp(field->name, name) != 0)
                        field++;
                if (field->name == NULL)
                        return no_such_field(path, name, fields, err);
        }
        return 0;
}

int field_decode(const json_t *object, const char *path, const struct field *fields, bool open, void *base,
                 struct err *err)
{
        char buffer[FIELD_SHOWN_BYTES];
        int r = 0;

        if (!json_is_object(object))
                return err_set(err, -EINVAL,
                               "%s: %s is not a mapping of fields; write `name: value` lines below it", path,
                               field_shown(object, buffer));
        if (!open)
                r = refuse_unknown(object, path, fields, err);
        for (const struct field *field = fields; r == 0 && field->name != NULL; field++) {
                const json_t *value = json_object_get(object, field->name);
                char at[PATH_BYTES];

                join(at, path, field->name);
                if (value != NULL)
                        r = field_decode_value(value, at, field, base, err);
                else if (field->missing != NULL)
                        return err_set(err, -EINVAL, "%s: missing; %s", at, field->missing);
                if (r == 1)
                        r = refuse(field, at, value, err);
        }
        return r;
}
