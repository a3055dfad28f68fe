/* Seen: a set of names, for files that must be used once. Keeps 64 bits of each name: two names in a million
 * are taken for one with a chance of 1 in 30 million. Owns its memory; zero-initialised it is empty. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
        uint64_t *slots; /* open addressing, 0 = free */
        size_t room, used;
};

bool seen_has(const struct seen *s, const char *name);

/* seen_add() - Return: 0 or -ENOMEM. */
int seen_add(struct seen *s, const char *name);
void seen_free(struct seen *s);
