/* DRA state: which claims this node has prepared, and with which devices: what must not be forgotten by a
 * restart. Pure but for the heap; the file is dra_file.h's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inventory/device.h"
#include "base/err.h"
#include "base/object_name.h"

#define DRA_STATE_RESULTS_MAX 32 /* devices of a claim: the API's bound */
#define DRA_STATE_CLAIMS_MAX  4096
#define DRA_STATE_UID_BYTES   64

struct dra_state_device {
        char request[OBJECT_NAME_LABEL_BYTES]; /* without the alternative that was taken: "gpu" of "gpu/large"
                                                */
        char name[OBJECT_NAME_LABEL_BYTES];    /* in the slice */
        char id[DEVICE_ID_BYTES];              /* in the inventory */
        bool admin;                            /* it looks on: it holds nothing */
};

struct dra_state_claim {
        char uid[DRA_STATE_UID_BYTES];
        char namespace_[OBJECT_NAME_LABEL_BYTES];
        char name[OBJECT_NAME_DNS_BYTES];
        char pod[OBJECT_NAME_DNS_BYTES]; /* that it was reserved for first; "" = not known */
        struct dra_state_device *devices;
        size_t device_count;
};

struct dra_state {
        unsigned version;
        struct dra_state_claim *claims;
        size_t count;
};

void dra_state_free(struct dra_state *state);             /* accepts NULL; it is empty then */
void dra_state_claim_free(struct dra_state_claim *claim); /* its devices */

/* dra_state_decode() - Return: 0; -EBADMSG or -ENOMEM and a sentence, and *ret is empty. */
int dra_state_decode(const char *bytes, size_t size_bytes, struct dra_state *ret, struct err *err);
char *dra_state_encode(const struct dra_state *state); /* JSON text, the caller's; NULL = no memory */

const struct dra_state_claim *dra_state_find(const struct dra_state *state, const char *uid);

/* dra_state_add() - takes the claim over, whose uid is not there. 0; -ENOMEM; -E2BIG past the bound. */
int dra_state_add(struct dra_state *state, struct dra_state_claim *claim);
void dra_state_remove(struct dra_state *state, const char *uid); /* may be unknown */

/* dra_state_holder() - the claim that holds a device of the inventory; NULL = none. */
const struct dra_state_claim *dra_state_holder(const struct dra_state *state, const char *id);

/* dra_state_uid_valid() - may it be a part of a file's name: letters, digits, '-', 1 to 63 of them? */
bool dra_state_uid_valid(const char *uid);
