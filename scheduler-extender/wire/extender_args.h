/* Extender args: ExtenderArgs of the scheduler extender protocol (v1), what filter and prioritize are sent.
 *
 * Lists of 5,000 names and of whole Node objects never become a JSON tree: they are scanned in place and
 * echoed as they came. Only the pod is parsed (jansson). In memory only. A list of names that is kept from
 * before (scheduler-extender/wire/names_memory.h) is not read again. Of another the names are looked up while
 * they are read: the one that the roster expects is compared as it stands in the text, without scanning it;
 * the others are scanned and found by hash. Keys are Go's field names; unknown ones are passed over. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/json/json_scan.h"
#include "scheduler-extender/decide/reason.h"
#include "scheduler-extender/ledger/roster.h"
#include "scheduler-extender/wire/names_memory.h"

#define EXTENDER_ARGS_NODES_MAX ((size_t) 1 << 20)

#define EXTENDER_ARGS_AGAIN 255 /* verdict of a name that was sent before: answered once */

/* What is said of node i is in the i-th entry of each array. Names and nodes are the list's, and like the
 * verdicts of the memory: until its next request. Slices point into the request. */
struct extender_args {
        json_t *pod; /* owned */
        bool full;   /* Node objects were sent, not names */
        bool named;  /* names were sent */
        size_t node_count;
        const struct names_memory_name *names;
        const uint32_t *nodes;           /* index in the roster, or ROSTER_NONE */
        uint8_t *verdicts;               /* enum reason; REASON_NONE at first */
        bool any_again;                  /* some verdicts are EXTENDER_ARGS_AGAIN */
        struct json_scan_slice *objects; /* full: the Node objects as they came; owned */
        const char *end;                 /* of the text that the names are in */
        struct names_memory_list *list;  /* NULL = none was sent */
        struct names_memory *memory;
};

/* extender_args_decode() - the message, its names looked up in `roster`, which learns their order; the list
 * is kept in `memory`. Return: 0; -EBADMSG (what and where); -E2BIG; -ENOMEM. Release in any case. */
int extender_args_decode(const char *body, size_t body_bytes, struct roster *roster,
                         struct names_memory *memory, struct extender_args *ret, struct err *err);
void extender_args_free(struct extender_args *args);
