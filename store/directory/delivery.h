/* Delivery: an object told to the store's user as what it is by now: bound, evicted, patched, deleted. */
#pragma once

#include "store/directory/store_dir.h"

void delivery_send(struct store_dir *d, struct object *object, json_t *json);
void delivery_gone(struct store_dir *d, struct object *object);

/* delivery_again() - its bytes are read again; a file that has changed is queued. */
void delivery_again(struct store_dir *d, struct object *object);

/* delivery_read() - one, as it stands in the directory now (store/store_read.h): the file of its name before
 * what was delivered, as another program may have written it a moment ago. */
void delivery_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   store_read_taker take, store_answer answer, void *userdata);

/* delivery_load_json() - of a JSON file. Return: a new reference; NULL = the file is not what it was. */
json_t *delivery_load_json(const struct store_dir *d, const struct object *object);
