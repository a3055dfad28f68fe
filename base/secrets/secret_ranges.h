/* Secret ranges: where in a text of any origin (a log, YAML, a command line, JSON in a string of JSON)
 * secrets stand. Pure but for the heap.
 *
 * A value is known by what stands before it: a name (secret_name.h) and a `:` or `=`, an option (`--token
 * S`), a pair (`name: TOKEN, value: S`), "Bearer S", a URL's user (`https://USER:PASSWORD@HOST`); or by
 * itself: a private key in PEM, a JWT, the keys of a few services that begin with a word. Each is looked for
 * by itself, also within what another one covers: a quote that somebody left open hides nothing from the next
 * rule. Where the end of a value is not certain, more is taken: what follows `name:` to the end of its line
 * and the lines below that stand deeper; what follows an open quote up to SECRET_RANGES_VALUE_BYTES, else
 * all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SECRET_RANGES_VALUE_BYTES 8192

/* secret_ranges_find() - @hidden: a flag for each byte; those of secrets are set, others left as they are.
 * Takes O(size * SECRET_RANGES_VALUE_BYTES) at the worst, O(size) for what people write and for one name
 * after the other. */
void secret_ranges_find(const char *text, size_t size_bytes, bool *hidden);
