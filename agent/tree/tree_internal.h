/* Tree backend: what tree.c needs from a directory and from a machine file. Private to agent/tree.
 *
 * Paths are clean (no ".", "..", "//", no leading '/'), "" is the root itself. Unless the backend resolves
 * links itself, every component but the last is known not to be a link. */
#pragma once

#include "agent/tree/tree.h"

struct tree_record;

struct tree_backend {
        /* enum tree_kind of the path itself: TREE_LINK for a link, unless `resolves`; or a negative errno. */
        int (*kind)(void *state, const char *path);
        /* Target of a link: its length; -EINVAL when it is no link, -ENOENT when it is not there. */
        ssize_t (*link)(void *state, const char *path, char *target, size_t target_bytes);
        /* The same, where the backend resolves what comes before the last component; else as link(). */
        ssize_t (*link_below)(void *state, const char *path, char *target, size_t target_bytes);
        ssize_t (*read)(void *state, const char *path, void *buffer, size_t size_bytes);
        int (*list)(void *state, const char *path, struct tree_names *ret);
        void (*forget)(void *state); /* whatever was kept to answer faster */
        void (*free)(void *state);
};

struct tree {
        const struct tree_backend *backend;
        void *state;
        bool resolves; /* kind(), read() and list() follow links inside the root by themselves */
        char root[TREE_PATH_BYTES];
        uint64_t operations_left;
        bool exhausted;
        int starved;                   /* 0, or why something could not be looked at */
        struct tree_record *recording; /* NULL = none */
};

/* tree_names_add() - append a copy; -ENOMEM, or -E2BIG past TREE_NAMES_MAX. */
int tree_names_add(struct tree_names *names, const char *name, size_t length);
