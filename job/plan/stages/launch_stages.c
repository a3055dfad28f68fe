/* Stages as Python and as options. */
#include "job/plan/stages/launch_stages.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json/json_writer.h"
#include "planner/splits/pipeline.h"

static int need_stages(const struct launch_world *world, struct err *err)
{
        for (size_t i = 0; i < world->count; i++)
                if (world->ranks[i].layers == NULL)
                        return err_set(
                                err, -EINVAL,
                                "rank %zu has no layers; write strategy: split, and give spec.profile or "
                                "--profile FILE",
                                i);
        return 0;
}

static const uint64_t *layers_of(const struct launch_world *world, size_t rank)
{
        return world->ranks[rank].layers;
}

/* The layer by the name that split_spec has, which must be no other's: of two torch takes one. */
static int need_name(const struct job_split_profile *profile, uint64_t layer, struct err *err)
{
        const char *name = profile == NULL ? "" : profile->layers[layer].name;

        if (name[0] == '\0')
                return err_set(err, -EINVAL,
                               "layer %" PRIu64
                               " of the profile has no name; name it as the module in the model",
                               layer);
        for (uint64_t i = 0; i < profile->layer_count; i++)
                if (i != layer && strcmp(profile->layers[i].name, name) == 0)
                        return err_set(err, -EINVAL,
                                       "layers %" PRIu64 " and %" PRIu64
                                       " of the profile are both named '%s'; name each as its module in "
                                       "the model",
                                       i < layer ? i : layer, i < layer ? layer : i, name);
        return 0;
}

/* The stages of one pipeline. @indent: of each line. */
static int add_pipelining(const struct launch_world *world, const struct launch_pipeline *of,
                          const char *indent, struct text *out, struct err *err)
{
        text_printf(out, "%slayers_per_stage = [", indent);
        for (size_t i = of->first; i < of->end; i++)
                text_printf(out, "%s%" PRIu64, i == of->first ? "" : ", ",
                            layers_of(world, i)[1] - layers_of(world, i)[0] + 1);
        text_printf(out, "]\n%ssplit_spec = {", indent);
        for (size_t i = of->first + 1; i < of->end; i++) {
                uint64_t first = layers_of(world, i)[0];

                if (need_name(world->profile, first, err) < 0)
                        return -EINVAL;
                text_append(out, i == of->first + 1 ? "" : ", ");
                json_writer_append_string(out, world->profile->layers[first].name);
                text_append(out, ": SplitPoint.BEGINNING");
        }
        text_append(out, "}\n");
        return 0;
}

/* Microbatches of the pipeline, in proportion to its samples. */
static uint64_t microbatches_of(const struct launch_world *world, const struct launch_pipeline *of)
{
        return of->count < 2 ? world->microbatches
                             : pipeline_microbatches(world->microbatches, of->batch, world->global_batch);
}

int launch_stages_pipelining(const struct launch_world *world, struct text *out, struct err *err)
{
        struct launch_pipeline of;
        int r = need_stages(world, err);

        if (r < 0)
                return r;
        of = launch_pipeline_of(world, 0);
        text_printf(out,
                    "# torch.distributed.pipelining, torch 2.4 and later: rank i is stage i%s\n"
                    "from torch.distributed.pipelining import SplitPoint\n",
                    of.count < 2 ? "" : " - first_rank of its pipeline");
        if (of.count < 2) {
                r = add_pipelining(world, &of, "", out, err);
                text_printf(out, "n_microbatches = %" PRIu64 "\n", world->microbatches);
                return r;
        }
        for (size_t i = 0; r == 0 && i < world->count; i = of.end) {
                of = launch_pipeline_of(world, i);
                text_printf(out,
                            "%s pipeline == %zu:  # REMUDA_PIPELINE; %" PRIu64 " samples of each batch\n",
                            of.index == 0 ? "if" : "elif", of.index, of.batch);
                text_printf(out, "    first_rank, stages = %zu, %zu\n", of.first, of.end - of.first);
                r = add_pipelining(world, &of, "    ", out, err);
                text_printf(out, "    n_microbatches = %" PRIu64 "\n", microbatches_of(world, &of));
        }
        return r;
}

int launch_stages_megatron(const struct launch_world *world, struct text *out, struct err *err)
{
        uint64_t last;
        int r = need_stages(world, err);

        if (r < 0)
                return r;
        if (launch_pipeline_of(world, 0).count > 1)
                return err_set(
                        err, -EINVAL,
                        "Megatron-Core cuts all of its pipelines alike; for it write no spec.replicas");
        last = layers_of(world, world->count - 1)[1];
        if (last < 2)
                return err_set(err, -EINVAL,
                               "%" PRIu64
                               " layers are no embedding, transformer layers and loss; give a profile "
                               "of them",
                               last + 1);
        text_printf(out,
                    "# Megatron-Core: --num-layers %" PRIu64
                    " --pipeline-model-parallel-size %zu --pipeline-model-parallel-layout ",
                    last - 1, world->count);
        text_append_char(out, '\'');
        for (size_t i = 0; i < world->count; i++) {
                const uint64_t *own = layers_of(world, i);
                uint64_t middle = own[1] - own[0] + 1 - (own[0] == 0) - (own[1] == last);

                text_append(out, i == 0 ? "" : "|");
                text_append(out, own[0] == 0 ? "E" : "");
                if (middle > 0)
                        text_printf(out, "t*%" PRIu64, middle);
                text_append(out, own[1] == last ? (middle > 0 ? ",L" : "L") : "");
        }
        text_append(out, "'\n");
        return 0;
}
