/* A map from a name to a number: a time, or a hash of what was said. */
#include "scheduler-extender/ledger/heard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct heard_node {
        struct name_entry entry;
        uint64_t usec;
        char name[];
};

int heard_note(struct heard *heard, const char *node, uint64_t usec)
{
        struct heard_node *known = (struct heard_node *) name_map_find(&heard->times, node);

        if (known == NULL) {
                known = calloc(1, sizeof(*known) + strlen(node) + 1);
                if (known == NULL)
                        return -ENOMEM;
                memcpy(known->name, node, strlen(node) + 1);
                known->entry.key = known->name;
                if (name_map_insert(&heard->times, &known->entry) < 0) {
                        free(known);
                        return -ENOMEM;
                }
        }
        known->usec = usec;
        return 0;
}

void heard_forget(struct heard *heard, const char *node)
{
        struct name_entry *known = name_map_find(&heard->times, node);

        if (known == NULL)
                return;
        name_map_remove(&heard->times, known);
        free(known);
}

uint64_t heard_usec(const struct heard *heard, const char *node)
{
        const struct heard_node *known = (const struct heard_node *) name_map_find(&heard->times, node);

        return known != NULL ? known->usec : 0;
}

void heard_free(struct heard *heard)
{
        for (struct name_entry *e = name_map_first(&heard->times), *next; e != NULL; e = next) {
                next = name_map_next(&heard->times, e);
                free(e);
        }
        name_map_free(&heard->times);
}
