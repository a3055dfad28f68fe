/* Delivery: an object told to the store's user as what it is by now: bound, evicted, patched, deleted. */
#pragma once

#include "store/directory/store_dir.h"

void delivery_send(struct store_dir *d, struct object *object, json_t *json);
void delivery_gone(struct store_dir *d, struct object *object);

/* delivery_again() - its bytes are read again; a file that has changed is queued. */
void delivery_again(struct store_dir *d, struct object *object);

/* delivery_load_json() - of a JSON file. Return: a new reference; NULL = the file is not what it was. */
json_t *delivery_load_json(const struct store_dir *d, const struct object *object);
