/* A store on an API server that plays faults (tests/fake-apiserver), and everything the store said, for the
 * tests of what it reads and of what it writes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "io/clock.h"
#include "io/http/http_client.h"
#include "store/store.h"
#include "tests/support/patience.h"

#define KUBE_STORE_PODS  "/api/v1/namespaces/default/pods"
#define KUBE_STORE_NODES "/api/v1/nodes"

struct kube_store {
        pid_t pid;
        unsigned port;
        sd_event *loop;
        struct store *store;
        struct http_client *admin;
        json_t *stats; /* of the last admin call */
        char folder[64], config[100], token[100];
        json_t *objects, *troubles;
        const char *const *namespaces; /* this and the next two: of the store's options */
        size_t namespace_count;
        uint64_t silence_usec; /* of the store's options */
        int commits;           /* how often may_commit() says yes from now on; -1 = it is not asked */
        unsigned deliveries, gone, synced[STORE_KIND_COUNT];
        int answers, result, succeeded, changes;
        char sentence[512];
};

/* Runs the loop until `what` holds; fails the test when it does not within 20 s. */
#define KUBE_STORE_WAIT(f, what)                                                                             \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + patience_usec();                                    \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_) {                                                 \
                                char *all_ = json_dumps((f)->troubles, 0);                                   \
                                fail_msg("never came: %s; troubles %s", #what, all_);                        \
                        }                                                                                    \
                        (void) sd_event_run((f)->loop, 20000);                                               \
                }                                                                                            \
        } while (false)

/* kube_store_new() - the server and a kubeconfig for it; kube_store_open() - the store on it, not yet synced;
 * kube_store_open_pods() - of pods alone, synced. */
struct kube_store *kube_store_new(void);
void kube_store_open(struct kube_store *f, unsigned kinds, const char *node);
void kube_store_open_pods(struct kube_store *f);
void kube_store_free(struct kube_store *f);

void kube_store_run_for(struct kube_store *f, uint64_t usec);

/* kube_store_admin() - one operation of the fake server, as JSON (its source lists them); its reply is in
 * `stats`. */
void kube_store_admin(struct kube_store *f, const char *fmt, ...);
void kube_store_put_pod(struct kube_store *f, const char *name, const char *uid, const char *node);
/* kube_store_count_requests() - how many requests so far have these words in "METHOD path?query". */
unsigned kube_store_count_requests(struct kube_store *f, const char *part);
void kube_store_write_file(const char *path, const char *text);

/* What was delivered: "Pod default/a", "spec", "nodeName" -> its text, or "". */
const char *kube_store_field(struct kube_store *f, const char *object, const char *outer, const char *inner);
bool kube_store_said(struct kube_store *f, const char *part); /* has a trouble these words? */
bool kube_store_has(struct kube_store *f, const char *object);

/* The callbacks of its store: what they are told is kept in the fixture. */
void kube_store_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object);
void kube_store_trouble(void *userdata, enum store_kind kind, const char *sentence);

/* kube_store_answer() - keeps an answer: give it, with the fixture, to what the store does. */
void kube_store_answer(void *userdata, int result, const char *sentence);
/* kube_store_bind() - binds a pod of namespace "default" and waits for the answer. */
void kube_store_bind(struct kube_store *f, const char *name, const char *uid, const char *node);
