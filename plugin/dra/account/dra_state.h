/* DRA state: which claims this node has prepared, and with which devices, and what the device plugin gave a
 * moment ago: what must not be forgotten by a restart. Pure but for the heap; the file is dra_file.h's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "agent/inventory/dra_share.h"
#include "base/err.h"
#include "base/object_name.h"
#include "plugin/grants.h"

#define DRA_STATE_RESULTS_MAX 32  /* of a claim: the API's bound */
#define DRA_STATE_DEVICES_MAX 512 /* of a claim, of which a result may have several (bundles.h) */
#define DRA_STATE_CLAIMS_MAX  4096
#define DRA_STATE_UID_BYTES   64
#define DRA_STATE_BOOT_BYTES  40

struct dra_state_device {
        char request[OBJECT_NAME_LABEL_BYTES]; /* without the alternative that was taken: "gpu" of "gpu/large"
                                                */
        char name[OBJECT_NAME_LABEL_BYTES];    /* in the slice */
        char id[DEVICE_ID_BYTES];              /* in the inventory; of one result there may be several */
        bool admin;                            /* it looks on: it holds nothing */
        char share[OBJECT_NAME_LABEL_BYTES];   /* of a device that several claims have; "" = alone */
        uint64_t memory_bytes;                 /* that the share has; 0 = not told */
        uint64_t shares; /* that it counts as; 0 = one, of which the file says nothing */
};

struct dra_state_claim {
        char uid[DRA_STATE_UID_BYTES];
        char namespace_[OBJECT_NAME_LABEL_BYTES];
        char name[OBJECT_NAME_DNS_BYTES];
        char pod[OBJECT_NAME_DNS_BYTES]; /* that it was reserved for first; "" = not known */
        char boot[DRA_STATE_BOOT_BYTES]; /* of the node, in which it was prepared; "" = not known */
        struct dra_state_device *devices;
        size_t device_count;
};

struct dra_state {
        unsigned version;
        uint64_t sequence; /* of this text: which journal goes on from it (dra_journal.h); 0 = none does */
        struct dra_state_claim *claims;
        size_t count;
        struct grants grants; /* of the device plugins of all instances */
};

void dra_state_free(struct dra_state *state);             /* accepts NULL; it is empty then */
void dra_state_claim_free(struct dra_state_claim *claim); /* its devices */

/* dra_state_copy() - 0, or -ENOMEM: *ret is empty. */
int dra_state_copy(const struct dra_state *state, struct dra_state *ret);

/* dra_state_decode() - Return: 0; -EBADMSG or -ENOMEM and a sentence, and *ret is empty. */
int dra_state_decode(const char *bytes, size_t size_bytes, struct dra_state *ret, struct err *err);
char *dra_state_encode(const struct dra_state *state); /* JSON text, the caller's; NULL = no memory */

/* What is done to a state at once: a line of its journal. What is not told stays. */
struct dra_state_change {
        char (*dropped)[DRA_STATE_UID_BYTES];
        size_t dropped_count;
        struct dra_state_claim *added; /* after that */
        size_t added_count;
        struct grants grants; /* instead of those of before; none = they stay */
};

/* dra_state_apply() - a line without its newline. 0; -EBADMSG and why, or -ENOMEM: the state is as before, or
 * has some of it. */
int dra_state_apply(struct dra_state *state, const char *line, size_t size_bytes, struct err *err);
char *dra_state_encode_change(const struct dra_state_change *change); /* the caller's; NULL = no memory */

/* dra_state_check() - is no device held twice? Nobody ever wrote such a state. 0 or -EBADMSG. */
int dra_state_check(const struct dra_state *state, struct err *err);

const struct dra_state_claim *dra_state_find(const struct dra_state *state, const char *uid);

/* dra_state_is_earlier() - was it prepared in another boot of the node than @boot ("" = not known, as where
 * the claim says none: then it was not)? */
bool dra_state_is_earlier(const struct dra_state_claim *claim, const char *boot);

/* dra_state_add() - takes the claim over, whose uid is not there. 0; -ENOMEM; -E2BIG past the bound. */
int dra_state_add(struct dra_state *state, struct dra_state_claim *claim);
void dra_state_remove(struct dra_state *state, const char *uid); /* may be unknown */

/* dra_state_has() - does the claim hold a device of the inventory, the chip that it is a partition of, a
 * partition of it, or a share of it? dra_state_holder() - the first that does; NULL = none. */
bool dra_state_has(const struct dra_state_claim *claim, const char *id);
const struct dra_state_claim *dra_state_holder(const struct dra_state *state, const char *id);

/* dra_state_rival() - likewise, who is in the way of a claim that is to have its device @index: shares are in
 * each other's way where they are more than the device has, or their memory is, those of the claim itself
 * before @index included.
 * @claim: of the state, or not yet
 * @room: of the device; memory that is not known is enough for all; NULL = nobody knows how often it is
 *        shared, and shares are in nobody's way
 * Return: @claim itself, where it is in its own way */
const struct dra_state_claim *dra_state_rival(const struct dra_state *state,
                                              const struct dra_state_claim *claim, size_t index,
                                              const struct dra_share_room *room);

/* dra_state_uid_valid() - may it be a part of a file's name: letters, digits, '-', 1 to 63 of them? */
bool dra_state_uid_valid(const char *uid);
