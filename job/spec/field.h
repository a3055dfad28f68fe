/* Field: what a person may write, as one row a field: where it goes, what it may be, and what it is, for the
 * message that refuses a value: "spec.epochs: 0 is not a whole number in 1..1000000; times that every sample
 * is used".
 *
 * A row does everything that is said of one field alone; what follows from several is checked after. Pure but
 * for the heap. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum field_kind {
        FIELD_CHOICE, /* int: the index into `choices` */
        FIELD_BOOL,
        FIELD_UINT,   /* uint64_t */
        FIELD_INT,    /* int64_t */
        FIELD_REAL,   /* double */
        FIELD_TEXT,   /* char[size_bytes], without control characters */
        FIELD_STRING, /* char *, owned; anything but a NUL */
        FIELD_OBJECT, /* `fields` of the struct that this row is of, or, with size_bytes, of one at the offset
                       */
        FIELD_LIST,   /* T *, owned: min..max of `element`, and one zeroed more; `count` tells how many */
        FIELD_MAP,    /* the same of an object's members; their names go to the beginning of each T */
        FIELD_CUSTOM
};

/* What a text must be besides; the sentence follows the text: "'x y' is not the name of a Secret; ...". */
struct field_rule {
        bool (*valid)(const char *text);
        const char *otherwise;
};

struct field {
        const char *name; /* NULL ends the rows */
        enum field_kind kind;
        size_t offset, size_bytes; /* size_bytes: of a text, or of one T */
        double min, max;           /* of numbers and lists; min > 0: a text must not be empty */
        const char *const *choices;
        int choice_count;
        const struct field *fields, *element;
        size_t count;        /* offset of the size_t of a list */
        size_t given;        /* offset of a bool that says that it is there; 0 = none */
        const char *missing; /* what to do where it must be there, and is not; NULL = it may be left out */
        const struct field_rule *rule;
        /* @base: the struct that the row is of. Of FIELD_CUSTOM instead of anything else: 1 = refuse with the
         * row's help. Of the others after what they read. */
        int (*decode)(const json_t *value, const char *path, void *base, struct err *err);
        const char *help;
};

#define FIELD_AT(type, member) .offset = offsetof(type, member), .size_bytes = sizeof(((type *) 0)->member)
#define FIELD_LIST_OF(type, member, n)                                                                       \
        .offset = offsetof(type, member), .size_bytes = sizeof(*((type *) 0)->member),                       \
        .count = offsetof(type, n)
#define FIELD_CHOICES(names) .choices = (names), .choice_count = (int) (sizeof(names) / sizeof((names)[0]))

/* field_decode() - @path: of the object, "spec". Members that no row names are refused, unless `open`.
 * Return: 0; -EINVAL and *err, "path: value is wrong; remedy"; -ENOMEM. What is owned by then is in @base. */
int field_decode(const json_t *object, const char *path, const struct field *fields, bool open, void *base,
                 struct err *err);

/* field_decode_value() - of one row. Return: as above, or 1: its help is to be given. */
int field_decode_value(const json_t *value, const char *path, const struct field *field, void *base,
                       struct err *err);

#define FIELD_SHOWN_BYTES 64

/* field_shown() - the value as a person wrote it, cut to a line. */
const char *field_shown(const json_t *value, char buffer[FIELD_SHOWN_BYTES]);
