/* Objects: which item of which file is the object of a key.
 *
 * What is kept per object is where it stands in its file and a hash of its bytes, never its JSON: 50,000 pods
 * are 10 MB here (ADR 0030). The same key may stand in several files, for instance while an object moves from
 * one to another: the one in the file that was modified last counts, the others wait behind it. */
#pragma once

#include "base/name_map.h"
#include "store/store_internal.h"

#define OBJECTS_KEY_BYTES 600 /* a kind's digit, a namespace, '/', a name, NUL */

#define OBJECTS_FILE_BYTES 256

struct object;

struct object_file {
        struct name_map_entry entry; /* in objects.files, by the name */
        struct object_file *next_queued;
        struct object *objects; /* in the order of the file */
        uint64_t mtime_usec;    /* CLOCK_REALTIME */
        uint64_t inode;
        bool queued;
        bool recheck;              /* queued though nothing says that it changed */
        struct object *recheck_at; /* the next object of it to be looked at; NULL = the first */
};

#define OBJECTS_NO_UID 1

struct object {
        struct name_map_entry entry; /* in objects.by_key if it is the one that counts; the key is `key` */
        struct object *next_in_file;
        struct object *next_same; /* the same key in other files, which do not count */
        struct object_file *file;
        uint64_t hash, offset_bytes;
        uint32_t size_bytes; /* 0: a YAML document, read again as a whole */
        uint32_t delivered;  /* the user knows it: its uid then, hashed, or OBJECTS_NO_UID; 0 = he does not */
        uint8_t kind;
        bool seen;        /* while its file is read again */
        bool terminating; /* a pod: the file says deletionTimestamp */
        char *node;       /* a pod: spec.nodeName of the file, or NULL */
        char *uid;        /* metadata.uid, or NULL */
        char key[];       /* '0' + kind, then "namespace/name" or "name" */
};

struct objects {
        struct name_map files, by_key;
};

void objects_free(struct objects *all);

/* objects_key() - of a namespace that is left out: "default". Return: false if it is no name. */
bool objects_key(char key[OBJECTS_KEY_BYTES], enum store_kind kind, const char *namespace_, const char *name);

/* objects_identify() - what an object is, and its key. A namespace that is left out is filled in.
 * @list_kind: of its items, where they have none; or ""
 * Return: 0; 1 a kind that nobody here reads; -EBADMSG. */
int objects_identify(json_t *object, const char *list_kind, enum store_kind *kind,
                     char key[OBJECTS_KEY_BYTES], struct err *err);

/* objects_file_name() - of the file that we write: NAME.kind.json or NAMESPACE.NAME.kind.json for an object
 * of ours, kind.NAMESPACE.NAME.patch for an overlay. Return: 0; -EINVAL, -ENAMETOOLONG. */
int objects_file_name(char file[OBJECTS_FILE_BYTES], enum store_kind kind, const char *namespace_,
                      const char *name, bool overlay, struct err *err);

struct object_file *objects_file(struct objects *all,
                                 const char *name); /* made if need be; NULL = no memory */
void objects_forget_file(struct objects *all, struct object_file *file); /* it has no objects any more */

/* objects_find() - the one that counts. @key: "namespace/name" or "name". */
struct object *objects_find(const struct objects *all, enum store_kind kind, const char *key);
bool objects_counts(const struct objects *all, const struct object *object);
struct object *objects_find_in_file(const struct objects *all, const struct object_file *file,
                                    const char *key);

/* objects_add() - one that is new in `file`. @ret_other: the object of this key that stands in another file,
 * or NULL. Return: NULL without memory. */
struct object *objects_add(struct objects *all, struct object_file *file, enum store_kind kind,
                           const char *key, const json_t *json, struct object **ret_other);
void objects_note(struct object *object, const json_t *json); /* its content is another one */

/* objects_raise() - its file was modified: does it count now, though it did not? @ret_other: that did. */
bool objects_raise(struct objects *all, struct object *object, struct object **ret_other);

/* objects_remove() - it is no longer in its file. Its `delivered` goes to its successor.
 * Return: the object that counts now in its place, or NULL. Free with objects_free_one(). */
struct object *objects_remove(struct objects *all, struct object *object);
void objects_free_one(struct object *object);
