/* Quotes words, writes a rank's environment, and finds its place on its node. */
#include "job/plan/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/json/json_writer.h"

void launch_quote(struct text *out, const char *word)
{
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";

        if (*word != '\0' && word[strspn(word, plain)] == '\0') {
                text_append(out, word);
                return;
        }
        text_append_char(out, '\'');
        for (; *word != '\0'; word++) {
                if (*word == '\'')
                        text_append(out, "'\\''");
                else
                        text_append_char(out, *word);
        }
        text_append_char(out, '\'');
}

static void variable(struct text *out, const char *name, const char *value)
{
        if (out->size_bytes > 0 && out->data[out->size_bytes - 1] != '\n' &&
            out->data[out->size_bytes - 1] != ' ')
                text_append_char(out, ' ');
        text_printf(out, "%s=", name);
        if (*value != '\0')
                launch_quote(out, value);
}

static void number(struct text *out, const char *name, uint64_t value)
{
        char digits[24];

        (void) text_format(digits, sizeof(digits), "%" PRIu64, value);
        variable(out, name, digits);
}

static void torch_variables(const struct launch_world *world, size_t rank, struct text *out)
{
        struct launch_place place = launch_place_of(world, rank);

        variable(out, "MASTER_ADDR", world->ranks[0].address);
        number(out, "MASTER_PORT", world->port);
        number(out, "RANK", rank);
        number(out, "WORLD_SIZE", world->count);
        number(out, "LOCAL_RANK", place.local_rank);
        number(out, "LOCAL_WORLD_SIZE", place.local_size);
        number(out, "GROUP_RANK", place.node_index);
        number(out, "GROUP_WORLD_SIZE", place.node_count);
        number(out, "ROLE_RANK", rank);
        number(out, "ROLE_WORLD_SIZE", world->count);
        variable(out, "TORCHELASTIC_RUN_ID", world->job);
        number(out, "TORCHELASTIC_RESTART_COUNT", 0);
        number(out, "TORCHELASTIC_MAX_RESTARTS", 0);
}

void launch_environment(const struct launch_world *world, size_t index, bool torch, struct text *out)
{
        const struct launch_rank *rank = &world->ranks[index];
        const char *visible = vendor_program_variable(rank->runtime);
        struct text weight = { 0 };
        char shard[48];

        if (torch)
                torch_variables(world, index, out);
        if (visible != NULL)
                number(out, visible, rank->device_index);
        variable(out, "REMUDA_JOB", world->job);
        variable(out, "REMUDA_ROLE", rank->server ? "server" : "worker");
        variable(out, "REMUDA_VENDOR", rank->vendor);
        variable(out, "REMUDA_DEVICES", rank->device);
        json_writer_append_double(&weight, rank->weight);
        variable(out, "REMUDA_WEIGHT", weight.data != NULL ? weight.data : "0");
        text_free(&weight);
        number(out, "REMUDA_BATCH", rank->batch);
        if (world->epoch_known) {
                (void) text_format(shard, sizeof(shard), "%" PRIu64 ":%" PRIu64, rank->begin, rank->end);
                variable(out, "REMUDA_SHARD", shard);
        }
}

struct launch_place launch_place_of(const struct launch_world *world, size_t rank)
{
        struct launch_place place = { 0 };
        const char *node = NULL;

        for (size_t i = 0; i < world->count; i++) {
                if (node == NULL || strcmp(node, world->ranks[i].node) != 0) {
                        place.node_count++;
                        if (i <= rank)
                                place.node_index = place.node_count - 1;
                }
                node = world->ranks[i].node;
                if (strcmp(node, world->ranks[rank].node) == 0) {
                        place.local_rank += i < rank;
                        place.local_size++;
                }
        }
        return place;
}

int launch_need_commands(const struct launch_world *world, struct err *err)
{
        for (size_t i = 0; i < world->count; i++)
                if (world->ranks[i].command == NULL)
                        return err_set(
                                err, -EINVAL,
                                "no program for runtime '%s', which rank %zu needs; give it below the job's "
                                "`programs:`, or a table with --programs FILE",
                                world->ranks[i].runtime, i);
        return 0;
}

bool launch_same_command(const struct launch_rank *a, const struct launch_rank *b)
{
        size_t i = 0;

        while (a->command[i] != NULL && b->command[i] != NULL && strcmp(a->command[i], b->command[i]) == 0)
                i++;
        return a->command[i] == NULL && b->command[i] == NULL;
}
