/* Launch: a placed job as launchers see it, rank by rank, and what their lines have in common.
 *
 * Pure: text out, nothing is run. What goes to a shell is quoted word by word. A world borrows its strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "job/spec/job.h"

struct launch_rank {
        const char *node;      /* as the cluster calls it */
        const char *address;   /* where others reach it: the node's name unless said otherwise */
        const char *host;      /* whose link it shares with others; NULL = node */
        uint64_t network_mbps; /* of that link; 0 = not known */
        const char *runtime, *vendor, *model, *group, *device; /* device: its stable id */
        const char *pci;       /* its address, "0000:18:00.0"; NULL or "" = not known */
        unsigned device_index; /* on its node, among its vendor's */
        const char *visible;   /* what its runtime's visible-devices variable holds; NULL = device_index */
        const char *device_ip; /* Ascend: of the chip's own network; NULL = not known */
        bool server;
        uint64_t batch; /* of each global batch */
        double weight;
        double speed;               /* relative; 0 = not known */
        uint64_t begin, end;        /* of the epoch's samples; equal where the epoch is not known */
        const uint64_t *layers;     /* of a split: first and last of its own; NULL = not known */
        const char *const *command; /* ends with NULL; NULL where no program is known */
        struct launch_speed { /* of `remuda run`: what starts, and how long a step of b samples takes it */
                const char *program, *sha256, *source; /* source NULL = not known here, as all of it */
                const char *precision;                 /* of the figure; "" = of none that is known */
                double alpha_ms, beta_ms;              /* alpha + beta b, where it was measured; else 0 */
        } known;
};

struct launch_world {
        const char *job;
        const struct job *spec;          /* what it says beside; NULL = others tell the ranks */
        uint64_t global_batch;           /* 0 = there are no shares yet */
        const struct launch_rank *ranks; /* servers first; workers of a node follow each other */
        size_t count;
        bool epoch_known;
        uint64_t number, restarts, restart_max;  /* of the worlds of the job, from 1 on */
        unsigned port;                           /* of rank 0's node, for those who meet there */
        uint64_t layers;                         /* flagscale: of the model */
        const struct job_split_profile *profile; /* of a split; NULL = none */
        uint64_t microbatches;                   /* of a split */
        const uint64_t *segments;                /* hccl: indices of last tensors */
        size_t segment_count;
        const char *queue;  /* bsub */
        const char *levels; /* that ranks are proposed: "auto:4,4" (launch_levels.h); NULL = nothing */
};

/* launch_quote() - one word for a POSIX shell, quoted only where it must be. */
void launch_quote(struct text *out, const char *word);

/* launch_environment() - "NAME=value NAME=value" of a rank, quoted, no line end (launch_variables.h).
 * @torch: RANK, WORLD_SIZE and the others that a framework reads, too */
void launch_environment(const struct launch_world *world, size_t index, bool torch, struct text *out);

/* launch_environment_of_all() - the same of what all ranks have alike, for launchers that tell no more. */
void launch_environment_of_all(const struct launch_world *world, struct text *out);

struct launch_choice {
        size_t first, end;    /* ranks; all of them have a command */
        const char *node;     /* those of this one alone, counted from 0 and told their RANK; NULL = all */
        const char *variable; /* that tells a process which it is */
        bool torch;           /* as of launch_environment() */
        char gap;             /* between two ranks */
};

/* launch_choice() - words for a shell that is started as one of these ranks: its command, in its environment.
 */
void launch_choice(const struct launch_world *world, const struct launch_choice *of, struct text *out);

/* launch_weight() - a share of a batch, in steps of 2^-44; whoever has the last of it gets what is left, so
 * that the weights are 1 exactly, in whatever order they are added. Thirds of 3: 0.33333333333331439 twice,
 * then 0.33333333333337123.
 * @before: samples of those before; @left: 1 for the first of them */
double launch_weight(uint64_t before, uint64_t share, uint64_t batch, double *left);

/* Where a rank stands on its node. */
struct launch_place {
        size_t local_rank, local_size;
        size_t node_index, node_count; /* nodes in order of their first rank */
};

struct launch_place launch_place_of(const struct launch_world *world, size_t rank);
size_t launch_servers_before(const struct launch_world *world, size_t rank); /* on its node, before it */

/* launch_local_rank() - the same `local_rank`, for all ranks one by one. @before: of the rank before it */
size_t launch_local_rank(const struct launch_world *world, size_t rank, size_t before);

/* The pipeline of a split that a rank is in (planner/splits/pipeline_ranks.h). */
struct launch_pipeline {
        size_t index, count; /* count: of all; 0 = the rank has no layers */
        size_t first, end;   /* ranks */
        uint64_t batch;      /* samples of each batch, which its ranks' parts add up to */
};

struct launch_pipeline launch_pipeline_of(const struct launch_world *world, size_t rank);

int launch_need_commands(const struct launch_world *world, struct err *err); /* 0 or -EINVAL */
