/* JSON read: a tree of any text that is JSON by its grammar, also where the JSON library ends.
 *
 * An API server keeps what Go can hold: U+0000 in an annotation, 10^20 in a field without a schema, ten
 * thousand brackets. The library refuses the whole text for any of them, and with it what is of importance.
 * Here the text is mended and read again, each part as the nearest that the library holds:
 *
 *         U+0000, half a surrogate pair              U+FFFD
 *         a control character in a string            a blank
 *         a byte that is no UTF-8                    '?'
 *         an integer beyond 64 bits                  a real: 100000000000000000000 is 1e20
 *         a number beyond a double                   1e308, with its sign
 *         a container JSON_READ_DEPTH levels down    0
 *
 * so that a reader of a field sees a wrong value there and the right ones elsewhere. What is no JSON even
 * then is an error. A text that the library takes as it is costs nothing more. Pure but for the heap. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define JSON_READ_DEPTH 256

/* json_read() - @flags: of json_loadb(). Return: the tree; NULL with -EBADMSG ("near byte N: why") or
 * -ENOMEM. */
json_t *json_read(const char *bytes, size_t size_bytes, size_t flags, struct err *err);

/* json_read_word() - what a member says; "" = there is none, or it is no string. Borrowed. */
static inline const char *json_read_word(const json_t *object, const char *name)
{
        const char *word = json_string_value(json_object_get(object, name));

        return word == NULL ? "" : word;
}
