/* Stages as Python and as options. */
#include "job/plan/stages/launch_stages.h"

#include <errno.h>
#include <inttypes.h>

#include "base/json/json_writer.h"

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

int launch_stages_pipelining(const struct launch_world *world, struct text *out, struct err *err)
{
        int r = need_stages(world, err);

        if (r < 0)
                return r;
        text_append(out, "# torch.distributed.pipelining, torch 2.4 and later: rank i is stage i\n"
                         "from torch.distributed.pipelining import SplitPoint\n"
                         "layers_per_stage = [");
        for (size_t i = 0; i < world->count; i++)
                text_printf(out, "%s%" PRIu64, i == 0 ? "" : ", ",
                            layers_of(world, i)[1] - layers_of(world, i)[0] + 1);
        text_append(out, "]\nsplit_spec = {");
        for (size_t i = 1; i < world->count; i++) {
                uint64_t first = layers_of(world, i)[0];

                if (world->profile == NULL || world->profile->layers[first].name[0] == '\0')
                        return err_set(err, -EINVAL,
                                       "layer %" PRIu64
                                       " of the profile has no name; name it as the module in "
                                       "the model",
                                       first);
                text_append(out, i == 1 ? "" : ", ");
                json_writer_append_string(out, world->profile->layers[first].name);
                text_append(out, ": SplitPoint.BEGINNING");
        }
        text_printf(out, "}\nn_microbatches = %" PRIu64 "\n", world->microbatches);
        return 0;
}

int launch_stages_megatron(const struct launch_world *world, struct text *out, struct err *err)
{
        uint64_t last;
        int r = need_stages(world, err);

        if (r < 0)
                return r;
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
