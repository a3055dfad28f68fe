/* JSON table: a struct and the JSON object it is read from and written to, as one table of rows.
 *
 * A row says: this member of the object is that field of the struct, of this kind, within these bounds. Both
 * directions come from the same rows, so a reader and a writer cannot come to disagree:
 *
 *         #define AT(member) JSON_TABLE_AT(struct device_group, member)
 *         static const struct json_table_row group_rows[] = {
 *                 { "name", JSON_TABLE_CHARS, AT(name), .required = true },
 *                 { "total", JSON_TABLE_UINT, AT(total), .max = 1024 },
 *                 { "measured.gflops", JSON_TABLE_DOUBLE, AT(gflops), .omit = true },
 *                 { .name = NULL },
 *         };
 *         static const struct json_table group_table = { .rows = group_rows,
 *                                                        .size_bytes = sizeof(struct device_group) };
 *
 *         r = json_table_decode(&group_table, value, &group, err);
 *                 ("status.groups[2].total: must be a whole number in 0..1024, not -1")
 *         value = json_table_encode(&group_table, &group);
 *
 * A name with dots is a path: the objects between are made when writing. An absent member and an explicit
 * null are the same (but in rows with help): the field keeps what it held, so defaults are what the struct
 * holds before. A number
 * written as 3.0 is whole; strings hold no NUL. Text that is no UTF-8 is written with '?' for what is not
 * ASCII; a number that is not finite, or an owned string that is NULL, is written as null.
 *
 * This and the scan in place (json_scan.h, json_items.h: bulk) are the two ways from JSON to structs; what
 * rows cannot say is said with the cursors of json_field.h, in `check` or in a JSON_TABLE_CUSTOM. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json/json_field.h"
#include "base/json/json_table_encode.h"

/* The offset and the size of a field, in a row. */
#define JSON_TABLE_AT(type, member)                                                                          \
        .offset = offsetof(type, member), .size_bytes = sizeof(((type *) NULL)->member)

enum json_table_kind {
        JSON_TABLE_BOOL,     /* bool */
        JSON_TABLE_UINT,     /* an unsigned integer of any size, within min..max */
        JSON_TABLE_INT,      /* a signed one */
        JSON_TABLE_DOUBLE,   /* within least..most */
        JSON_TABLE_COUNT,    /* double: a count that may not be known; written as an integer, NAN as null */
        JSON_TABLE_CHARS,    /* char[N]; longer text is an error */
        JSON_TABLE_STRING,   /* char *, owned */
        JSON_TABLE_BORROWED, /* const char *: of the value decoded, which must outlive the struct */
        JSON_TABLE_CHOICE,   /* an enum, a bool or unsigned: the index into `names` */
        JSON_TABLE_TIME,     /* uint64_t, microseconds since 1970; 0 is "" */
        JSON_TABLE_OBJECT,   /* a struct in place, of `table` */
        JSON_TABLE_ARRAY,    /* a list: T[N] in place; `count` tells how many, `element` or `table` what */
        JSON_TABLE_LIST,     /* the same into memory of its own: T *, with one zeroed element more */
        JSON_TABLE_MAP,      /* an object's members into T *, their names into the key of `table` */
        JSON_TABLE_VALUE,    /* json_t *, a reference of its own: what is passed through as it is */
        JSON_TABLE_CONSTANT, /* `text`: written, not read; no field */
        JSON_TABLE_CUSTOM,   /* by `decode` and `encode` */
        JSON_TABLE_UNREAD,   /* known to a strict table, neither read nor written; no field */
};

/* What a text must be besides: "'x y' is not the name of a Secret; ...". */
struct json_table_rule {
        bool (*valid)(const char *text);
        const char *otherwise; /* the sentence, after the text */
};

struct json_table_row {
        const char *name; /* of the member, or a path; NULL ends the rows */
        enum json_table_kind kind;
        size_t offset, size_bytes; /* of the field: JSON_TABLE_AT() */
        int64_t min, max;   /* of whole numbers; max 0 = what the field holds. max: also of elements; min 1:
                               a text or a list is not empty */
        uint64_t scale;     /* the field is the whole number times this (seconds as microseconds); 0 = 1.
                               A time is written in such steps */
        double least, most; /* numbers; both 0 = any finite one */
        const char *mend;   /* what to give instead, after what is wrong: "...; give samples per second" */
        const char *help; /* of a file that a person writes: what the field is. A refused value is then shown
                             with it, null is a value, 3.0 no whole number, control characters no text */
        const struct json_table_rule *rule; /* of a text; of a map: of the names of its members */
        size_t given;                       /* offset of a bool that says that it is there; 0 = none */
        bool required;
        bool read_only;                 /* not written */
        bool omit;                      /* not written when it is false, 0, "", not finite, or empty */
        bool unset;                     /* not written when it is negative or not finite; 0 is a figure */
        const char *const *names;       /* of a choice, NULL-terminated, in the order of the enum */
        const char *text;               /* of a constant */
        const struct json_table *table; /* of an object, and of the structs of an array, a list, a map */
        const struct json_table_row *element; /* of an array or list of what is no struct; of a map: the field
                                           of the struct that each member's value is. Its name is not used */
        size_t count;                         /* offset of the size_t that tells how many */
        int (*decode)(const struct json_field *at, void *field,
                      struct err *err); /* of a custom row without an offset `field` is the whole struct */
        json_t *(*encode)(const void *field); /* a new reference; null counts as empty */
};

struct json_table {
        const struct json_table_row *rows;
        size_t size_bytes;     /* of the struct */
        bool strict;           /* members that no row names are refused: for files that people write. Its
                                  names are no paths */
        bool lenient;          /* what does not fit is taken as absent: for what others wrote */
        bool literal;          /* names are no paths: labels hold dots */
        size_t key, key_bytes; /* of a map's structs: where the member's name goes, a char[] */
        const void
                *initial; /* what a struct of a row holds before; NULL = zeros, in an object what it holds */
        int (*check)(const struct json_field *at, void *object,
                     struct err *err); /* after the rows, or NULL */
};

/* json_table_decode() - read @value into @object, which holds the defaults.
 * Return: 0; -EBADMSG with the place in *err, or -ENOMEM: what the object owned is released, the rest of it
 * holds what was read so far. */
int json_table_decode(const struct json_table *table, const json_t *value, void *object, struct err *err);

/* json_table_decode_at() - the same for a value at a place of a larger one. Absent is an error, as in any
 * table that is not lenient. */
int json_table_decode_at(const struct json_table *table, const struct json_field *at, void *object,
                         struct err *err);

/* json_table_free() - release what the object's fields own (JSON_TABLE_STRING, LIST, MAP, VALUE) and empty
 * them. */
void json_table_free(const struct json_table *table, void *object);
