/* Launch stages: the stages of a split in the words of frameworks that carry pipelines out themselves. Rank i
 * is stage i of its pipeline, of which there may be several. Pure: text out. */
#pragma once

#include "job/plan/launch.h"

/* launch_stages_pipelining() - Python for torch.distributed.pipelining (torch 2.4 and later):
 * layers_per_stage, the split_spec of pipeline() by the profile's names of layers, n_microbatches; of several
 * pipelines by their number, with the first rank of each.
 * launch_stages_megatron() - options of Megatron-Core: --pipeline-model-parallel-size and -layout, in which
 * the model's first layer is the embedding (E), its last one the loss (L), those between are transformer
 * layers (t). Return: 0; -EINVAL where the job is no split, or its layers or their names are not known, or
 * several pipelines, for Megatron-Core, and *err. */
int launch_stages_pipelining(const struct launch_world *world, struct text *out, struct err *err);
int launch_stages_megatron(const struct launch_world *world, struct text *out, struct err *err);
