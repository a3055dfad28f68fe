/* HCCL's rank table, and its list of segments. */
#include "job/plan/launch_ascend.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json/json_writer.h"
#include "planner/segments/segments.h"

bool launch_ascend_takes(const struct launch_rank *rank)
{
        return strcmp(rank->runtime, "cann") == 0 && !rank->server;
}

static void number_as_string(struct json_writer *json, const char *key, uint64_t value)
{
        char digits[24];

        (void) text_format(digits, sizeof(digits), "%" PRIu64, value);
        json_writer_string(json, key, digits);
}

static void write_server(struct json_writer *json, const struct launch_world *world, size_t first,
                         uint64_t *rank_id)
{
        const char *node = world->ranks[first].node;

        json_writer_open(json, NULL, '{');
        json_writer_string(json, "server_id", world->ranks[first].address);
        json_writer_open(json, "device", '[');
        for (size_t i = first; i < world->count; i++) {
                const struct launch_rank *rank = &world->ranks[i];

                if (strcmp(rank->node, node) != 0 || !launch_ascend_takes(rank))
                        continue;
                json_writer_open(json, NULL, '{');
                number_as_string(json, "device_id", rank->device_index);
                if (rank->device_ip != NULL)
                        json_writer_string(json, "device_ip", rank->device_ip);
                number_as_string(json, "rank_id", (*rank_id)++);
                json_writer_close(json, '}');
        }
        json_writer_close(json, ']');
        json_writer_string(json, "host_nic_ip", "reserve");
        json_writer_close(json, '}');
}

/* Is this the first Ascend rank of its node? */
static bool begins_server(const struct launch_world *world, size_t rank)
{
        if (!launch_ascend_takes(&world->ranks[rank]))
                return false;
        for (size_t i = 0; i < rank; i++)
                if (launch_ascend_takes(&world->ranks[i]) &&
                    strcmp(world->ranks[i].node, world->ranks[rank].node) == 0)
                        return false;
        return true;
}

/* Rank table 1.0: the job's Ascend chips, numbered among themselves, since HCCL knows no others. */
int launch_ascend_ranktable(const struct launch_world *world, struct text *out, struct err *err)
{
        struct json_writer json = { .text = out };
        uint64_t servers = 0, rank_id = 0;

        for (size_t i = 0; i < world->count; i++)
                servers += begins_server(world, i);
        if (servers == 0)
                return err_set(
                        err, -EINVAL,
                        "no rank of the job is on an Ascend chip (runtime cann); a rank table lists those");
        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "version", "1.0");
        number_as_string(&json, "server_count", servers);
        json_writer_open(&json, "server_list", '[');
        for (size_t i = 0; i < world->count; i++)
                if (begins_server(world, i))
                        write_server(&json, world, i, &rank_id);
        json_writer_close(&json, ']');
        json_writer_string(&json, "status", "completed");
        json_writer_close(&json, '}');
        return 0;
}

int launch_ascend_hccl(const struct launch_world *world, struct text *out, struct err *err)
{
        if (world->segment_count == 0)
                return err_set(
                        err, -EINVAL,
                        "the job says no segments; give them as `segments: [20, 100, 159]`, or the answer of "
                        "`remuda plan segments` with --segments FILE");
        if (world->segment_count > SEGMENTS_HCCL_MAX)
                return err_set(err, -EINVAL,
                               "%zu segments are more than the %d that HCCL takes; plan with max_segments %d",
                               world->segment_count, SEGMENTS_HCCL_MAX, SEGMENTS_HCCL_MAX);
        text_append(out, "from hccl.split.api import set_split_strategy_by_idx\nset_split_strategy_by_idx([");
        for (size_t i = 0; i < world->segment_count; i++)
                text_printf(out, "%s%" PRIu64, i > 0 ? ", " : "", world->segments[i]);
        text_append(out, "])\n");
        return 0;
}
