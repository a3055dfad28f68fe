/* Roster: the nodes of a ledger as a request meets them: their names side by side, in the order in which they
 * came, and beside each name the little that every request reads of the node.
 *
 * A request for 5,000 nodes touches 32 bytes and the name of each, one after the other in memory, instead of
 * three or four scattered cache lines. Names are found by hash (open addressing), or, cheaper, by guessing:
 * kube-scheduler names nodes in the same order again and again, so that the name that followed this one the
 * last time is compared first, byte by byte, in the text of the request.
 *
 * A node's index is its place here and in ledger.nodes; the last one moves into the place of one that goes.
 * Owned by the ledger. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROSTER_NONE UINT32_MAX

struct roster_seat {
        uint64_t seen_usec; /* when a sign of life was seen to change: scheduler-extender/ledger/liveness.h */
        uint32_t name_at, name_bytes;
        uint32_t next;  /* index of the node that was named after this one the last time: a guess */
        uint32_t kind;  /* scheduler-extender/decide/node_kinds.h; 0 = to be found out */
        uint32_t stamp; /* of the last request that named it */
        bool plain;     /* in JSON the name stands as it is, without escapes */
        bool ends;      /* some pod there says when it ends */
};

struct roster {
        struct roster_seat *seats;
        uint32_t count, capacity;
        uint32_t first; /* index of the node that was named first the last time: a guess */
        uint32_t stamp; /* of the request that is being read */
        uint32_t gone;  /* nodes, since the start: others may have their indexes since */
        char *text;     /* the names, each followed by '"' */
        size_t text_bytes, text_capacity, garbage_bytes;
        uint64_t *slots; /* hash << 32 | index + 1 */
        uint32_t slot_count;
};

void roster_free(struct roster *roster);

/* roster_add() - a name that is not in it. Return: its index (the last), ROSTER_NONE when out of memory. */
uint32_t roster_add(struct roster *roster, const char *name, size_t bytes);

/* roster_remove() - the last node takes the index of the one that goes. */
void roster_remove(struct roster *roster, uint32_t index);

uint32_t roster_find(const struct roster *roster, const char *name, size_t bytes); /* or ROSTER_NONE */

/* roster_begin() - a new request: no node has been named in it yet. */
void roster_begin(struct roster *roster);

/* roster_named() - the node has been named, after `before` (ROSTER_NONE = first).
 * Return: false if the request named it before. */
bool roster_named(struct roster *roster, uint32_t before, uint32_t index);

/* roster_expects() - does the text of a JSON string at `at`, its closing quote included, hold the name at
 * `index`? Return: the bytes of the name, 0 = no. */
static inline size_t roster_expects(const struct roster *roster, uint32_t index, const char *at,
                                    const char *end)
{
        const struct roster_seat *seat = index < roster->count ? &roster->seats[index] : NULL;

        if (seat == NULL || !seat->plain || (size_t) (end - at) <= seat->name_bytes ||
            memcmp(roster->text + seat->name_at, at, seat->name_bytes + 1u) != 0)
                return 0;
        return seat->name_bytes;
}
