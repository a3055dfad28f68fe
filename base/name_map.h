/* Name map: values found by a string. Chained hashing; the entry is embedded in the value, which owns the
 * key.
 *
 *         struct pod { struct name_map_entry entry; ... };
 *         struct pod *pod = (struct pod *) name_map_find(&map, "default/web");
 *
 * (entry first, so that the cast holds). Zero-initialised; released with name_map_free(), which frees the
 * buckets alone. Find, insert and remove are O(1) on average. Keys come from outside: the hash is seeded by
 * the map's own address, so that colliding names cannot be prepared. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_map_entry {
        struct name_map_entry *next;
        const char *key; /* owned by the value, unchanged while it is in the map */
        uint64_t hash;
};

struct name_map {
        struct name_map_entry **buckets;
        size_t bucket_count; /* 0 or a power of two */
        size_t count;
        uint64_t seed;
};

void name_map_free(struct name_map *map); /* the values stay the caller's */

struct name_map_entry *name_map_find(const struct name_map *map, const char *key); /* or NULL */

/* name_map_insert() - @entry->key is set and not in the map yet. Return: 0 or -ENOMEM. */
int name_map_insert(struct name_map *map, struct name_map_entry *entry);

/* name_map_make() - find, or where there is none make and insert, a value of @value_bytes zeros, whose entry
 * is its first member and whose key, a copy, lies behind it: free() releases both.
 * Return: NULL = no memory. */
struct name_map_entry *name_map_make(struct name_map *map, const char *key, size_t value_bytes);
void name_map_remove(struct name_map *map, struct name_map_entry *entry); /* must be in the map */

/* name_map_first(), name_map_next() - visit all, in no order. The visited entry may be removed (and freed)
 * once the next one was asked for; nothing may be inserted meanwhile. */
struct name_map_entry *name_map_first(const struct name_map *map);
struct name_map_entry *name_map_next(const struct name_map *map, const struct name_map_entry *entry);
