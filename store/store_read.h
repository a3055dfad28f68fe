/* Store read: one object as it is now, whether its kind is watched or not. */
#pragma once

#include "store/store.h"

/* Called once at most, from the loop or the call itself, before the answer; the object is borrowed. */
typedef void (*store_read_taker)(void *userdata, const json_t *object);

/* store_read() - kubernetes: asked of the API server, again for 20 s at most where it fails; dir: what the
 * file of its name holds (that which store_put() writes), else the object that was delivered. The answer is
 * -ENOENT where there is none. */
void store_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                store_read_taker take, store_answer answer, void *userdata);
