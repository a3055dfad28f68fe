/* Job state: what has become of a TrainingJob on a cluster: its phase, its plan (the subtasks of the first
 * level, one a device group and pod), its world and its progress. Pure data.
 *
 * The controller decides from it, and it is all that outlives a controller: job/plan/job_status.h writes it
 * to the object's status and reads it back, and everything else is found again from there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/plan/job_group.h"
#include "job/plan/job_phase.h"
#include "job/plan/progress/job_progress.h"
#include "job/spec/job.h"
#include "job/stages/stage_ranks.h"

/* Crashes of mpirun that are told: of one job two are borne (job/world/launcher_crash.h). */
#define JOB_LAUNCHER_CRASHES_MAX 1000000

#define JOB_REASON_BYTES     48
#define JOB_MESSAGE_BYTES    512
#define JOB_NOTES_MAX        16
#define JOB_NOTE_BYTES       256
#define JOB_TIME_BYTES       32
#define JOB_STATUS_RANKS_MAX 1024 /* ranks that a status lists one by one */

enum job_state_condition_type {
        JOB_CONDITION_ACCEPTED,
        JOB_CONDITION_PLANNED,
        JOB_CONDITION_PODS_CREATED,
        JOB_CONDITION_RUNNING,
        JOB_CONDITION_SUSPENDED,
        JOB_CONDITION_SUCCEEDED,
        JOB_CONDITION_FAILED,
        JOB_CONDITION_COUNT
};

struct job_state_condition {
        bool known, holds; /* one that is not known but has a reason was: the status says Unknown */
        char reason[JOB_REASON_BYTES], message[JOB_NOTE_BYTES];
        uint64_t since_usec; /* CLOCK_REALTIME of the last change */
};

struct job_state {
        enum job_phase phase;
        char reason[JOB_REASON_BYTES], message[JOB_MESSAGE_BYTES];
        uint64_t observed_generation;
        uint64_t start_usec, completion_usec; /* CLOCK_REALTIME; 0 = not yet */
        uint64_t world, restarts, reshards, recuts;
        uint64_t launcher_crashes;       /* worlds begun anew because mpirun crashed as it started */
        char last_event[JOB_TIME_BYTES]; /* of this manager: the time of the last passed on; "" = none */
        char address[96];                /* of the world's manager, "10.0.0.7:7000"; "" = not known yet */
        uint64_t samples;                /* of an epoch; 0 = not known */
        struct job_group *groups;
        size_t group_count;
        uint32_t next_index; /* for the next group's name */
        char (*notes)[JOB_NOTE_BYTES];
        size_t note_count;
        struct job_progress progress;
        struct job_progress_rank *ranks; /* those of which something is known; go with the plan */
        size_t rank_count;
        struct stage_ranks split; /* of its layers, as the manager is told; not in the status */
        struct job_progress_point points[JOB_PROGRESS_POINTS_MAX]; /* in time; thinned as they become many */
        size_t point_count;
        struct job_state_condition conditions[JOB_CONDITION_COUNT];
};

extern const char *const job_state_condition_names[JOB_CONDITION_COUNT];

struct job_state job_state_new(void);         /* of a new job */
void job_state_free(struct job_state *state); /* accepts NULL; leaves the state of a new job */

/* job_state_note() - one more sentence for the plan; dropped past JOB_NOTES_MAX or without memory. */
void job_state_note(struct job_state *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void job_state_clear_plan(struct job_state *state); /* groups and notes */

/* job_state_set() - the phase with its word and sentence, and the conditions that follow from it. */
void job_state_set(struct job_state *state, enum job_phase phase, uint64_t now_usec, const char *reason,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* job_state_set_condition() - set one; `since_usec` changes only when it did. */
void job_state_set_condition(struct job_state *state, enum job_state_condition_type type, bool holds,
                             uint64_t now_usec, const char *reason, const char *message);

/* job_state_doubt_condition() - what is known of one was of another plan: Unknown, until it is set again.
 * One that was never set stays unsaid. */
void job_state_doubt_condition(struct job_state *state, enum job_state_condition_type type, uint64_t now_usec,
                               const char *reason, const char *message);

/* job_state_awaits_condition() - is one False or Unknown by now? */
bool job_state_awaits_condition(const struct job_state *state, enum job_state_condition_type type);

/* job_state_is_refused() - were pods of its plan refused, or of the last one? It holds no chips as long. */
bool job_state_is_refused(const struct job_state *state);

/* job_state_group() - the group of this name, or NULL. */
struct job_group *job_state_group(const struct job_state *state, const char *name);

/* job_state_rank() - the entry of a rank, or NULL; job_state_make_rank() adds it (NULL without memory). */
struct job_progress_rank *job_state_rank(const struct job_state *state, const char *group, uint32_t index);
struct job_progress_rank *job_state_make_rank(struct job_state *state, const char *group, uint32_t index);

/* job_state_rank_batch() - what the n-th rank of a group takes of each batch: as it was shared while it ran,
 * else an equal part. */
uint64_t job_state_rank_batch(const struct job_state *state, const struct job_group *group, uint32_t n);

/* job_state_add_point() - when there is no room, two neighbours become one. */
void job_state_add_point(struct job_state *state, const struct job_progress_point *point);

/* job_state_shard() - the samples of an epoch that fall to the n-th rank of a worker group, and with @ranks
 * of them: a range in proportion to their parts of each batch. Return: false if they are not known. */
bool job_state_shard(const struct job *job, const struct job_state *state, const struct job_group *group,
                     uint32_t n, uint32_t ranks, uint64_t *ret_begin, uint64_t *ret_end);

/* job_state_saved_usec() - when the last checkpoint that outlives its pods was written, as far as the
 * progress tells; 0 = none is known. */
uint64_t job_state_saved_usec(const struct job *job, const struct job_state *state);

uint32_t job_state_world_size(const struct job_state *state);

/* job_state_manager_pod_name() - of the manager of a world, "fashion-m2"; of groups: job_group_pod_name(). */
void job_state_manager_pod_name(const char *job, uint64_t world, char name[JOB_POD_NAME_BYTES]);
