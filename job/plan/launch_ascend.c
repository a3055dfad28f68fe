/* Rank tables, HCCL segment lists and FlagScale files: what Ascend jobs are started with. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "job/plan/launch_lines.h"
#include "planner/shards/shards.h"

#define HCCL_MAX_SEGMENTS 8
#define TYPES_MAX         64

static bool is_ascend(const struct launch_rank *rank)
{
        return strcmp(rank->runtime, "cann") == 0 && !rank->server;
}

static void number_as_string(struct json_writer *json, const char *key, uint64_t value)
{
        char digits[24];

        (void) text_format(digits, sizeof(digits), "%" PRIu64, value);
        json_write_string(json, key, digits);
}

static void write_server(struct json_writer *json, const struct launch_world *world, size_t first,
                         uint64_t *rank_id)
{
        const char *node = world->ranks[first].node;

        json_write_open(json, NULL, '{');
        json_write_string(json, "server_id", world->ranks[first].address);
        json_write_open(json, "device", '[');
        for (size_t i = first; i < world->count; i++) {
                const struct launch_rank *rank = &world->ranks[i];

                if (strcmp(rank->node, node) != 0 || !is_ascend(rank))
                        continue;
                json_write_open(json, NULL, '{');
                number_as_string(json, "device_id", rank->device_index);
                if (rank->device_ip != NULL)
                        json_write_string(json, "device_ip", rank->device_ip);
                number_as_string(json, "rank_id", (*rank_id)++);
                json_write_close(json, '}');
        }
        json_write_close(json, ']');
        json_write_string(json, "host_nic_ip", "reserve");
        json_write_close(json, '}');
}

/* Is this the first Ascend rank of its node? */
static bool begins_server(const struct launch_world *world, size_t rank)
{
        if (!is_ascend(&world->ranks[rank]))
                return false;
        for (size_t i = 0; i < rank; i++)
                if (is_ascend(&world->ranks[i]) && strcmp(world->ranks[i].node, world->ranks[rank].node) == 0)
                        return false;
        return true;
}

/* Rank table 1.0: the job's Ascend chips, numbered among themselves, since HCCL knows no others. */
int launch_ranktable(const struct launch_world *world, struct text *out, struct err *err)
{
        struct json_writer json = { .text = out };
        uint64_t servers = 0, rank_id = 0;

        for (size_t i = 0; i < world->count; i++)
                servers += begins_server(world, i);
        if (servers == 0)
                return err_set(
                        err, -EINVAL,
                        "no rank of the job is on an Ascend chip (runtime cann); a rank table lists those");
        json_write_open(&json, NULL, '{');
        json_write_string(&json, "version", "1.0");
        number_as_string(&json, "server_count", servers);
        json_write_open(&json, "server_list", '[');
        for (size_t i = 0; i < world->count; i++)
                if (begins_server(world, i))
                        write_server(&json, world, i, &rank_id);
        json_write_close(&json, ']');
        json_write_string(&json, "status", "completed");
        json_write_close(&json, '}');
        return 0;
}

int launch_hccl(const struct launch_world *world, struct text *out, struct err *err)
{
        if (world->segment_count == 0)
                return err_set(
                        err, -EINVAL,
                        "the job says no segments; give them as `segments: [20, 100, 159]`, or the answer of "
                        "`remuda plan segments` with --segments FILE");
        if (world->segment_count > HCCL_MAX_SEGMENTS)
                return err_set(err, -EINVAL,
                               "%zu segments are more than the %d that HCCL takes; plan with max_segments %d",
                               world->segment_count, HCCL_MAX_SEGMENTS, HCCL_MAX_SEGMENTS);
        text_append(out, "from hccl.split.api import set_split_strategy_by_idx\nset_split_strategy_by_idx([");
        for (size_t i = 0; i < world->segment_count; i++)
                text_printf(out, "%s%" PRIu64, i > 0 ? ", " : "", world->segments[i]);
        text_append(out, "])\n");
        return 0;
}

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
        json_write_open(&json, NULL, '[');
        for (size_t t = 0; t < count; t++)
                json_write_string(&json, NULL, types[t].model);
        json_write_close(&json, ']');
        text_append(out, "\nhetero_current_device_type: ");
        json.follows = false;
        json_write_string(&json, NULL, types[0].model);
        text_append_char(out, '\n');
        return 0;
}
