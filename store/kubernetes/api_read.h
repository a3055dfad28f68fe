/* API read: one object, asked of the API server (store/store_read.h). */
#pragma once

#include "store/store_internal.h"

void api_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
              store_read_taker take, store_answer answer, void *userdata);
