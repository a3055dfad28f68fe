/* Lookup: claims of the account are asked for at the store, one after the other: does the cluster still give
 * them what the account says that they have? Who is not given it any more gives it up, or has forgotten to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "plugin/dra/account/dra_state.h"
#include "store/store.h"

enum claim_lookup_answer {
        CLAIM_LOOKUP_STANDS,
        CLAIM_LOOKUP_GONE, /* it is not there, another one of its name is, or it is not given these devices */
        CLAIM_LOOKUP_NOT_KNOWN, /* the store did not say */
};

struct claim_lookup_claim {
        char uid[DRA_STATE_UID_BYTES];
        char namespace_[OBJECT_NAME_LABEL_BYTES];
        char name[OBJECT_NAME_DNS_BYTES];
};

struct claim_lookup_options {
        const struct dra_state *state;
        struct store *store;
        const char *node;
        /* Of each claim; false = those that are left need not be asked for. */
        bool (*each)(void *userdata, const struct claim_lookup_claim *claim, enum claim_lookup_answer answer);
        void (*end)(void *userdata); /* last; it may add others, and begin again */
        void *userdata;
};

struct claim_lookup {
        struct claim_lookup_claim *claims;
        size_t count, at, capacity;
        bool busy, asking, answered;
        enum claim_lookup_answer answer; /* to the one that is asked for */
        struct claim_lookup_options options;
};

/* claim_lookup_add() - once, however often it is added; what was asked for is forgotten with the first that
 * is added after it. Not while it is busy. 0 or -ENOMEM. */
int claim_lookup_add(struct claim_lookup *lookup, const struct dra_state_claim *claim);

/* claim_lookup_begin() - what was added is asked for; the options are borrowed for the call, what they point
 * at until the end. An answer may come from within. Return: false: nothing was added, and nothing is called.
 */
bool claim_lookup_begin(struct claim_lookup *lookup, const struct claim_lookup_options *options);

/* claim_lookup_free() - not while it is busy: whoever closes the store ends that. */
void claim_lookup_free(struct claim_lookup *lookup);
