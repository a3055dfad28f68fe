/* The way to the backend, which reads. */
#include "store/store_read.h"

#include "store/store_internal.h"

void store_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                store_read_taker take, store_answer answer, void *userdata)
{
        store->backend->read(store, kind, namespace_, name, take, answer, userdata);
}
