/* Names memory: the lists of names that requests had last, and what was made of them.
 *
 * With each of its questions kube-scheduler sends the names of all nodes that are left, 150 KB of 5,000, and
 * often the very bytes that it sent before. Over a roster that no node has joined or left the same bytes mean
 * the same nodes: they are compared (10 us) and not read (200 us). Two lists are kept, for filter and
 * prioritize are asked in turn, and of fewer nodes where some did not pass. Invariant: what is kept of a list
 * is what reading it would give. A list of other bytes is read in the place of the one that was met least
 * recently, in the same arrays. Zero-initialised; one request at a time. In memory only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/ledger/roster.h"

#define NAMES_MEMORY_LISTS    2
#define NAMES_MEMORY_BYTES    ((size_t) 1 << 20) /* a longer list is not kept */
#define NAMES_MEMORY_CAPACITY ((size_t) 1 << 16) /* nor are arrays for more names */

/* A node of the request, as its name stands in the text, between the quotes. */
struct names_memory_name {
        const char *escaped;
        size_t escaped_bytes;
};

/* What is said of name i is in the i-th entry of each array. */
struct names_memory_list {
        struct names_memory_name *names; /* in the request, or in `text` where that is kept */
        uint32_t *nodes;                 /* index in the roster, or ROSTER_NONE */
        uint8_t *again;                  /* EXTENDER_ARGS_AGAIN: was named before; else REASON_NONE */
        size_t count, capacity;
        bool any_again;

        char *text; /* as it came, with its brackets */
        size_t text_bytes /* 0 = is not kept */, text_capacity;
        uint32_t roster_count, roster_gone; /* nodes that had joined and left */
        uint64_t met;                       /* number of the request that it was met in last */

        char *hosts; /* a reply with all of the names, into which scores are put; NULL = none was made */
        size_t hosts_bytes;
        uint32_t *score_at; /* where in it */
};

struct names_memory {
        struct names_memory_list lists[NAMES_MEMORY_LISTS];
        uint8_t *verdicts; /* of the request that is being answered */
        size_t verdict_capacity;
        uint64_t requests;
};

/* names_memory_find() - the list whose text stands at `at`, or NULL; met by that. */
struct names_memory_list *names_memory_find(struct names_memory *memory, const struct roster *roster,
                                            const char *at, const char *end);

/* names_memory_begin() - an empty list, to be read into: the one that was met least recently. */
struct names_memory_list *names_memory_begin(struct names_memory *memory);

/* names_memory_grow() - a list that is full has room for twice as many. Return: false when out of memory. */
bool names_memory_grow(struct names_memory_list *list, size_t at_first);

/* names_memory_keep() - it has been read from this text over this roster. Where it is too long, or there is
 * no memory, it is good for this request alone. */
void names_memory_keep(struct names_memory_list *list, const struct roster *roster, const char *text,
                       size_t text_bytes);

/* names_memory_verdicts() - `list->again`, for the request to write upon, or NULL when out of memory. */
uint8_t *names_memory_verdicts(struct names_memory *memory, const struct names_memory_list *list);

/* names_memory_end() - the request has been answered: what is uncommonly large goes. */
void names_memory_end(struct names_memory *memory);
void names_memory_free(struct names_memory *memory);
