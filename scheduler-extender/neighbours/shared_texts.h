/* Shared texts: equal texts are kept once, under a number, for as long as somebody holds it. What many pods
 * say alike (their labels, what they demand of their neighbours) costs each of them the number. Pure but for
 * the heap; O(1). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name_map.h"

#define SHARED_TEXTS_NONE 0u /* no text */

struct shared_text {
        struct name_map_entry entry;
        uint32_t references, number;
        char text[];
};

/* Zero-initialised; one owner. */
struct shared_texts {
        struct name_map map;
        struct shared_text **list; /* by number - 1; NULL = free */
        uint32_t count, capacity;
        uint32_t free_from; /* no index below it is free */
};

void shared_texts_free(struct shared_texts *texts);

/* shared_texts_hold() - the number of a text, made if need be; each is released once. Return:
 * SHARED_TEXTS_NONE when out of memory. shared_texts_refer() - one that is held is held once more. It and
 * shared_texts_release() accept SHARED_TEXTS_NONE; the latter says whether the text is gone. */
uint32_t shared_texts_hold(struct shared_texts *texts, const char *text);
void shared_texts_refer(struct shared_texts *texts, uint32_t number);
bool shared_texts_release(struct shared_texts *texts, uint32_t number);

/* shared_texts_text() - NULL of SHARED_TEXTS_NONE. */
const char *shared_texts_text(const struct shared_texts *texts, uint32_t number);
