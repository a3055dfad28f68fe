/* Chains in a power of two of buckets, doubled when there are more values than buckets. */
#include "base/name_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define BUCKETS_MIN 64

void name_map_free(struct name_map *map)
{
        free(map->buckets);
        *map = (struct name_map){ 0 };
}

static struct name_map_entry **bucket(const struct name_map *map, uint64_t hash)
{
        return &map->buckets[hash & (map->bucket_count - 1)];
}

struct name_map_entry *name_map_find(const struct name_map *map, const char *key)
{
        uint64_t hash;

        if (map->count == 0)
                return NULL;
        hash = hash_text(key, map->seed);
        for (struct name_map_entry *e = *bucket(map, hash); e != NULL; e = e->next)
                if (e->hash == hash && strcmp(e->key, key) == 0)
                        return e;
        return NULL;
}

static int grow(struct name_map *map)
{
        struct name_map larger = *map;

        larger.bucket_count = map->bucket_count == 0 ? BUCKETS_MIN : 2 * map->bucket_count;
        larger.buckets = calloc(larger.bucket_count, sizeof(*larger.buckets));
        if (larger.buckets == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < map->bucket_count; i++)
                for (struct name_map_entry *e = map->buckets[i], *next; e != NULL; e = next) {
                        struct name_map_entry **to = bucket(&larger, e->hash);

                        next = e->next;
                        e->next = *to;
                        *to = e;
                }
        free(map->buckets);
        *map = larger;
        return 0;
}

int name_map_insert(struct name_map *map, struct name_map_entry *entry)
{
        struct name_map_entry **to;

        if (map->bucket_count == 0)
                map->seed = (uint64_t) (uintptr_t) map;
        if (map->count >= map->bucket_count && grow(map) < 0)
                return -ENOMEM;
        entry->hash = hash_text(entry->key, map->seed);
        to = bucket(map, entry->hash);
        entry->next = *to;
        *to = entry;
        map->count++;
        return 0;
}

struct name_map_entry *name_map_make(struct name_map *map, const char *key, size_t value_bytes)
{
        struct name_map_entry *entry = name_map_find(map, key);
        size_t size = strlen(key) + 1;

        if (entry != NULL)
                return entry;
        entry = calloc(1, value_bytes + size);
        if (entry == NULL)
                return NULL;
        entry->key = memcpy((char *) entry + value_bytes, key, size);
        if (name_map_insert(map, entry) == 0)
                return entry;
        free(entry);
        return NULL;
}

void name_map_remove(struct name_map *map, struct name_map_entry *entry)
{
        struct name_map_entry **at = bucket(map, entry->hash);

        while (*at != entry)
                at = &(*at)->next;
        *at = entry->next;
        entry->next = NULL;
        map->count--;
}

static struct name_map_entry *first_from(const struct name_map *map, size_t index)
{
        for (; index < map->bucket_count; index++)
                if (map->buckets[index] != NULL)
                        return map->buckets[index];
        return NULL;
}

struct name_map_entry *name_map_first(const struct name_map *map)
{
        return first_from(map, 0);
}

struct name_map_entry *name_map_next(const struct name_map *map, const struct name_map_entry *entry)
{
        return entry->next != NULL ? entry->next
                                   : first_from(map, (entry->hash & (map->bucket_count - 1)) + 1);
}
