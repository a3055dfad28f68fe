/* API writes: the changing half of a backend (store/store_internal.h) at an API server. Each is one
 * operation. */
#pragma once

#include "store/store_internal.h"

void api_writes_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                     void *userdata);
/* api_writes_put() - the object itself is written before its status where it says whose it is
 * (metadata.ownerReferences); an API server that takes that from nobody who may not delete the object gets it
 * without. Of a Lease the answer is API_WRITES_MADE when there was none. */
enum { API_WRITES_MADE = 1 };
void api_writes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                    const json_t *object, store_answer answer, void *userdata);
void api_writes_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       store_changer change, store_answer answer, void *userdata);
void api_writes_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const json_t *patch, store_answer answer, void *userdata);
void api_writes_create(struct store *store, enum store_kind kind, const char *namespace_,
                       const json_t *object, store_answer answer, void *userdata);
void api_writes_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       const char *uid, unsigned grace_sec, store_answer answer, void *userdata);
void api_writes_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                      unsigned grace_sec, store_answer answer, void *userdata);
void api_writes_try_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                          store_answer answer, void *userdata);
