/* DRA: this node's devices at the kubelet's other door, Dynamic Resource Allocation: driver remuda.dev.
 *
 * Registers through the kubelet's plugin watcher; publishes the slices and keeps them; prepares claims: what
 * they were allocated is asked of the store, once, and kept in a file, from which Prepare is answered again
 * and Unprepare always; tells the kubelet of health. A device that a claim holds is dra_holder()'s to say:
 * whoever offers it in another way takes it out there.
 *
 * Not thread-safe; everything happens in callbacks of the loop given. Nothing here prints. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"
#include "base/err.h"
#include "plugin/dra/account/dra_state.h"
#include "plugin/dra/dra_status.h"
#include "plugin/plugin_config.h"

enum dra_held { DRA_FREE, DRA_HELD, DRA_NOT_KNOWN };

struct dra_options {
        const char *node;
        const char *kubelet_root;       /* "/var/lib/kubelet" */
        const char *pod_uid;            /* of two instances, each has sockets of its own; NULL = one alone */
        const char *cdi_directory;      /* NULL = the configuration's */
        const char *store, *kubeconfig; /* of slices and claims */
        const struct plugin_config *config; /* copied */
        const struct tree *tree;            /* borrowed for its life, or until dra_set_tree() */
        void (*log)(void *userdata, int priority, const char *line);
        /* Does somebody hold the device whom no claim stands for? @ret_whom: said where it is so. What
         * dra_account.h notes is asked there */
        enum dra_held (*held)(void *userdata, const char *id, char *ret_whom, size_t whom_bytes);
        void (*ask)(void *userdata);     /* somebody waits for what held() says: it is to be asked anew */
        void (*changed)(void *userdata); /* claims hold other devices than before */
        void (*on_registered)(
                void *userdata); /* the kubelet has said whether it takes the driver; may be NULL */
        void *userdata;
};

struct dra;

int dra_new(sd_event *loop, const struct dra_options *options, struct dra **ret, struct err *err);
void dra_free(struct dra *dra); /* accepts NULL; slices stay: another instance may follow */

/* dra_update() - the inventory is a new one, or other devices are held. The inventory is borrowed for the
 * call. Equal slices are not written. 0 or -ENOMEM: what was before goes on. */
int dra_update(struct dra *dra, const struct inventory *inventory, struct err *err);
void dra_set_tree(struct dra *dra, const struct tree *tree);
void dra_configure(struct dra *dra, const struct plugin_config *config);

/* dra_holder() - the claim that holds the device; NULL = none. Borrowed until the loop turns, as
 * dra_claims(). */
const struct dra_state_claim *dra_holder(const struct dra *dra, const char *id);
const struct dra_state *dra_claims(const struct dra *dra);

void dra_status(const struct dra *dra, struct dra_status *ret);

/* dra_held_changed() - options.held() says something else now. */
void dra_held_changed(struct dra *dra);

/* dra_withdraw() - nothing is offered any more, or it is again: the slices go, and what is prepared is served
 * until it is given up. dra_is_withdrawn() - no slice of this node is in the store any more. dra_is_over() -
 * nothing is left of either: it may be freed. */
void dra_withdraw(struct dra *dra, bool withdraw);
bool dra_is_withdrawn(const struct dra *dra);
bool dra_is_over(const struct dra *dra);
