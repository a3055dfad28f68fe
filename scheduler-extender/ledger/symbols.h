/* Symbols: small numbers for strings that recur (resources, models, vendors), so that deciding compares ints.
 *
 * Symbol 0 is the empty string. A string is kept while it is used: who owns everything that holds symbols
 * (scheduler-extender/ledger/ledger_names.h) says now and then which ones are, and the others' places are
 * taken by new strings. A number has its place's generation in its upper bits, so one that outlived its
 * string is the symbol of nothing: equal to no other, named "". What a request says is looked up with
 * symbols_find(). Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLS_MAX    65536u
#define SYMBOLS_OF_ONE 512u
#define SYMBOLS_NONE   UINT32_MAX

struct symbols_entry {
        char *name; /* NULL = free */
        uint16_t generation;
        bool kept;    /* until symbols_free(), used or not */
        uint8_t note; /* of the user's */
};

struct symbols {
        struct symbols_entry *entries;
        uint32_t count; /* names that there are */
        uint32_t top;   /* entries that have ever been used */
        uint32_t free_from;
        uint32_t *slots; /* open addressing: index + 1; 0 = empty */
        uint32_t slot_count;
        uint32_t added;   /* names since the last symbols_release() */
        uint64_t refused; /* names that a bringer had no more room for, or nobody */
        uint64_t released;
};

void symbols_free(struct symbols *symbols); /* leaves it empty and usable */

/* symbols_copy() - the same names under the same numbers. @to: empty. Return: 0; -ENOMEM. */
int symbols_copy(const struct symbols *from, struct symbols *to);

/* symbols_add() - the symbol of `name`, made if need be; symbols_keep(): and it is never given back.
 * Return: 0 for "", when out of memory, or when there are SYMBOLS_MAX already. */
uint32_t symbols_add(struct symbols *symbols, const char *name);
uint32_t symbols_keep(struct symbols *symbols, const char *name);

/* symbols_add_of() - as symbols_add(), for a bringer that is believed no further than itself (a node's
 * agent): it may bring SYMBOLS_OF_ONE names that nobody brought before. @brought: of the bringer, 0 at first.
 * Return: 0 likewise when it has brought so many; the count `refused` says so. */
uint32_t symbols_add_of(struct symbols *symbols, const char *name, uint16_t *brought);

/* symbols_find() - the symbol of the first `bytes` of `name`, 0 if there is none. */
uint32_t symbols_find(const struct symbols *symbols, const char *name, size_t bytes);

/* symbols_name() - borrowed until it is given back; "" for 0. */
const char *symbols_name(const struct symbols *symbols, uint32_t symbol);

/* symbols_index() - the entry of a symbol, below `top`; SYMBOLS_NONE: it is 0, or was given back. */
uint32_t symbols_index(const struct symbols *symbols, uint32_t symbol);

/* symbols_release() - gives back what is neither kept nor used. @used: by index. */
void symbols_release(struct symbols *symbols, const bool *used);
