/* Rendezvous: how the manager of a job and the launchers of its device groups find each other, over gRPC.
 *
 *      manager  --manage ADDR:PORT     serves; cuts the first level; runs mpirun
 *      group    --join ADDR:PORT       registers, takes its subtask, cuts the second level, runs mpirun's
 * daemon start    --start-on ADDR:PORT   mpirun's remote start agent: asks the manager to start a daemon on a
 * group
 *
 * Whoever calls the manager proves that he knows the job's token (job/launcher/trust/proof.h). A group runs
 * nothing but Open MPI's daemon (orted), and that runs remuda-launch, so that the group's own program table
 * still decides. If the manager goes, its groups end what they run; if a group goes, or a rank, the world is
 * formed anew (docs/reference/rendezvous.md). */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/log.h"
#include "job/launcher/message.h"
#include "job/launcher/trust/keys.h"

struct rendezvous_options {
        const struct log *log; /* what is said on standard error; not what ranks print */
        const char *address;   /* "10.0.0.1:7000" */
        const char *token_file;
        struct keys tls;
        const char *group, *runtime; /* of --join */
        const char *programs;        /* of --join: the group's program table */
        const char *plan;            /* of --manage: the subtasks (job/launcher/subtask.h) */
        const char *work_dir;        /* logs */
        const char *mpirun;
        unsigned chips;                         /* of --join */
        unsigned wait_seconds;                  /* until all groups are there; or until a manager is */
        unsigned rejoin_seconds, grace_seconds; /* of --join */
        const char *advertise;                  /* the numeric address that others reach this side at */
        const char *join_file;                  /* of --join: where the manager of the next world is told */
        bool log_lines;                         /* of --join: what the ranks print, too */
        const char *status, *result;            /* of --manage: files */
};

/* rendezvous_token() - the token's file, one line. 0, -ENOENT..., -EINVAL (empty, too long). */
int rendezvous_token(const char *path, char token[MESSAGE_TOKEN_BYTES], struct err *err);

/* rendezvous_loop() - a loop whose signals arrive as calls of on_signal(); SIGPIPE is ignored. */
struct rendezvous_loop {
        sd_event *event;
        sd_event_source *signals;
        int signal_fd;
        void (*on_signal)(void *userdata, int signal_number);
        void *userdata;
};
int rendezvous_loop_open(struct rendezvous_loop *loop, struct err *err);
void rendezvous_loop_close(struct rendezvous_loop *loop);
