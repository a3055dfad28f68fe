/* Plan split: the input of `remuda plan split` for chains -> struct chain_problem, and its plan -> JSON.
 *
 * In memory only. A struct plan_split_input owns what its problem points to. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "planner/splits/chain.h"

struct plan_split_input {
        struct chain_problem problem;
        struct chain_class *classes;
        char **types;   /* of each class */
        char **layers;  /* name of each layer */
        uint64_t *rows; /* of each layer: how many rows it can be divided into; 0 = not said */
        uint64_t *memory, *activation, *params, *held;
        unsigned *nodes;             /* of each class: devices of one number are on one node */
        double *inside_bytes_per_ms; /* of each class: of the link inside it; 0 = there is no other */
        double *ms;                  /* [class][layer] */
};

/* plan_split_input_decode() - the "layers" form, checked field by field.
 * Return: 0 and *ret (release with plan_split_input_free()), or -EBADMSG / -ENOMEM with the field and the
 * mend. */
int plan_split_input_decode(const json_t *object, struct plan_split_input *ret, struct err *err);
void plan_split_input_free(struct plan_split_input *input); /* accepts a zeroed one */

/* plan_split_encode() - the plan with its baselines. A new reference, or NULL when out of memory. */
json_t *plan_split_encode(const struct plan_split_input *input, const struct chain_plan *plan,
                          double planning_ms);

void plan_split_table(const struct plan_split_input *input, const struct chain_plan *plan, double planning_ms,
                      struct text *out); /* the same for people */

/* plan_split_rows() - one huge layer's rows over every device that can hold some, by the shard planner.
 * Return: 0 and a new reference; -ENOENT (no such layer), -EINVAL (it has no rows), -ERANGE (does not fit).
 */
int plan_split_rows(const struct plan_split_input *input, const char *layer, json_t **ret, struct err *err);
