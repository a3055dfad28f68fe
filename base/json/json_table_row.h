/* JSON table row: where a row's field is and how it is held: what reading and writing share. Pure. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json/json_table.h"
#include "base/text.h"

#define JSON_TABLE_ROW_NAME_BYTES 64 /* of one step of a path */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low bytes of an integer come first");

static inline size_t json_table_row_stride(const struct json_table_row *row)
{
        return row->table != NULL ? row->table->size_bytes : row->element->size_bytes;
}

static inline size_t *json_table_row_count(const struct json_table_row *row, char *object)
{
        return (size_t *) (void *) (object + row->count);
}

/* The elements of an array, a list or a map. */
static inline char *json_table_row_elements(const struct json_table_row *row, char *object)
{
        return row->kind == JSON_TABLE_ARRAY ? object + row->offset
                                             : *(char **) (void *) (object + row->offset);
}

/* json_table_row_step() - the first name of a path, and in *rest what follows it; false: the name is no path.
 */
static inline bool json_table_row_step(const struct json_table *table, const char *name,
                                       char first[JSON_TABLE_ROW_NAME_BYTES], const char **rest)
{
        const char *dot = table->literal || table->strict ? NULL : strchr(name, '.');

        if (dot == NULL)
                return false;
        (void) text_format(first, JSON_TABLE_ROW_NAME_BYTES, "%.*s", (int) (dot - name), name);
        *rest = dot + 1;
        return true;
}

static inline void json_table_row_store(void *field, size_t size_bytes, int64_t value)
{
        assert(size_bytes <= sizeof(value));
        memcpy(field, &value, size_bytes); /* the low bytes come first on all that this is built for */
}

static inline int64_t json_table_row_load(const void *field, size_t size_bytes, bool is_signed)
{
        uint64_t bits = 0;
        unsigned unused = (unsigned) (8 * (sizeof(bits) - size_bytes));

        memcpy(&bits, field, size_bytes);
        return is_signed ? (int64_t) (bits << unused) >> unused : (int64_t) bits;
}

static inline int64_t json_table_row_scale(const struct json_table_row *row)
{
        return row->scale > 0 ? (int64_t) row->scale : 1;
}
