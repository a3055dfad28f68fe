/* What both levels of a subtask read and cut with; shared by subtask.c and subtask_cut.c and by nobody else.
 */
#pragma once

#include "job/launcher/subtask.h"

/* subtask_read_uint() - a field that must be there. 0 or -EINVAL. */
int subtask_read_uint(const json_t *object, const char *name, uint64_t min, uint64_t max, uint64_t *ret,
                      struct err *err);

/* subtask_read_optional() - one that may be left out: *ret then keeps what it holds. */
int subtask_read_optional(const json_t *object, const char *name, uint64_t max, uint64_t *ret,
                          struct err *err);

struct shard;

/* subtask_share() - the exact cut of a batch by speeds. */
int subtask_share(const double *speeds, size_t count, uint64_t batch, struct shard *shards, struct err *err);
