/* Seen: a set of names, for files that must be used once. Owns copies of them; zero-initialised it is empty.
 * Not thread-safe. */
#pragma once

#include <stdbool.h>

#include "base/name_map.h"

struct seen {
        struct name_map names;
};

bool seen_has(const struct seen *s, const char *name);

/* seen_add() - Return: 0 or -ENOMEM. */
int seen_add(struct seen *s, const char *name);
void seen_free(struct seen *s);
