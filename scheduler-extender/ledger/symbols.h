/* Symbols: small numbers for strings that recur (resources, models, vendors), so that deciding compares ints.
 *
 * Symbol 0 is the empty string. Strings are kept until symbols_free(): use it for words whose number the
 * cluster's hardware bounds, never for what a request says (look those up with symbols_find()). Pure but for
 * the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SYMBOLS_MAX    65536u
#define SYMBOLS_OF_ONE 512u

struct symbols {
        char **names; /* names[symbol - 1] */
        uint32_t count;
        uint32_t *slots; /* open addressing; 0 = empty */
        uint32_t slot_count;
        uint64_t refused; /* names that a bringer had no more room for, or nobody */
};

void symbols_free(struct symbols *symbols); /* leaves it empty and usable */

/* symbols_add() - the symbol of `name`, made if need be. Return: 0 for "", when out of memory, or when there
 * are SYMBOLS_MAX already. */
uint32_t symbols_add(struct symbols *symbols, const char *name);

/* symbols_add_of() - as symbols_add(), for a bringer that is believed no further than itself (a node's
 * agent): it may bring SYMBOLS_OF_ONE names that nobody brought before. @brought: of the bringer, 0 at first.
 * Return: 0 likewise when it has brought so many; the count `refused` says so. */
uint32_t symbols_add_of(struct symbols *symbols, const char *name, uint16_t *brought);

/* symbols_find() - the symbol of the first `bytes` of `name`, 0 if there is none. */
uint32_t symbols_find(const struct symbols *symbols, const char *name, size_t bytes);

/* symbols_name() - borrowed until symbols_free(); "" for 0. */
const char *symbols_name(const struct symbols *symbols, uint32_t symbol);
