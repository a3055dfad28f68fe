/* Open addressing over 64 bits of each name. */
#include "trainer/data/seen.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static uint64_t number_of(const char *name)
{
        uint64_t hash = hash_text(name, 0);

        return hash != 0 ? hash : 1;
}

/* Where the number is, or would be. */
static size_t find(const uint64_t *slots, size_t room, uint64_t number)
{
        size_t at = (size_t) (number % room);

        while (slots[at] != 0 && slots[at] != number)
                at = (at + 1) % room;
        return at;
}

bool seen_has(const struct seen *s, const char *name)
{
        uint64_t number = number_of(name);

        return s->room > 0 && s->slots[find(s->slots, s->room, number)] == number;
}

static int grow(struct seen *s)
{
        size_t room = s->room > 0 ? 2 * s->room : 64;
        uint64_t *slots = calloc(room, sizeof(*slots));

        if (slots == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < s->room; i++)
                if (s->slots[i] != 0)
                        slots[find(slots, room, s->slots[i])] = s->slots[i];
        free(s->slots);
        s->slots = slots;
        s->room = room;
        return 0;
}

int seen_add(struct seen *s, const char *name)
{
        uint64_t number = number_of(name);
        size_t at;

        if (2 * (s->used + 1) > s->room && grow(s) < 0)
                return -ENOMEM;
        at = find(s->slots, s->room, number);
        s->used += s->slots[at] == 0;
        s->slots[at] = number;
        return 0;
}

void seen_free(struct seen *s)
{
        free(s->slots);
        *s = (struct seen){ 0 };
}
