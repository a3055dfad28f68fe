/* Publisher: the slices of this node are in the store as they should be, and stay so.
 *
 * What is there is watched: what is missing (the kubelet takes slices away, too) or another one is written,
 * what is as it should be is left alone. The pool's generation grows where more than one slice changes. After
 * the first write of a taint the slice is read back: where the API server has dropped it, sick devices are
 * left out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "store/store.h"

struct publisher;

struct publisher_options {
        struct store *store; /* which watches slices */
        const char *node;    /* borrowed for its life */
        /* The slices as they should be, an array, the publisher's; NULL = they are not known yet. */
        json_t *(*build)(void *userdata, uint64_t generation, bool taints);
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

/* publisher_update() - what build() says is another one now. */
void publisher_update(struct publisher *publisher);
