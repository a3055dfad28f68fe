/* Audit: does the ledger have of an object what a fresh look at the store says?
 *
 * A snapshot of what the ledger holds of a pod or a node before the object is taken once more, and the
 * comparison afterwards. Pure but for reading the ledger. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "scheduler-extender/ledger/ledger.h"

struct audit {
        bool known, of_node, ended, deleting;
        char node[256]; /* "" = not bound */
        uint64_t chips; /* held by the pod, or usable on the node */
};

struct audit audit_pod(const struct ledger *ledger, const char *namespace_, const char *name);
struct audit audit_node(const struct ledger *ledger, const char *name);

/* audit_settle() - give up a bind of ours that is neither being written or settled nor done, and that the
 * store, asked afresh, does not have. Did it hold chips? */
bool audit_settle(struct ledger *ledger, const char *namespace_, const char *name);

/* audit_differs() - was the ledger wrong? Then `sentence` says what it had and what is true. A pod that is
 * gone counts only if it was not known to be on its way out. */
bool audit_differs(const struct audit *before, const struct audit *now, char *sentence,
                   size_t sentence_bytes);
