/* Changes: what a listing that goes on (`--watch`) has printed of each thing, so that a look prints only what
 * is new or says something else.
 *
 * A look tells every row that there is by changes_take(), then changes_end() tells those that were there
 * before and are not any more. Rows of one key in one look are told apart by their order: two groups of one
 * model on a node are two rows. Zero-initialised, released with changes_free(). Pure but for the heap; a look
 * over n rows is O(n). */
#pragma once

#include <stdbool.h>

#include "base/name_map.h"

struct changes {
        struct name_map rows; /* of struct changes_row */
};

enum change { CHANGE_NONE, CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED };

/* change_name() - "ADDED", as kubectl calls it. */
const char *change_name(enum change change);

/* changes_take() - a row of the look that is under way.
 * @state: what makes a change: the row without what changes by itself, such as an age
 * @row: kept, for when it is gone
 * Return: enum change, or -ENOMEM. */
int changes_take(struct changes *changes, const char *key, const char *state, const char *row);

/* changes_know() - was there such a row in the look before, or in this one? */
bool changes_know(const struct changes *changes, const char *key);

/* changes_end() - the look is over: `gone` is called with the key and the last row of each that did not come,
 * in the order of the keys. Return: 0 or -ENOMEM. */
int changes_end(struct changes *changes, void (*gone)(void *userdata, const char *key, const char *row),
                void *userdata);

void changes_free(struct changes *changes);
