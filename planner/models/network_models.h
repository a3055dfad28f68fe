/* Network models: the networks that are known by name, with the totals that their authors publish. Pure. */
#pragma once

#include <stdint.h>

#include "planner/models/network.h"

struct network_model {
        const char *name;               /* "resnet50" */
        const char *title;              /* "ResNet-50" */
        uint64_t published_parameters;  /* as its authors' or keepers' code counts them */
        double published_multiply_adds; /* forward, one sample of the published size; 0 = none known */
        double tolerance;               /* of the published multiply-adds: they are given rounded */
        uint64_t published_tokens;      /* the sequence that they are for; 0 = an image */
        uint64_t default_tokens;        /* 0 = an image model */
        const char *source;
};

extern const struct network_model network_models[]; /* ends with name == NULL */

/* network_model_find() - by name, whatever its case and '-', '_', '.', ' ': "ResNet-50". NULL = not shipped.
 */
const struct network_model *network_model_find(const char *name);

/* network_model_build() - @tokens: sequence length of a language model; ignored by the others.
 * Return: 0, and a network for network_free(); -EINVAL (tokens), -ENOMEM. */
int network_model_build(const struct network_model *model, uint64_t tokens, struct network *ret,
                        struct err *err);
