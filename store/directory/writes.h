/* Writes: the changing half of a backend (store/store_internal.h) in a directory, but for binds and
 * evictions. Each is done at once and answered from the loop. */
#pragma once

#include "store/directory/store_dir.h"

void writes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                const json_t *object, store_answer answer, void *userdata);
void writes_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   store_changer change, store_answer answer, void *userdata);
void writes_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  const json_t *patch, store_answer answer, void *userdata);
void writes_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                   store_answer answer, void *userdata);
void writes_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   const char *uid, unsigned grace_sec, store_answer answer, void *userdata);
void writes_event(struct store *store, const struct store_event *event);
int writes_touch(struct store *store, const char *node);
