/* Inventory words: what the object of an inventory says beside the inventory: whose it is, and whether the
 * agent that wrote it is about to end. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* inventory_words_owner() - the uid of the Node that owns it, as its agent wrote: the garbage collector takes
 * it with that one, at some time. "" = there is none. Borrowed. */
const char *inventory_words_owner(const json_t *object);

/* inventory_words_leaves() - has its agent said that it ends (condition Ready, SUMMARY_LEAVES), and none
 * since that it is there? */
bool inventory_words_leaves(const json_t *object);
