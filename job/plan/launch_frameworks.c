/* Sets the variables of each framework for a rank, and writes HCCL's rank table. */
#include "job/plan/launch_frameworks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/launch_ascend.h"

static bool any_ascend(const struct launch_world *world)
{
        for (size_t i = 0; i < world->count; i++)
                if (launch_ascend_takes(&world->ranks[i]))
                        return true;
        return false;
}

static void add_ascend(const struct launch_world *world, size_t rank, const char *rank_table,
                       const struct launch_variables *to)
{
        bool some = any_ascend(world);
        size_t id = 0, size = 0;

        if (some && !launch_ascend_takes(&world->ranks[rank])) /* it has no part in HCCL */
                return;
        for (size_t i = 0; i < world->count; i++)
                if (some ? launch_ascend_takes(&world->ranks[i]) : !world->ranks[i].server) {
                        id += i < rank;
                        size++;
                }
        launch_variables_add(to, "RANK_ID", "%zu", id);
        launch_variables_add(to, "RANK_SIZE", "%zu", size);
        launch_variables_add(to, "DEVICE_ID", "%zu",
                             some ? world->ranks[rank].device_index
                                  : launch_place_of(world, rank).local_rank);
        if (rank_table != NULL)
                launch_variables_add(to, "RANK_TABLE_FILE", "%s", rank_table);
}

/* Workers are counted without the servers, those of this node, too. */
static void add_mindspore(const struct launch_world *world, size_t rank, const struct launch_place *place,
                          const struct launch_variables *to)
{
        size_t servers = 0, local = 0;

        for (size_t i = 0; i < world->count; i++) {
                servers += world->ranks[i].server;
                local +=
                        !world->ranks[i].server && strcmp(world->ranks[i].node, world->ranks[rank].node) == 0;
        }
        launch_variables_add(to, "MS_WORKER_NUM", "%zu", world->count - servers);
        launch_variables_add(to, "MS_SERVER_NUM", "%zu", servers);
        launch_variables_add(to, "MS_LOCAL_WORKER", "%zu", local);
        launch_variables_add(to, "MS_SCHED_HOST", "%s", world->ranks[0].address);
        launch_variables_add(to, "MS_SCHED_PORT", "%u", world->port);
        launch_variables_add(to, "MS_ROLE", "%s", world->ranks[rank].server ? "MS_PSERVER" : "MS_WORKER");
        launch_variables_add(to, "MS_NODE_ID", "%zu", rank);
        launch_variables_add(to, "MS_NODE_RANK", "%zu", place->node_index);
}

static void add_endpoint(const struct launch_rank *rank, unsigned port, struct text *list)
{
        text_printf(list, strchr(rank->address, ':') == NULL ? "%s%s:%u" : "%s[%s]:%u",
                    list->size_bytes == 0 ? "" : ",", rank->address, port);
}

/* Collective programs number all ranks. With parameter servers Paddle counts each role by itself, and finds a
 * process by its POD_IP:PADDLE_PORT in the lists. */
static void add_paddle(const struct launch_world *world, size_t rank, const struct launch_place *place,
                       const struct launch_variables *to)
{
        const struct launch_rank *self = &world->ranks[rank];
        struct text lists[2] = { { 0 }, { 0 } }, own = { 0 }; /* of workers, of servers */
        size_t counts[2] = { 0 }, id = 0;
        size_t local = 0;

        for (size_t i = 0; i < world->count; i++) {
                const struct launch_rank *other = &world->ranks[i];

                local = launch_local_rank(world, i, local);
                add_endpoint(other, world->port + 1 + (unsigned) local, &lists[other->server]);
                counts[other->server]++;
                id += i < rank && other->server == self->server;
        }
        add_endpoint(self, world->port + 1 + (unsigned) place->local_rank, &own);
        launch_variables_add(to, "PADDLE_TRAINER_ID", "%zu", id);
        launch_variables_add(to, "PADDLE_TRAINERS_NUM", "%zu", counts[0]);
        launch_variables_add(to, "PADDLE_TRAINER_ENDPOINTS", "%s",
                             lists[0].data == NULL ? "" : lists[0].data);
        if (counts[1] > 0)
                launch_variables_add(to, "PADDLE_PSERVERS_IP_PORT_LIST", "%s",
                                     lists[1].data == NULL ? "" : lists[1].data);
        launch_variables_add(to, "PADDLE_CURRENT_ENDPOINT", "%s", own.data == NULL ? "" : own.data);
        launch_variables_add(to, "POD_IP", "%s", self->address);
        launch_variables_add(to, "PADDLE_PORT", "%zu", world->port + 1 + place->local_rank);
        launch_variables_add(to, "PADDLE_RANK_IN_NODE", "%zu", place->local_rank);
        launch_variables_add(to, "PADDLE_LOCAL_SIZE", "%zu", place->local_size);
        launch_variables_add(to, "PADDLE_GLOBAL_SIZE", "%zu", world->count);
        launch_variables_add(to, "TRAINING_ROLE", "%s", self->server ? "PSERVER" : "TRAINER");
        text_free(&lists[0]);
        text_free(&lists[1]);
        text_free(&own);
}

void launch_frameworks_add(const struct launch_world *world, size_t rank, const char *rank_table,
                           const struct launch_variables *to)
{
        struct launch_place place = launch_place_of(world, rank);

        launch_variables_torch(world, rank, to);
        to->add(to->userdata, "ROLE_NAME", "default");
        add_ascend(world, rank, rank_table, to);
        add_mindspore(world, rank, &place, to);
        add_paddle(world, rank, &place, to);
}

int launch_frameworks_table(const struct launch_world *world, struct text *out, struct err *err)
{
        CLEANUP(free_p) struct launch_rank *ranks = calloc(world->count + 1, sizeof(*ranks));
        struct launch_world as_ascend = *world;
        size_t local = 0;

        if (any_ascend(world))
                return launch_ascend_ranktable(world, out, err);
        if (ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for a rank table");
        memcpy(ranks, world->ranks, world->count * sizeof(*ranks));
        for (size_t i = 0; i < world->count; i++) { /* as DEVICE_ID is for them */
                local = launch_local_rank(world, i, local);
                ranks[i].runtime = "cann";
                ranks[i].device_index = (unsigned) local;
        }
        as_ascend.ranks = ranks;
        return launch_ascend_ranktable(&as_ascend, out, err);
}
