/* JSON field: typed reads from a JSON value, with the place in the error:
 * "status.groups[2].total: must be a whole number in 0..1024, not -1".
 *
 * A struct json_field is a cursor on the caller's stack: a value and where it is. It borrows the JSON, the
 * names and its parent, which must outlive it. Pure; nothing is allocated, the path is only written when
 * something is wrong. Decoders read one line per field:
 *
 *         struct json_field root = json_field_root(object), status = json_field_get(&root, "status");
 *         if ((r = json_field_unsigned(&status, "total", 0, 1024, &group->total, err)) < 0)
 *                 return r;
 *
 * An absent field and an explicit null are the same: JSON_FIELD_ABSENT, the output untouched (so defaults are
 * set before). A field of a value that is itself absent is absent. Everything else that does not fit is
 * -EBADMSG. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { JSON_FIELD_ABSENT = 1 };

struct json_field {
        const json_t *value;         /* NULL = absent */
        const struct json_field *in; /* NULL = this is the root */
        const char *name;            /* of an object's member; NULL = an array's element */
        size_t index;
};

struct json_field json_field_root(const json_t *value);
struct json_field json_field_get(const struct json_field *in, const char *name); /* member, or absent */
struct json_field json_field_at(const struct json_field *in, size_t index);      /* element, or absent */

/* json_field_count() - elements of an array; 0 when absent or no array. */
size_t json_field_count(const struct json_field *array);

/* json_field_error() - "path: sentence". Return: -EBADMSG. */
int json_field_error(const struct json_field *at, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* json_field_require() - 0, or "path.name: is missing". */
int json_field_require(const struct json_field *in, const char *name, struct err *err);

/* Containers: the type alone is checked. @ret is a cursor whose parent is `in`; absent when absent. */
int json_field_object(const struct json_field *in, const char *name, struct json_field *ret, struct err *err);
int json_field_array(const struct json_field *in, const char *name, size_t max, struct json_field *ret,
                     struct err *err);
int json_field_is_object(const struct json_field *at, struct err *err); /* of the cursor itself: 0 or error */

/* json_field_as_*() - of the cursor itself; otherwise as the readers below. */
int json_field_as_string(const struct json_field *at, const char **ret, struct err *err);
int json_field_as_text(const struct json_field *at, char *field, size_t field_bytes, struct err *err);
int json_field_as_bool(const struct json_field *at, bool *ret, struct err *err);
int json_field_as_int64(const struct json_field *at, int64_t min, int64_t max, int64_t *ret, struct err *err);
int json_field_as_double(const struct json_field *at, double min, double max, double *ret, struct err *err);
int json_field_as_choice(const struct json_field *at, const char *const *names, unsigned *ret,
                         struct err *err);
int json_field_as_array(const struct json_field *at, size_t max, struct err *err); /* the type and length */

/* Scalars: 0, JSON_FIELD_ABSENT or -EBADMSG. A number written as 3.0 is a whole number. Strings hold no NUL.
 */
int json_field_string(const struct json_field *in, const char *name, const char **ret, struct err *err);
/* json_field_word() - the string of that name; "" where there is none, or something else. Borrowed. */
const char *json_field_word(const struct json_field *in, const char *name);
int json_field_text(const struct json_field *in, const char *name, char *field, size_t field_bytes,
                    struct err *err); /* copies; too long is an error */
int json_field_bool(const struct json_field *in, const char *name, bool *ret, struct err *err);
int json_field_int64(const struct json_field *in, const char *name, int64_t min, int64_t max, int64_t *ret,
                     struct err *err);
int json_field_unsigned(const struct json_field *in, const char *name, unsigned min, unsigned max,
                        unsigned *ret, struct err *err);
int json_field_double(const struct json_field *in, const char *name, double min, double max, double *ret,
                      struct err *err);

/* json_field_choice() - a string out of `names` (NULL-terminated). *ret = its index.
 * "spec.placement: must be one of uniform, packed, not 'x'". */
int json_field_choice(const struct json_field *in, const char *name, const char *const *names, unsigned *ret,
                      struct err *err);

/* json_field_only() - refuse members that are not in `names` (NULL-terminated), for files people write:
 * "spec.wrokers: is not known here; known: workers, servers". @otherwise: what stands before the names. */
#define JSON_FIELD_UNKNOWN "is not known here; known:"
int json_field_only(const struct json_field *object, const char *const *names, const char *otherwise,
                    struct err *err);
