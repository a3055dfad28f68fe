/* Plan reshard: the files of `remuda plan reshard`, in memory.
 *
 * In:  {"plan": what `plan shards` or `plan reshard` answered, "position": samples of the epoch that are
 * used, "cost_ms", "measured": [{"name", "step_ms" | "gone": true | as a worker of plan shards}]} Out:
 * {"decision": "keep" | "change", "reason", "position", "remaining", "current_step_ms", "new_step_ms",
 *       "gain_ms", "cost_ms", "batch", "workers": [{"name", "batch", "weight", "step_ms", "used", "ranges"}]}
 *
 * Pure. Names are borrowed from the JSON, which must outlive the request. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "planner/shards/reshard.h"

struct plan_reshard_request {
        struct reshard_request reshard;
        struct reshard_worker *workers;    /* [count] */
        struct sample_ranges *used_before; /* [count] with plans before the one in force */
        const char **names;                /* [count] */
        size_t count;
        uint64_t position;
};

int plan_reshard_request_decode(const json_t *json, struct plan_reshard_request *ret, struct err *err);
void plan_reshard_request_free(struct plan_reshard_request *request);

void plan_reshard_answer_json(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                              struct text *out);
void plan_reshard_answer_table(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                               struct text *out);
