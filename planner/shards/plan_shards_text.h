/* Plan shards text: the answer of `remuda plan shards`, as JSON (plan_shards.h says which) and for people. In
 * memory. */
#pragma once

#include "base/text.h"
#include "planner/shards/plan_shards.h"

void plan_shards_text_json(const struct plan_shards_request *request, const struct plan_shards_answer *answer,
                           struct text *out);
void plan_shards_text_table(const struct plan_shards_request *request,
                            const struct plan_shards_answer *answer, struct text *out);
