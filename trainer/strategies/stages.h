/* Stages: which layers of a split model each rank holds (--stages, REMUDA_LAYERS of each rank, or equal
 * numbers). */
#pragma once

#include "trainer/training.h"

#define STAGES_MAX MODEL_NODES_MAX

/* stages_resolve() - collective, with the model's shape known: the part of every rank into t->stages and of
 * this one into t->part. Nothing to do where the model is not split. Return: 0 or -EINVAL, the same on every
 * rank. */
int stages_resolve(struct training *t, struct err *err);
