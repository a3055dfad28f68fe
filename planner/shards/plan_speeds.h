/* Plan speeds: workers of a `remuda plan shards` file that name a device instead of a speed get theirs from a
 * SpeedTable.
 *
 *      {"name": "a", "device": "H100-SXM5-80GB", "program": SHA256, "shared_by": 2}
 *
 * becomes {"name": "a", "alpha_ms", "beta_ms", "source": "table"}; "program" and "shared_by" may be left out.
 * A device that the table does not have is taken for the mean of those it has (of one speed if it has none),
 * "assumed"; a speed that stands in the file is the caller's, "measured". Pure. */
#pragma once

#include <jansson.h>

#include "planner/speeds/speed_table.h"

/* plan_speeds_fill() - rewrite the workers of @request in place, also those in groups. What is not understood
 * is left for plan_shards_request_decode() to refuse. @model: of the job. Return: 0; -EBADMSG with the field;
 * -ENOMEM. */
int plan_speeds_fill(json_t *request, const struct speed_table *table, const char *model, struct err *err);
