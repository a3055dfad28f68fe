/* Tree of a machine file, as `remuda machine record` writes it: text, an entry a line, sorted by path. */
#pragma once

#include "agent/tree/tree.h"

int tree_machine_open(const char *path, struct tree **ret, struct err *err);
/* tree_machine_open_bytes() - the same from memory; @name for messages. -EBADMSG says the line. */
int tree_machine_open_bytes(const char *name, const char *bytes, size_t size_bytes, struct tree **ret,
                            struct err *err);

struct tree_machine_entry {
        char *path;
        enum tree_kind kind;
        char *bytes; /* content of a file, target of a link; NULL for others */
        size_t size_bytes;
        unsigned major, minor; /* of a device node */
};

/* A path that is there: an entry's own, or a directory above some. */
struct tree_machine_place {
        uint32_t first; /* the first entry at or below it */
        uint32_t bytes; /* of that entry's path; 0 = no place */
};

struct tree_machine {
        struct tree_machine_entry *entries; /* sorted by path */
        size_t count;
        struct tree_machine_place *places; /* an open hash table */
        size_t place_room;                 /* a power of two */
};

const struct tree_machine *tree_machine_of(const struct tree *tree); /* NULL when the tree is a directory */
