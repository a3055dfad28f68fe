/* Job arguments: the options of the reference trainer that a job asks for. The same for `remuda run`, for
 * `remuda plan launch` and for the pods of the controller. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/spec/arguments.h"
#include "job/spec/job.h"

/* What a job's options need that the job itself does not say. */
struct job_arguments {
        const uint64_t *shares; /* of each batch, one a worker, in rank order; may be NULL with count 0 */
        size_t share_count;
        size_t servers;         /* ranks that serve */
        const char *checkpoint; /* folder; "" = none */
        bool resume;
        const char *sample_log, *timeline; /* FILE, or NULL */
        const char *stages;                /* of a split: "F:L,F:L", or NULL */
        bool replicas; /* ... of several pipelines, whose ranks' shares add up to each one's part */
        const uint64_t *segments; /* found for `segments: auto` before; count 0 = not yet */
        size_t segment_count;
};

/* job_arguments_taken() - do its programs take them: are they the reference trainer? */
bool job_arguments_taken(const struct job *job);

/* job_arguments_epochs() - how many there are, if anybody said: of programs of one's own the default is a
 * guess. 0 = nobody did. */
uint64_t job_arguments_epochs(const struct job *job);

/* job_arguments_add() - append the options: for a job that takes them. */
void job_arguments_add(const struct job *job, const struct job_arguments *what, struct arguments *args);
