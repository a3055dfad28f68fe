/* Reason: the closed vocabulary in which the scheduler says why a node does not take a pod.
 *
 * kube-scheduler adds up equal strings ("3 ChipsBusy: ..."), so a reason is a word and one constant sentence,
 * never a number or a name; details per node are told by `remuda explain`. This table is the only place where
 * the words live: code, docs and `remuda explain --reasons` read it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum reason {
        REASON_NONE, /* the node takes the pod */
        REASON_NODE_UNKNOWN,
        REASON_INVENTORY_STALE,
        REASON_NO_SUCH_RESOURCE,
        REASON_WRONG_MODEL,
        REASON_SINGLE_CHIP_NODE,
        REASON_MULTI_CHIP_NODE,
        REASON_RESERVED_POOL,
        REASON_TOO_FEW_CHIPS,
        REASON_CHIPS_UNHEALTHY,
        REASON_CHIPS_BUSY,
        REASON_CHIPS_LEASED,
        REASON_HELD_FOR_OLDER,
        REASON_NO_PROGRAM,
        REASON_NO_SUCH_GROUP,
        REASON_NO_WHOLE_GROUP,
        REASON_UNEQUAL_NODE,
        REASON_NETWORK_TOO_SLOW,
        REASON_GANG_INCOMPLETE,
        REASON_GANG_DOES_NOT_FIT,
        REASON_GANG_PAUSED,
        REASON_SHARE_TOO_SMALL,
        REASON_SHARE_TOO_LARGE,
        REASON_NODE_NOT_ALLOWED,
        REASON_NODE_FULL,
        REASON_WRONG_NEIGHBOURS,
        REASON_COUNT
};

#define REASONS_MAX 25 /* people can learn so many words */

struct reason_text {
        const char *word;    /* "ChipsBusy" */
        const char *message; /* "ChipsBusy: sentence", constant: what goes on the wire */
        bool unresolvable;  /* true: FailedAndUnresolvableNodes; false: FailedNodes (preemption might help) */
        const char *remedy; /* what a person can do about it */
        size_t message_bytes; /* of `message`, filled in by reason_text() callers' need for speed: constant */
};

/* reason_text() - the row of a reason; REASON_NONE has an empty word. */
const struct reason_text *reason_text(enum reason reason);
