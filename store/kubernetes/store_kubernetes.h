/* Store in Kubernetes, inside: store_kubernetes.c (life, one reflector a kind), store_kubernetes_watch.c
 * (list and watch) and store_kubernetes_write.c (bind, put ...) with _change.c and _events.c, whose writes
 * are operations (store_kubernetes_operation.c). Nobody else includes this.
 *
 * Objects are delivered and dropped; what is kept per object is its key, and hashes of its uid and
 * resourceVersion, so that a re-list tells what is gone and what is new. */
#pragma once

#include "base/name_map.h"
#include "base/text.h"
#include "store/kubernetes/kube_client.h"
#include "store/store_backend.h"

enum reflector_state { REFLECTOR_LISTING, REFLECTOR_WATCHING, REFLECTOR_WAITING };

struct known_object {
        struct name_entry entry; /* the key is `key` */
        uint64_t uid_hash, version_hash;
        uint32_t list; /* the number of the list that it was last seen in */
        char key[];
};

struct store_kubernetes;
struct operation;

struct reflector {
        struct store_kubernetes *k;
        enum store_kind kind;
        enum reflector_state state;
        struct kube_call *call;
        sd_event_source *timer; /* while waiting */
        sd_event_source *refreshing;
        struct name_map known;
        struct text line;          /* of the watch: what came after the last newline */
        char version[64];          /* resourceVersion to watch from; "" = list first */
        char continue_[2048];      /* of the list under way */
        uint32_t list;             /* number of the list under way, or done last */
        unsigned failures;         /* in a row */
        uint64_t in_step_usec;     /* when it was last known to be in step; 0 = never */
        uint64_t watch_began_usec; /* when the watch was asked for */
        bool watch_open;           /* and the API server said yes: silence now means that nothing happens */
        bool synced, missing;      /* missing: the API server does not know this kind */
        bool expired;              /* the watch said 410: list again */
        bool rechecking;           /* the list under way repeats everything */
        uint64_t recheck_version;  /* what is not newer than this should be known; 0 = cannot be told */
};

struct store_kubernetes {
        struct store store;
        struct kube_client *client;
        char *node; /* field selector, or NULL */
        struct reflector reflectors[STORE_KIND_COUNT];
        struct name_map said;         /* events of the last minutes */
        struct operation *operations; /* writes under way */
        uint64_t opened_usec;
};

/* store_kubernetes_watch.c */
void reflector_start(struct reflector *r);
void reflector_stop(struct reflector *r);
void reflector_refresh(struct reflector *r); /* list again now, and deliver everything */
uint64_t reflector_age_usec(const struct reflector *r, uint64_t now_usec);

/* reflector_take_list(), reflector_take_line() - the bytes of a reply; also entered by the fuzzer.
 * Return: 0, -EBADMSG; -ESTALE for a line that says 410. */
int reflector_take_list(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err);
int reflector_take_line(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err);

/* store_kubernetes_write.c, store_kubernetes_change.c, store_kubernetes_events.c */
void store_kubernetes_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                           void *userdata);
void store_kubernetes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                          const json_t *object, store_answer answer, void *userdata);
void store_kubernetes_change(struct store *store, enum store_kind kind, const char *namespace_,
                             const char *name, store_changer change, store_answer answer, void *userdata);
void store_kubernetes_patch(struct store *store, enum store_kind kind, const char *namespace_,
                            const char *name, const json_t *patch, store_answer answer, void *userdata);
void store_kubernetes_create(struct store *store, enum store_kind kind, const char *namespace_,
                             const json_t *object, store_answer answer, void *userdata);
void store_kubernetes_delete(struct store *store, enum store_kind kind, const char *namespace_,
                             const char *name, const char *uid, unsigned grace_sec, store_answer answer,
                             void *userdata);
void store_kubernetes_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                            unsigned grace_sec, store_answer answer, void *userdata);
void store_kubernetes_event(struct store *store, const struct store_event *event);
void store_kubernetes_forget_events(struct store_kubernetes *k);

/* store_kubernetes_operation.c */
void store_kubernetes_cancel_writes(struct store_kubernetes *k); /* those that wait between two tries */
