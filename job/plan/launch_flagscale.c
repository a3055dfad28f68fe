/* Kinds of device become pipeline stages, layers shared by speed. */
#include "job/plan/launch_flagscale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "planner/shards/shards.h"

#define TYPES_MAX 64

/* A kind of device: its ranks run data-parallel, and the kinds follow each other as pipeline stages. */
struct device_type {
        const char *model;
        uint64_t count, layers;
        double speed;
};

static size_t collect_types(const struct launch_world *world, struct device_type types[TYPES_MAX])
{
        size_t count = 0;

        for (size_t i = 0; i < world->count; i++) {
                const struct launch_rank *rank = &world->ranks[i];
                const char *model = rank->model[0] != '\0' ? rank->model : rank->runtime;
                size_t t = 0;

                if (rank->server)
                        continue;
                while (t < count && strcmp(types[t].model, model) != 0)
                        t++;
                if (t == TYPES_MAX)
                        return 0;
                if (t == count)
                        types[count++] = (struct device_type){ .model = model };
                types[t].count++;
                types[t].speed += rank->speed > 0 ? rank->speed : 1;
        }
        return count;
}

/* Layers to kinds by the shard planner: one at least, the rest by speed. */
static int share_layers(struct device_type *types, size_t count, uint64_t layers, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(count, sizeof(*shards));
        struct shards_plan plan;
        int r = 0;

        if (workers == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu kinds", count);
        if (layers < count)
                return err_set(err, -EINVAL,
                               "--layers %" PRIu64 ": fewer than the %zu kinds of device; give more", layers,
                               count);
        for (size_t t = 0; t < count; t++)
                workers[t] = (struct shard_worker){ .model = SHARD_AFFINE,
                                                    .alpha_ms = 1000 / types[t].speed,
                                                    .beta_ms = 1000 / types[t].speed };
        if (layers > count)
                r = shards_plan(workers, count, layers - count, shards, &plan, err);
        for (size_t t = 0; r == 0 && t < count; t++)
                types[t].layers = 1 + shards[t].batch;
        return r;
}

int launch_flagscale(const struct launch_world *world, struct text *out, struct err *err)
{
        struct device_type types[TYPES_MAX];
        struct json_writer json = { .text = out, .depth = 3 }; /* a list on one line is YAML, too */
        size_t count = collect_types(world, types);
        int r;

        if (count == 0)
                return err_set(err, -EINVAL, "the job has no workers, or more than %d kinds of device",
                               TYPES_MAX);
        r = share_layers(types, count, world->layers, err);
        if (r < 0)
                return r;
        text_printf(
                out,
                "# %s: each kind of device is a pipeline stage, data-parallel within; %" PRIu64
                " layers (--layers) by speed.\n# hetero_current_device_type differs by node, set it there.\n",
                world->job, world->layers);
        text_append(out, "hetero_pipeline_layer_split: [");
        for (size_t t = 0; t < count; t++)
                text_printf(out, "%s%" PRIu64, t > 0 ? ", " : "", types[t].layers);
        text_append(out, "]\nhetero_process_meshes: [");
        for (size_t t = 0; t < count; t++) /* tp, cp, ep, dp, pp */
                text_printf(out, "%s1, 1, 1, %" PRIu64 ", 1", t > 0 ? ", " : "", types[t].count);
        text_append(out, "]\nhetero_device_types: ");
        json_writer_open(&json, NULL, '[');
        for (size_t t = 0; t < count; t++)
                json_writer_string(&json, NULL, types[t].model);
        json_writer_close(&json, ']');
        text_append(out, "\nhetero_current_device_type: ");
        json.follows = false;
        json_writer_string(&json, NULL, types[0].model);
        text_append_char(out, '\n');
        return 0;
}
