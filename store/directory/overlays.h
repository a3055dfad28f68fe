/* Overlays: what we changed about objects whose files are somebody else's (ADR 0031).
 *
 * A file KIND.NAMESPACE.NAME.patch beside theirs holds a merge patch, a status, or that the object is
 * deleted. It is for the object of one uid or, where that has none, ends with its object. */
#pragma once

#include "store/directory/objects.h"

struct overlay {
        struct name_map_entry entry; /* the key is `key`, as an object's */
        json_t *patch, *status;      /* or NULL */
        char *uid;                   /* of the object it was made for, or NULL */
        bool deleted;
        uint64_t mtime_usec;
        char key[];
};

struct overlays {
        struct name_map by_key;
        bool wrote; /* this process has written one: it removes those whose objects are gone */
};

struct overlays_change {
        const json_t *patch, *status; /* or NULL */
        bool deleted;
};

void overlays_free(struct overlays *all);

bool overlays_is_file(const char *name);

/* overlays_read() - take what the file holds. Return: what lies over its object now, or NULL: nothing of
 * ours, or half-written; then the last good version counts. */
const struct overlay *overlays_read(struct overlays *all, int directory_fd, const char *file);

/* overlays_of() - what lies over this object, or NULL. */
const struct overlay *overlays_of(const struct overlays *all, const struct object *object);
bool overlays_deletes(const struct overlay *overlay, const struct object *object);
void overlays_apply(const struct overlay *overlay, json_t *object);

/* overlays_change() - write one more change into the file. @object: NULL = it is not known here. */
int overlays_change(struct overlays *all, int directory_fd, enum store_kind kind, const char *namespace_,
                    const char *name, const struct object *object, struct overlays_change change,
                    struct err *err);

/* overlays_forget() - the object is gone; what was said about it must not fall on the next one of its name.
 */
void overlays_forget(struct overlays *all, int directory_fd, const struct object *object);
