/* Strings in the order in which they came, and open addressing over their hashes. */
#include "scheduler-extender/ledger/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

void symbols_free(struct symbols *symbols)
{
        for (uint32_t i = 0; i < symbols->count; i++)
                free(symbols->names[i]);
        free(symbols->names);
        free(symbols->slots);
        *symbols = (struct symbols){ 0 };
}

/* The slot that holds the string, or the empty one where it belongs. Call with slot_count > 0. */
static uint32_t *find_slot(const struct symbols *symbols, const char *name, size_t bytes)
{
        uint32_t mask = symbols->slot_count - 1, i = (uint32_t) hash_bytes(name, bytes, 0) & mask;

        for (;; i = (i + 1) & mask) {
                uint32_t symbol = symbols->slots[i];

                if (symbol == 0 || (strncmp(symbols->names[symbol - 1], name, bytes) == 0 &&
                                    symbols->names[symbol - 1][bytes] == '\0'))
                        return &symbols->slots[i];
        }
}

static int grow(struct symbols *symbols)
{
        struct symbols larger = *symbols;
        char **names;

        larger.slot_count = symbols->slot_count == 0 ? 64 : symbols->slot_count * 2;
        names = realloc(symbols->names, larger.slot_count / 2 * sizeof(*names));
        if (names == NULL)
                return -1;
        symbols->names = larger.names = names;
        larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
        if (larger.slots == NULL)
                return -1;
        for (uint32_t i = 0; i < symbols->count; i++)
                *find_slot(&larger, names[i], strlen(names[i])) = i + 1;
        free(symbols->slots);
        *symbols = larger;
        return 0;
}

uint32_t symbols_add(struct symbols *symbols, const char *name)
{
        size_t bytes = strlen(name);
        uint32_t symbol = symbols_find(symbols, name, bytes);
        char *copy;

        if (symbol != 0 || bytes == 0 || symbols->count >= SYMBOLS_MAX)
                return symbol;
        if (symbols->count >= symbols->slot_count / 2 && grow(symbols) < 0)
                return 0;
        copy = strdup(name);
        if (copy == NULL)
                return 0;
        symbols->names[symbols->count++] = copy;
        *find_slot(symbols, name, bytes) = symbols->count;
        return symbols->count;
}

uint32_t symbols_add_of(struct symbols *symbols, const char *name, uint16_t *brought)
{
        uint32_t symbol = symbols_find(symbols, name, strlen(name));

        if (symbol != 0 || name[0] == '\0')
                return symbol;
        if (*brought < SYMBOLS_OF_ONE)
                symbol = symbols_add(symbols, name);
        *brought = (uint16_t) (*brought + (symbol != 0));
        symbols->refused += symbol == 0;
        return symbol;
}

uint32_t symbols_find(const struct symbols *symbols, const char *name, size_t bytes)
{
        return symbols->slot_count == 0 || bytes == 0 ? 0 : *find_slot(symbols, name, bytes);
}

const char *symbols_name(const struct symbols *symbols, uint32_t symbol)
{
        return symbol == 0 || symbol > symbols->count ? "" : symbols->names[symbol - 1];
}
