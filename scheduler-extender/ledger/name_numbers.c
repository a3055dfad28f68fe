/* A name map whose entries hold one number each. */
#include "scheduler-extender/ledger/name_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct numbered {
        struct name_map_entry entry;
        uint64_t number;
};

int name_numbers_set(struct name_numbers *numbers, const char *name, uint64_t number)
{
        struct numbered *known = (struct numbered *) name_map_make(&numbers->map, name, sizeof(*known));

        if (known == NULL)
                return -ENOMEM;
        known->number = number;
        return 0;
}

void name_numbers_drop(struct name_numbers *numbers, const char *name)
{
        struct name_map_entry *known = name_map_find(&numbers->map, name);

        if (known == NULL)
                return;
        name_map_remove(&numbers->map, known);
        free(known);
}

uint64_t name_numbers_get(const struct name_numbers *numbers, const char *name)
{
        const struct numbered *known = (const struct numbered *) name_map_find(&numbers->map, name);

        return known != NULL ? known->number : 0;
}

bool name_numbers_say(struct name_numbers *said, const char *name, const char *sentence)
{
        uint64_t hash = hash_text(sentence, 0);

        if (sentence[0] == '\0') {
                name_numbers_drop(said, name);
                return false;
        }
        if (name_numbers_get(said, name) == hash)
                return false;
        (void) name_numbers_set(said, name, hash);
        return true;
}

void name_numbers_free(struct name_numbers *numbers)
{
        for (struct name_map_entry *e = name_map_first(&numbers->map), *next; e != NULL; e = next) {
                next = name_map_next(&numbers->map, e);
                free(e);
        }
        name_map_free(&numbers->map);
}
