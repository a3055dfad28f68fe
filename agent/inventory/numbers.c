/* Numbers: who is known by its id chooses first, then who stands where somebody stood, then who is new. */
#include "agent/inventory/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

/* A number that is given away in this pass: to all devices of one vendor and ordinal. */
struct unit {
        const struct device *first;
        struct numbers_entry *entry; /* NULL = it has none yet */
        unsigned index;
};

void numbers_free(struct numbers *numbers)
{
        if (numbers == NULL)
                return;
        free(numbers->entries);
        *numbers = (struct numbers){ 0 };
}

static bool is_of(const struct unit *unit, const struct device *device)
{
        return unit->first->ordinal == device->ordinal && strcmp(unit->first->vendor, device->vendor) == 0;
}

static size_t collect(const struct inventory *inventory, struct unit *units)
{
        size_t count = 0;

        for (size_t i = 0; i < inventory->device_count; i++) {
                size_t u = 0;

                while (u < count && !is_of(&units[u], &inventory->devices[i]))
                        u++;
                if (u == count)
                        units[count++] = (struct unit){ .first = &inventory->devices[i] };
        }
        return count;
}

static bool is_chosen(const struct unit *units, size_t count, const struct numbers_entry *entry)
{
        for (size_t u = 0; u < count; u++)
                if (units[u].entry == entry)
                        return true;
        return false;
}

static void choose(const struct numbers *numbers, struct unit *units, size_t count, bool by_id)
{
        for (size_t u = 0; u < count; u++) {
                const struct device *d = units[u].first;

                for (size_t e = 0; e < numbers->count && units[u].entry == NULL; e++) {
                        struct numbers_entry *entry = &numbers->entries[e];
                        bool known = by_id ? strcmp(entry->id, d->id) == 0
                                           : d->pci[0] != '\0' && strcmp(entry->pci, d->pci) == 0;

                        if (known && strcmp(entry->vendor, d->vendor) == 0 && !is_chosen(units, count, entry))
                                units[u].entry = entry;
                }
        }
}

/* Has, or had, a device of this vendor the number? */
static bool is_taken(const struct numbers *numbers, const char *vendor, unsigned index)
{
        for (size_t e = 0; e < numbers->count; e++)
                if (numbers->entries[e].index == index && strcmp(numbers->entries[e].vendor, vendor) == 0)
                        return true;
        return false;
}

static void remember(struct numbers *numbers, struct unit *unit)
{
        const struct device *d = unit->first;
        struct numbers_entry *entry = unit->entry;

        unit->index = entry != NULL ? entry->index : d->ordinal;
        if (entry == NULL && is_taken(numbers, d->vendor, unit->index))
                for (unit->index = 0; is_taken(numbers, d->vendor, unit->index);)
                        unit->index++;
        if (entry == NULL && numbers->count < NUMBERS_MAX)
                entry = &numbers->entries[numbers->count++];
        if (entry == NULL)
                return;
        entry->index = unit->index;
        (void) text_copy(entry->vendor, sizeof(entry->vendor), d->vendor);
        (void) text_copy(entry->id, sizeof(entry->id), d->id);
        (void) text_copy(entry->pci, sizeof(entry->pci), d->pci);
}

int numbers_keep(struct numbers *numbers, struct inventory *inventory)
{
        CLEANUP(free_p) struct unit *units = calloc(inventory->device_count + 1, sizeof(*units));
        size_t most = numbers->count + inventory->device_count + 1, count;
        struct numbers_entry *entries =
                units == NULL ? NULL : reallocarray(numbers->entries, most, sizeof(*entries));

        if (entries == NULL)
                return -ENOMEM;
        numbers->entries = entries;
        count = collect(inventory, units);
        choose(numbers, units, count, true);
        choose(numbers, units, count, false);
        for (size_t u = 0; u < count; u++)
                remember(numbers, &units[u]);
        numbers->moved = numbers->count != count;
        for (size_t u = 0; u < count; u++)
                numbers->moved |= units[u].index != units[u].first->ordinal;
        for (size_t i = 0; i < inventory->device_count; i++)
                for (size_t u = 0; u < count; u++)
                        if (is_of(&units[u], &inventory->devices[i]))
                                inventory->devices[i].index = units[u].index;
        return 0;
}

uint64_t numbers_hash(const struct numbers *numbers)
{
        uint64_t hash = 0;

        for (size_t e = 0; e < numbers->count; e++) {
                const struct numbers_entry *entry = &numbers->entries[e];

                hash = hash_text(entry->vendor, hash);
                hash = hash_text(entry->id, hash);
                hash = hash_text(entry->pci, hash);
                hash = hash_bytes(&entry->index, sizeof(entry->index), hash);
        }
        return hash;
}
