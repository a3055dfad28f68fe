/* Manager: the side of a job over several device groups that decides. Shared by the manager*.c files alone.
 *
 *      wait for the groups -> cut -> tell each its part -> mpirun -> judge -> end, or stop all and begin
 * again
 *
 * manager.c: life. manager_members.c: the groups, their messages, mpirun's agents. manager_world.c: one
 * world. manager_repair.c: who fails, hangs or is slow, and what follows. manager_state.c: what people are
 * told. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "io/grpc/grpc_server.h"
#include "job/launcher/rendezvous.h"
#include "job/launcher/subtask.h"
#include "job/world/progress.h"

#define ORDERS_MAX    8      /* that wait for one group */
#define FAREWELL_USEC 500000 /* for the last orders to be read */
#define STOP_SECONDS  15     /* a group that does not stop in so long is lost */
#define MEMBER_EVENTS 200    /* the latest; older ones are dropped */
/* A silent group is given up 10 to 15 s after its last word; it has killed what it ran after 9 (group.c). */
#define MANAGER_KEEPALIVE_USEC         5000000
#define MANAGER_KEEPALIVE_TIMEOUT_USEC 10000000

enum manager_state {
        MANAGER_WAITING,    /* for the groups of the first world */
        MANAGER_STARTING,   /* they are told their parts */
        MANAGER_RUNNING,    /* mpirun runs */
        MANAGER_RESTARTING, /* a fault: all is being stopped, lost groups may come back */
        MANAGER_SUCCEEDED,
        MANAGER_FAILED,
        MANAGER_CANCELLED
};

struct waiting_order {
        uint8_t *bytes;
        size_t size;
};

struct manager;

struct member {
        struct manager *manager;
        Subtask__Group *plan;
        struct grpc_call *join;  /* NULL = not there */
        struct grpc_call *start; /* mpirun's agent that waits for this group's daemon */
        struct waiting_order orders[ORDERS_MAX];
        size_t order_count;
        uint64_t subtask_order, start_order, stop_order; /* 0 = none is under way */
        bool ready, was_there, leaving;
        bool used_before;                      /* in the world that the fault ended */
        char program_sha256[SHA256_HEX_BYTES]; /* as it says; "" = not known */
};

struct manager_rank {
        struct member *member;
        struct progress_rank seen;
        uint32_t lines;
        uint64_t batch, restarts;
        bool started, ended, stopped;
        int exit_code;
        uint64_t ended_usec;
};

/* What became of the last world. reason "" = nothing yet. */
struct manager_fault {
        char reason[32], message[400];
        bool final;   /* it would happen again */
        bool reshard; /* none: the shares are cut anew */
        int exit_code;
};

struct manager {
        const struct rendezvous_options *options;
        struct rendezvous_loop loop;
        struct tls *tls;
        struct grpc_server *server;
        sd_event_source *deadline, *tick;
        char token[RENDEZVOUS_TOKEN_BYTES];
        char token_file[PATH_MAX], self[PATH_MAX], mpirun_path[PATH_MAX], folder[64], address[160];
        struct pb_arena plan_arena;
        Subtask__Plan *plan;
        struct member *members;
        struct manager_rank *ranks; /* plan->world_size of the world at hand */
        struct progress_rank *judged;
        size_t rank_count;
        struct progress progress;
        uint64_t last_order;
        pid_t mpirun; /* its supervisor; 0 = not running */
        enum manager_state state;
        struct manager_fault fault;
        uint64_t fault_usec, began_usec, world_began_usec, stopped_since_usec, stop_due_usec;
        uint64_t worlds, reshards, reshard_usec; /* worlds started here */
        bool evicting, cancelled, ending;
        double accuracy;
        bool has_accuracy;
        int exit_code;
        char reason[32], message[400], last_refusal[160];
        json_t *events;
};

uint64_t manager_now_usec(void); /* CLOCK_MONOTONIC */

/* manager.c */
void manager_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void manager_end(struct manager *manager, enum manager_state state, int exit_code, const char *reason,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void manager_set_deadline(struct manager *manager, uint64_t after_usec); /* manager_on_deadline() */

/* manager_members.c */
extern const struct grpc_method manager_methods[];
uint64_t member_order(struct member *member,
                      struct rendezvous_order *order); /* Return: its id, 0 = not given */
void member_forget_orders(struct member *member);
void manager_order_all(struct manager *manager, enum rendezvous_order_kind kind, int exit_code);

/* manager_world.c */
bool manager_all_ready(const struct manager *manager);
void manager_tell_parts(struct manager *manager); /* STARTING: each used group is told its part */
void manager_start_mpirun(struct manager *manager);
void manager_kill_mpirun(struct manager *manager);

/* manager_repair.c */
void manager_judge(struct manager *manager); /* RUNNING, a few times a second */
void manager_on_mpirun_end(struct manager *manager, int exit_code);
void manager_lose(struct member *member);         /* its connection has ended */
void manager_on_joined(struct manager *manager);  /* one more is there */
void manager_on_stopped(struct manager *manager); /* one more has stopped */
void manager_on_deadline(struct manager *manager);
void manager_evict(struct manager *manager, const struct member *member);

/* manager_state.c */
void manager_event(struct manager *manager, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
char *manager_state_text(const struct manager *manager,
                         size_t max_bytes); /* JSON; caller frees; NULL = no memory */
void manager_write_status(const struct manager *manager);
void manager_write_result(const struct manager *manager);
