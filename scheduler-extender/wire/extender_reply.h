/* Extender reply: the answers of the scheduler extender protocol (v1), malloc'd; the caller frees; NULL when
 * out of memory. Names and Node objects are echoed as they came. In memory only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/wire/extender_args.h"

/* extender_reply_filter() - ExtenderFilterResult: nodes whose verdict is REASON_NONE pass. With `error` no
 * node is told of. */
char *extender_reply_filter(const struct extender_args *args, const char *error, size_t *ret_bytes);

/* extender_reply_prioritize() - HostPriorityList; @scores: 0..10 of each node. */
char *extender_reply_prioritize(const struct extender_args *args, const uint8_t *scores, size_t *ret_bytes);

/* extender_reply_bind() - ExtenderBindingResult; "" = bound. */
char *extender_reply_bind(const char *error, size_t *ret_bytes);
