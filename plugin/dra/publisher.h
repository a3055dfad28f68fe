/* Publisher: the slices of this node are in the store as they should be, and stay so.
 *
 * What is there is watched: what is missing (the kubelet takes slices away, too) or another one is written,
 * what is as it should be is left alone. The pool's generation grows where more than one slice changes. After
 * the first write of a taint, of counters and of a shared device the slice is read back: what the API server
 * has dropped is not written again, and sick devices are left out. What would give a chip twice where it is
 * dropped (bundles) is written after that.
 *
 * What is there brings pods to the node: a slice is not made, nor made anew, while nobody could prepare its
 * claims. One that is there is kept and set right meanwhile. Of two instances that share a node while one
 * takes over from the other, one alone writes: they may want other slices, and would set each other's right
 * for ever. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "plugin/dra/dra_status.h"
#include "store/store.h"

struct publisher;

struct publisher_options {
        struct store *store; /* which watches slices */
        const char *node;    /* borrowed for its life */
        /* The slices as they should be, an array, the publisher's; NULL = they are not known yet.
         * @features: slices_feature: that may be written; @kept: that were seen in the store */
        json_t *(*build)(void *userdata, uint64_t generation, unsigned features, unsigned kept);
        /* Is it too early for slices that are not there? publisher_hurry() when it is not any more. */
        bool (*early)(void *userdata);
        /* Does an instance that came later serve, too? publisher_hurry() when it does not any more. */
        bool (*followed)(void *userdata);
        void (*log)(void *userdata, int priority, const char *line);
        void *userdata;
};

int publisher_new(sd_event *loop, const struct publisher_options *options, struct publisher **ret,
                  struct err *err);
void publisher_free(struct publisher *publisher); /* after its store was closed; accepts NULL */

/* publisher_set_store() - once; publisher_changed(), publisher_synced() - as the store says of slices. */
void publisher_set_store(struct publisher *publisher, struct store *store);
void publisher_changed(struct publisher *publisher, const char *key, const json_t *object);
void publisher_synced(struct publisher *publisher);

/* publisher_update() - what build() says is another one now. publisher_is_empty() - no slice of ours is in
 * the store, and none is being written. */
void publisher_update(struct publisher *publisher);

/* publisher_hurry() - it is not too early now, or nobody follows. Nothing, and cheap, unless slices wait for
 * that. */
void publisher_hurry(struct publisher *publisher);

/* publisher_count() - its figures in @ret. */
void publisher_count(const struct publisher *publisher, struct dra_status *ret);
bool publisher_is_empty(const struct publisher *publisher);
