/* Store, inside: what a backend of store/store.h implements, and what store.c does for all of them. */
#pragma once

#include "base/text.h"
#include "store/budgets.h"
#include "store/store.h"
#include "store/store_read.h"

struct store_kind_info {
        const char *kind, *api_version; /* kind: as store_kind_name() has it */
        const char *collection;         /* "/api/v1/pods"; with a namespace "/api/v1/namespaces/NS/pods" */
        bool namespaced;
        bool status;   /* has a status subresource */
        bool optional; /* where there are none, or none for us, nothing is amiss */
        const char *const
                *unread; /* bulk that nobody reads (base/json/json_prune.h), ended by NULL; or NULL */
};

const struct store_kind_info *store_kind_info(enum store_kind kind);

/* store_kind_of() - of an object that says so of itself. Return: 0 or -ENOENT. store_kind_write() - it says
 * so. */
int store_kind_of(const char *kind, const char *api_version, enum store_kind *ret);
void store_kind_write(enum store_kind kind, json_t *object);

struct store_backend {
        void (*close)(struct store *store);
        void (*refresh)(struct store *store);
        uint64_t (*age_usec)(const struct store *store, unsigned kinds, uint64_t now_usec);
        bool (*serves)(const struct store *store, enum store_kind kind,
                       const char *namespace_); /* NULL = every kind */
        const char *(*namespace_trouble)(const struct store *store,
                                         const char *namespace_); /* NULL = each is read */
        uint64_t (*inventory_mtime_usec)(const struct store *store, const char *node);
        int (*touch)(struct store *store, const char *node);
        void (*bind)(struct store *store, const struct store_binding *binding, store_answer answer,
                     void *userdata);
        void (*put)(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                    const json_t *object, store_answer answer, void *userdata);
        void (*change)(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       store_changer change, store_answer answer, void *userdata);
        void (*read)(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                     store_read_taker take, store_answer answer, void *userdata);
        void (*patch)(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const json_t *patch, store_answer answer, void *userdata);
        void (*create)(struct store *store, enum store_kind kind, const char *namespace_,
                       const json_t *object, store_answer answer, void *userdata);
        void (*delete)(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       const char *uid, unsigned grace_sec, store_answer answer, void *userdata);
        void (*evict)(struct store *store, const char *namespace_, const char *name, const char *uid,
                      unsigned grace_sec, store_answer answer, void *userdata);
        void (*try_evict)(struct store *store, const char *namespace_, const char *name, const char *uid,
                          store_answer answer, void *userdata); /* NULL = it would always be done */
        void (*judge_evictions)(struct store *store, const char *namespace_, const char *const *names,
                                size_t count, budgets_refuse refuse, store_answer answer,
                                void *userdata); /* NULL = there are no budgets */
        void (*event)(struct store *store, const struct store_event *event);
};

struct pending_answer {
        struct pending_answer *next;
        store_answer answer;
        void *userdata;
        int result;
        char sentence[512];
};

/* The first member of every backend's own struct. */
struct store {
        const struct store_backend *backend;
        sd_event *loop;
        struct store_options options; /* spec and strings are not kept: a backend copies what it needs */
        sd_event_source *answering;
        bool rechecking; /* see store_is_rechecking() */
        bool listing;    /* see store_is_fresh() */
        struct pending_answer *first_answer, **last_answer;
};

/* The constructors: allocate, set ->backend. @path: what follows "dir:". */
int store_dir_new(sd_event *loop, const struct store_options *options, const char *path, struct store **ret,
                  struct err *err);
int store_kubernetes_new(sd_event *loop, const struct store_options *options, struct store **ret,
                         struct err *err);

/* store_init(), store_done() - of the common part. store_done() gives the answers that still wait. */
int store_init(struct store *store, const struct store_backend *backend, sd_event *loop,
               const struct store_options *options, struct err *err);
void store_done(struct store *store);

/* store_collection() - where the objects of a kind are at an API server: of all namespaces, or of one (NULL
 * or a kind that is in none: the former). */
void store_collection(enum store_kind kind, const char *namespace_, struct text *path);

/* store_answer_later() - call `answer` from the loop; without memory it is called at once. */
void store_answer_later(struct store *store, store_answer answer, void *userdata, int result, const char *fmt,
                        ...) __attribute__((format(printf, 5, 6)));

bool store_wants(const struct store *store, enum store_kind kind);
void store_trouble(struct store *store, enum store_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
