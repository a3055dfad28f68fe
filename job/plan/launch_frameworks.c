/* Sets the variables of each framework for a rank, and writes HCCL's rank table. */
#include "job/plan/launch_frameworks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/launch_ascend.h"

static void set(json_t *environment, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void set(json_t *environment, const char *name, const char *fmt, ...)
{
        CLEANUP(free_p) char *value = NULL;
        va_list values;

        va_start(values, fmt);
        if (vasprintf(&value, fmt, values) < 0)
                value = NULL;
        va_end(values);
        (void) json_object_set_new(environment, name, json_string(value == NULL ? "" : value));
}

static bool is_ascend(const struct launch_rank *rank)
{
        return strcmp(rank->runtime, "cann") == 0 && !rank->server;
}

static bool any_ascend(const struct launch_world *world)
{
        for (size_t i = 0; i < world->count; i++)
                if (is_ascend(&world->ranks[i]))
                        return true;
        return false;
}

static void add_ascend(const struct launch_world *world, size_t rank, const char *rank_table,
                       json_t *environment)
{
        bool some = any_ascend(world);
        size_t id = 0, size = 0;

        if (some && !is_ascend(&world->ranks[rank])) /* it has no part in HCCL */
                return;
        for (size_t i = 0; i < world->count; i++)
                if (some ? is_ascend(&world->ranks[i]) : !world->ranks[i].server) {
                        id += i < rank;
                        size++;
                }
        set(environment, "RANK_ID", "%zu", id);
        set(environment, "RANK_SIZE", "%zu", size);
        set(environment, "DEVICE_ID", "%u", world->ranks[rank].device_index);
        if (rank_table != NULL)
                set(environment, "RANK_TABLE_FILE", "%s", rank_table);
}

/* Workers are counted without the servers, those of this node, too. */
static void add_mindspore(const struct launch_world *world, size_t rank, const struct launch_place *place,
                          json_t *environment)
{
        size_t servers = 0, local = 0;

        for (size_t i = 0; i < world->count; i++) {
                servers += world->ranks[i].server;
                local +=
                        !world->ranks[i].server && strcmp(world->ranks[i].node, world->ranks[rank].node) == 0;
        }
        set(environment, "MS_WORKER_NUM", "%zu", world->count - servers);
        set(environment, "MS_SERVER_NUM", "%zu", servers);
        set(environment, "MS_LOCAL_WORKER", "%zu", local);
        set(environment, "MS_SCHED_HOST", "%s", world->ranks[0].address);
        set(environment, "MS_SCHED_PORT", "%u", world->port);
        set(environment, "MS_ROLE", "%s", world->ranks[rank].server ? "MS_PSERVER" : "MS_WORKER");
        set(environment, "MS_NODE_ID", "%zu", rank);
        set(environment, "MS_NODE_RANK", "%zu", place->node_index);
}

static void add_endpoint(const struct launch_rank *rank, unsigned port, struct text *list)
{
        text_printf(list, strchr(rank->address, ':') == NULL ? "%s%s:%u" : "%s[%s]:%u",
                    list->size_bytes == 0 ? "" : ",", rank->address, port);
}

/* Collective programs number all ranks. With parameter servers Paddle counts each role by itself, and finds a
 * process by its POD_IP:PADDLE_PORT in the lists. */
static void add_paddle(const struct launch_world *world, size_t rank, const struct launch_place *place,
                       json_t *environment)
{
        const struct launch_rank *self = &world->ranks[rank];
        struct text lists[2] = { { 0 }, { 0 } }, own = { 0 }; /* of workers, of servers */
        size_t counts[2] = { 0 }, id = 0;
        unsigned local = 0;

        for (size_t i = 0; i < world->count; i++) { /* ranks of a node follow each other */
                const struct launch_rank *other = &world->ranks[i];

                local = i > 0 && strcmp(world->ranks[i - 1].node, other->node) == 0 ? local + 1 : 1;
                add_endpoint(other, world->port + local, &lists[other->server]);
                counts[other->server]++;
                id += i < rank && other->server == self->server;
        }
        add_endpoint(self, world->port + 1 + (unsigned) place->local_rank, &own);
        set(environment, "PADDLE_TRAINER_ID", "%zu", id);
        set(environment, "PADDLE_TRAINERS_NUM", "%zu", counts[0]);
        set(environment, "PADDLE_TRAINER_ENDPOINTS", "%s", lists[0].data == NULL ? "" : lists[0].data);
        if (counts[1] > 0)
                set(environment, "PADDLE_PSERVERS_IP_PORT_LIST", "%s",
                    lists[1].data == NULL ? "" : lists[1].data);
        set(environment, "PADDLE_CURRENT_ENDPOINT", "%s", own.data == NULL ? "" : own.data);
        set(environment, "POD_IP", "%s", self->address);
        set(environment, "PADDLE_PORT", "%zu", world->port + 1 + place->local_rank);
        set(environment, "PADDLE_RANK_IN_NODE", "%zu", place->local_rank);
        set(environment, "PADDLE_LOCAL_SIZE", "%zu", place->local_size);
        set(environment, "PADDLE_GLOBAL_SIZE", "%zu", world->count);
        set(environment, "TRAINING_ROLE", "%s", self->server ? "PSERVER" : "TRAINER");
        text_free(&lists[0]);
        text_free(&lists[1]);
        text_free(&own);
}

void launch_frameworks_add(const struct launch_world *world, size_t rank, const char *rank_table,
                           json_t *environment)
{
        struct launch_place place = launch_place_of(world, rank);

        set(environment, "RANK", "%zu", rank);
        set(environment, "WORLD_SIZE", "%zu", world->count);
        set(environment, "LOCAL_RANK", "%zu", place.local_rank);
        set(environment, "LOCAL_WORLD_SIZE", "%zu", place.local_size);
        set(environment, "MASTER_ADDR", "%s", world->ranks[0].address);
        set(environment, "MASTER_PORT", "%u", world->port);
        set(environment, "GROUP_RANK", "%zu", place.node_index);
        set(environment, "GROUP_WORLD_SIZE", "%zu", place.node_count);
        set(environment, "ROLE_NAME", "default");
        set(environment, "ROLE_RANK", "%zu", rank);
        set(environment, "ROLE_WORLD_SIZE", "%zu", world->count);
        add_ascend(world, rank, rank_table, environment);
        add_mindspore(world, rank, &place, environment);
        add_paddle(world, rank, &place, environment);
}

int launch_frameworks_table(const struct launch_world *world, struct text *out, struct err *err)
{
        CLEANUP(free_p) struct launch_rank *ranks = calloc(world->count + 1, sizeof(*ranks));
        struct launch_world as_ascend = *world;

        if (any_ascend(world))
                return launch_ascend_ranktable(world, out, err);
        if (ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for a rank table");
        memcpy(ranks, world->ranks, world->count * sizeof(*ranks));
        for (size_t i = 0; i < world->count; i++)
                ranks[i].runtime = "cann";
        as_ascend.ranks = ranks;
        return launch_ascend_ranktable(&as_ascend, out, err);
}
