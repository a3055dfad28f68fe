/* Plan replicas: `remuda plan split --replicas`: the input of plan_split.h -> the problem of replicas.h, and
 * its plan -> JSON or a table, beside data and pipeline alone. In memory only. */
#pragma once

#include "planner/splits/plan_split.h"
#include "planner/splits/replicas.h"

/* plan_replicas() - @count: pipelines that are wanted; 0 = as many as are best
 * Return: 0 and *ret (replicas_plan_free()), whose workers are the devices, class by class; PIPELINE_NO_FIT;
 * -EINVAL (too many layers or devices, a schedule without gradients), -ENOMEM; and *err. */
int plan_replicas(const struct plan_split_input *input, size_t count, struct replicas_plan *ret,
                  struct err *err);

/* plan_replicas_encode() - a new reference, or NULL without memory; plan_replicas_table() - for people. */
json_t *plan_replicas_encode(const struct plan_split_input *input, const struct replicas_plan *plan,
                             double planning_ms);
void plan_replicas_table(const struct plan_split_input *input, const struct replicas_plan *plan,
                         double planning_ms, struct text *out);
