/* Strings in their places, of which the lowest free one is taken first, and open addressing over their
 * hashes. */
#include "scheduler-extender/ledger/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define INDEX_BITS      17 /* index + 1, up to SYMBOLS_MAX; the generation is above */
#define INDEX_MASK      ((1u << INDEX_BITS) - 1)
#define GENERATION_MASK ((1u << (32 - INDEX_BITS)) - 1)

void symbols_free(struct symbols *symbols)
{
        for (uint32_t i = 0; i < symbols->top; i++)
                free(symbols->entries[i].name);
        free(symbols->entries);
        free(symbols->slots);
        *symbols = (struct symbols){ 0 };
}

static uint32_t symbol_at(const struct symbols *symbols, uint32_t index)
{
        return (uint32_t) symbols->entries[index].generation << INDEX_BITS | (index + 1);
}

uint32_t symbols_index(const struct symbols *symbols, uint32_t symbol)
{
        uint32_t index = (symbol & INDEX_MASK) - 1;

        return index < symbols->top && symbols->entries[index].name != NULL &&
                               symbol_at(symbols, index) == symbol
                       ? index
                       : SYMBOLS_NONE;
}

/* The slot that holds the string, or the empty one where it belongs. Call with slot_count > 0. */
static uint32_t *find_slot(const struct symbols *symbols, const char *name, size_t bytes)
{
        uint32_t mask = symbols->slot_count - 1, i = (uint32_t) hash_bytes(name, bytes, 0) & mask;

        for (;; i = (i + 1) & mask) {
                uint32_t place = symbols->slots[i];

                if (place == 0 || (strncmp(symbols->entries[place - 1].name, name, bytes) == 0 &&
                                   symbols->entries[place - 1].name[bytes] == '\0'))
                        return &symbols->slots[i];
        }
}

static void fill_slots(struct symbols *symbols)
{
        memset(symbols->slots, 0, symbols->slot_count * sizeof(*symbols->slots));
        for (uint32_t i = 0; i < symbols->top; i++)
                if (symbols->entries[i].name != NULL)
                        *find_slot(symbols, symbols->entries[i].name, strlen(symbols->entries[i].name)) =
                                i + 1;
}

/* As many slots as that, and half as many entries; the slots are empty. */
static int make_room(struct symbols *symbols, uint32_t slot_count)
{
        struct symbols_entry *entries = realloc(symbols->entries, slot_count / 2 * sizeof(*entries));
        uint32_t *slots;

        if (entries == NULL)
                return -ENOMEM;
        symbols->entries = entries;
        slots = malloc(slot_count * sizeof(*slots));
        if (slots == NULL)
                return -ENOMEM;
        free(symbols->slots);
        symbols->slots = slots;
        symbols->slot_count = slot_count;
        fill_slots(symbols);
        return 0;
}

int symbols_copy(const struct symbols *from, struct symbols *to)
{
        if (from->slot_count == 0)
                return 0;
        if (make_room(to, from->slot_count) < 0)
                return -ENOMEM;
        for (; to->top < from->top; to->top++) {
                struct symbols_entry *entry = &to->entries[to->top];

                *entry = from->entries[to->top];
                if (entry->name != NULL && (entry->name = strdup(entry->name)) == NULL)
                        return -ENOMEM;
        }
        to->count = from->count;
        to->free_from = from->free_from;
        fill_slots(to);
        return 0;
}

/* A free place, or SYMBOLS_NONE. */
static uint32_t find_place(struct symbols *symbols)
{
        uint32_t i = symbols->free_from;

        while (i < symbols->top && symbols->entries[i].name != NULL)
                i++;
        symbols->free_from = i;
        if (i < symbols->top)
                return i;
        if (i >= SYMBOLS_MAX ||
            (i >= symbols->slot_count / 2 &&
             make_room(symbols, symbols->slot_count == 0 ? 64 : symbols->slot_count * 2) < 0))
                return SYMBOLS_NONE;
        symbols->entries[symbols->top++] = (struct symbols_entry){ .name = NULL };
        return i;
}

uint32_t symbols_add(struct symbols *symbols, const char *name)
{
        size_t bytes = strlen(name);
        uint32_t symbol = symbols_find(symbols, name, bytes), place;

        if (symbol != 0 || bytes == 0)
                return symbol;
        place = find_place(symbols);
        if (place == SYMBOLS_NONE || (symbols->entries[place].name = strdup(name)) == NULL)
                return 0;
        symbols->count++;
        symbols->added++;
        *find_slot(symbols, name, bytes) = place + 1;
        return symbol_at(symbols, place);
}

uint32_t symbols_keep(struct symbols *symbols, const char *name)
{
        uint32_t symbol = symbols_add(symbols, name), index = symbols_index(symbols, symbol);

        if (index != SYMBOLS_NONE)
                symbols->entries[index].kept = true;
        return symbol;
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
        uint32_t place = symbols->slot_count == 0 || bytes == 0 ? 0 : *find_slot(symbols, name, bytes);

        return place == 0 ? 0 : symbol_at(symbols, place - 1);
}

const char *symbols_name(const struct symbols *symbols, uint32_t symbol)
{
        uint32_t index = symbols_index(symbols, symbol);

        return index == SYMBOLS_NONE ? "" : symbols->entries[index].name;
}

void symbols_release(struct symbols *symbols, const bool *used)
{
        symbols->added = 0;
        if (symbols->top == 0)
                return;
        for (uint32_t i = 0; i < symbols->top; i++) {
                struct symbols_entry *entry = &symbols->entries[i];

                if (entry->name == NULL || entry->kept || used[i])
                        continue;
                free(entry->name);
                *entry = (struct symbols_entry){ .generation = (entry->generation + 1) & GENERATION_MASK };
                symbols->count--;
                symbols->released++;
        }
        symbols->free_from = 0;
        fill_slots(symbols);
}
