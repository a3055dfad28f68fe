/* A name map of copied names. */
#include "trainer/data/seen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct name {
        struct name_map_entry entry; /* first: the map gives it back */
        char text[];
};

bool seen_has(const struct seen *s, const char *name)
{
        return name_map_find(&s->names, name) != NULL;
}

int seen_add(struct seen *s, const char *name)
{
        size_t bytes = strlen(name) + 1;
        struct name *n;

        if (seen_has(s, name))
                return 0;
        n = malloc(sizeof(*n) + bytes);
        if (n == NULL)
                return -ENOMEM;
        *n = (struct name){ .entry = { .key = n->text } };
        memcpy(n->text, name, bytes);
        if (name_map_insert(&s->names, &n->entry) == 0)
                return 0;
        free(n);
        return -ENOMEM;
}

void seen_free(struct seen *s)
{
        struct name_map_entry *next;

        for (struct name_map_entry *e = name_map_first(&s->names); e != NULL; e = next) {
                next = name_map_next(&s->names, e);
                free((struct name *) e);
        }
        name_map_free(&s->names);
}
