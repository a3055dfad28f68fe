/* Manager: the side of a job over several device groups that starts and repairs it.
 *
 *      what the groups and mpirun do -> facts -> engine (engine.h) -> orders to the groups, mpirun
 *
 * Its parts: the groups and their messages (manager_members.h), one MPI world (manager_world.h), what people
 * are told (manager_state.h). */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "io/grpc/grpc_server.h"
#include "job/launcher/engine.h"
#include "job/launcher/subtask.h"
#include "job/launcher/trust/proof.h"
#include "job/stages/stage_ranks.h"

#define MANAGER_ORDERS_MAX 8 /* that wait for one group */
/* A silent group is given up 10 to 15 s after its last word; it has killed what it ran after 9 (group.c). */
#define MANAGER_KEEPALIVE_USEC         5000000
#define MANAGER_KEEPALIVE_TIMEOUT_USEC 10000000

struct manager_order {
        uint8_t *bytes;
        size_t size;
};

struct manager;

struct manager_member { /* a group; as the place of the same number the world knows it */
        struct manager *manager;
        Subtask__Group *plan;
        struct grpc_call *join;  /* NULL = not there */
        uint64_t connection;     /* that it joined over: it answers there, too */
        struct grpc_call *start; /* mpirun's agent that waits for this group's daemon */
        struct manager_order orders[MANAGER_ORDERS_MAX];
        size_t order_count;
        uint64_t subtask_order, start_order, stop_order; /* 0 = none is under way */
        bool was_there;
        char program_sha256[SHA256_HEX_BYTES]; /* as it says; "" = not known */
};

struct manager {
        const struct rendezvous_options *options;
        struct engine engine;
        struct tls *tls;
        struct grpc_server *server;
        char token[MESSAGE_TOKEN_BYTES];
        char nonces[SHA256_HEX_BYTES]; /* a key, of which each connection's nonce follows */
        char token_file[PATH_MAX], self[PATH_MAX], mpirun_path[PATH_MAX], folder[64], address[160];
        Subtask__Plan *plan;
        struct stat plan_file;      /* as it was when it was last read */
        struct pb_arena plan_arena; /* the plan's, and what is learnt of speeds */
        struct manager_member *members;
        struct world world;
        struct stage_ranks split; /* what its layers were planned with, as seen since */
        bool split_kept;          /* of later worlds, too: its layers have moved */
        uint64_t last_order;
        char last_refusal[160];
        json_t *events;
};

/* manager_run() - until the job is over. Return: an exit code (base/exit_code.h, or the program's own). */
int manager_run(const struct rendezvous_options *options);
