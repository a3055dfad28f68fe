/* Stages: which layers of a split model each rank holds (--stages, REMUDA_LAYERS of each rank, or equal
 * numbers), and which ranks are a pipeline (trainer/strategies/pipelines.h). */
#pragma once

#include "trainer/training.h"

/* stages_collect() - collective, before the batch is cut: the layers of every rank, if anybody said them,
 * into t->pipelines. Nothing to do where the strategy does not split. Return: 0 or -EINVAL, the same on every
 * rank. */
int stages_collect(struct training *t, struct err *err);

/* stages_resolve() - collective, with the model's shape known: the part of every rank into t->stages and of
 * this one into t->part. Nothing to do where the model is not split. Return: as stages_collect(). */
int stages_resolve(struct training *t, struct err *err);

/* stages_part() - of the model, those layers, both included. */
struct training_part stages_part(const struct model *m, uint64_t first, uint64_t last);
