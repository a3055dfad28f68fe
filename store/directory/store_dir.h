/* Store in a directory, inside: shared by store_dir.c (life, inotify, journals), store_dir_read.c (files to
 * objects), store_dir_deliver.c (objects to who wants them) and store_dir_write.c (put, patch, create,
 * delete). Nobody else includes this.
 *
 * What is kept per object is where it stands in its file and a hash, never its JSON: 50,000 pods are 10 MB
 * here. When an object has to be delivered again (it was bound), its bytes are read again from the same
 * place. */
#pragma once

#include "base/name_map.h"
#include "store/directory/journal.h"
#include "store/store_internal.h"

#define DIR_KEY_BYTES 600 /* a kind's digit, a namespace, '/', a name, NUL */

struct dir_object;

struct dir_file {
        struct name_entry entry; /* in store_dir.files; the key is `name` */
        struct dir_file *next_queued;
        struct dir_object *objects; /* in the order of the file */
        uint64_t mtime_usec;        /* CLOCK_REALTIME */
        uint64_t size_bytes, inode;
        bool queued, bad;              /* bad: its present content cannot be used */
        bool recheck;                  /* nothing says that it changed */
        struct dir_object *recheck_at; /* the next object of it to be looked at; NULL = the first */
        char name[];
};

struct dir_object {
        struct name_entry entry; /* in store_dir.objects if it is the one that counts; the key is `key` */
        struct dir_object *next_in_file;
        struct dir_object *next_same; /* the same key in other files, which do not count */
        struct dir_file *file;
        uint64_t hash, offset_bytes;
        uint32_t size_bytes; /* 0: a YAML document, read again as a whole */
        uint8_t kind;
        bool seen;        /* while its file is read again */
        bool delivered;   /* the user knows it */
        bool terminating; /* a pod: the file says deletionTimestamp */
        char *node;       /* a pod: spec.nodeName of the file, or NULL */
        char *uid;        /* metadata.uid, or NULL */
        char key[];       /* '0' + kind, then "namespace/name" or "name" */
};

/* What our journals say about a pod. Keyed by its uid, or by "namespace/name" where it has none. */
struct dir_commitment {
        struct name_entry entry;
        char *node;          /* bound to, or NULL */
        char *deletion_time; /* evicted at, or NULL */
        json_t *annotations; /* recorded with the bind, or NULL */
        char *key;           /* of the entry */
        char pod[];          /* "namespace/name" */
};

/* A file KIND.NAMESPACE.NAME.patch: what we changed about an object whose file is somebody else's. */
struct dir_overlay {
        struct name_entry entry; /* the key is `key`, as an object's */
        json_t *patch, *status;  /* or NULL */
        char *uid;               /* of the object it was made for, or NULL */
        bool deleted;
        uint64_t mtime_usec;
        char key[];
};

struct bind_request;

struct store_dir {
        struct store store;
        char *path;
        int fd;
        struct name_map files, objects, commitments, overlays;
        struct dir_file *queue, **queue_end; /* to be read */
        struct dir_file *gone;               /* no longer there; forgotten once the queue is empty */
        struct journal bindings, evictions;
        struct bind_request *binds, **binds_end;
        sd_event_source *inotify, *working, *pausing, *binding, *reviving;
        uint64_t lost_since_usec; /* the directory is gone since; 0 = it is there */
        uint64_t opened_usec;
        bool synced, wrote_overlay, refreshing;
};

/* store_dir.c */
struct dir_file *store_dir_queue(struct store_dir *d, const char *name, bool first); /* to be read (again) */
bool store_dir_is_object_file(const char *name);
struct dir_commitment *store_dir_commitment(const struct store_dir *d, const struct dir_object *pod);

/* store_dir_read.c */
void store_dir_read_file(struct store_dir *d, struct dir_file *file); /* or forget it, if it is gone */
/* store_dir_recheck_file() - deliver its objects once more, each as it stands in the file now; a file that is
 * not what it was is queued. Return: false when there is more to do, but `end_usec` (monotonic) has come. */
bool store_dir_recheck_file(struct store_dir *d, struct dir_file *file, uint64_t end_usec);
void store_dir_free_objects(struct store_dir *d);
void store_dir_free_overlay(struct dir_overlay *overlay);

/* store_dir_deliver.c */
char *store_dir_slurp(int directory_fd, const char *name, uint64_t max_bytes, size_t *ret_size_bytes,
                      struct dir_file *file, struct err *err);
bool store_dir_key(char key[DIR_KEY_BYTES], enum store_kind kind, const char *namespace_, const char *name);
struct dir_object *store_dir_find(const struct store_dir *d, enum store_kind kind, const char *key);

/* store_dir_identify() - what an object is, and its key. A namespace that is left out is filled in.
 * Return: 0; 1 a kind that nobody here reads; -EBADMSG. */
int store_dir_identify(json_t *object, const char *list_kind, enum store_kind *kind, char key[DIR_KEY_BYTES],
                       struct err *err);

/* store_dir_deliver() - as what it is by now: bound, evicted, patched, deleted. */
void store_dir_deliver(struct store_dir *d, struct dir_object *object, json_t *json);
void store_dir_deliver_gone(struct store_dir *d, struct dir_object *object);

/* store_dir_deliver_again() - its bytes are read again; a file that has changed is queued. */
void store_dir_deliver_again(struct store_dir *d, struct dir_object *object);
json_t *store_dir_load_json(const struct store_dir *d, const struct dir_object *object);

/* store_dir_write.c */
void store_dir_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   const json_t *object, store_answer answer, void *userdata);
void store_dir_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      store_changer change, store_answer answer, void *userdata);
void store_dir_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                     const json_t *patch, store_answer answer, void *userdata);
void store_dir_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                      store_answer answer, void *userdata);
void store_dir_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const char *uid, unsigned grace_sec, store_answer answer, void *userdata);
void store_dir_event(struct store *store, const struct store_event *event);
int store_dir_touch(struct store *store, const char *node);
void store_dir_overlay_gone(struct store_dir *d, const struct dir_object *object); /* its object is */

/* store_dir_bind.c */
void store_dir_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                    void *userdata);
void store_dir_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                     unsigned grace_sec, store_answer answer, void *userdata);
int store_dir_read_journals(struct store_dir *d, struct err *err);
int store_dir_start_binding(struct store_dir *d);
void store_dir_free_commitments(struct store_dir *d);
