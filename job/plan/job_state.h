/* Job state: what has become of a TrainingJob on a cluster: its phase, its plan (the subtasks of the first
 * level, one a device group and pod), its world and its progress. Pure data.
 *
 * The controller decides from it, and it is all that outlives a controller: job/plan/job_status.h writes it
 * to the object's status and reads it back, and everything else is found again from there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "job/spec/job.h"

#define JOB_GROUPS_MAX       256 /* device groups of one job: what a manager takes */
#define JOB_GROUP_RANKS_MAX  4096
#define JOB_GROUP_NAME_BYTES 24
#define JOB_REASON_BYTES     48
#define JOB_MESSAGE_BYTES    512
#define JOB_NOTES_MAX        16
#define JOB_NOTE_BYTES       256
#define JOB_TIME_BYTES       32
#define JOB_STATUS_RANKS_MAX 1024 /* ranks that a status lists one by one */

enum job_phase {
        JOB_PENDING,
        JOB_PLANNING,
        JOB_STARTING,
        JOB_RUNNING,
        JOB_RESTARTING,
        JOB_SUCCEEDED,
        JOB_FAILED,
        JOB_CANCELLED,
        JOB_PHASE_COUNT
};

enum job_speed_source { JOB_SPEED_ASSUMED, JOB_SPEED_TABLE, JOB_SPEED_MEASURED, JOB_SPEED_COUNT };

enum job_group_state {
        JOB_GROUP_WAITING,
        JOB_GROUP_RUNNING,
        JOB_GROUP_SUCCEEDED,
        JOB_GROUP_FAILED,
        JOB_GROUP_LOST,
        JOB_GROUP_STATE_COUNT
};

enum job_condition_type {
        JOB_CONDITION_ACCEPTED,
        JOB_CONDITION_PLANNED,
        JOB_CONDITION_RUNNING,
        JOB_CONDITION_SUCCEEDED,
        JOB_CONDITION_FAILED,
        JOB_CONDITION_COUNT
};

struct job_condition {
        bool known, holds;
        char reason[JOB_REASON_BYTES], message[JOB_NOTE_BYTES];
        uint64_t since_usec; /* CLOCK_REALTIME of the last change of `holds` */
};

/* A subtask of the first level: a device group of a node, and the pod that runs there. */
struct job_group {
        char name[JOB_GROUP_NAME_BYTES]; /* "w0-1", "s-0": a DNS label, the pod's host name */
        bool server;
        uint32_t entry;       /* index in workers */
        uint32_t index;       /* among the groups of its entry, never used twice in a job's life */
        uint32_t incarnation; /* how often it was moved to other chips */
        char node[254];       /* "" = it has lost its place and waits for another */
        char group[DEVICE_GROUP_BYTES], runtime[JOB_RUNTIME_BYTES], vendor[24];
        char model[DEVICE_MODEL_BYTES], resource[DEVICE_RESOURCE_BYTES];
        uint32_t chips; /* that the pod asks for */
        uint32_t ranks; /* >= chips; more where a CPU group serves several */
        uint32_t first_rank;
        uint64_t batch; /* of each global batch */
        double weight;
        enum job_speed_source source;
        double samples_per_s; /* of the whole group, as planned; 0 = assumed */
        enum job_group_state state;
        uint64_t restarts; /* new processes that its ranks were given */
        int exit_code;     /* of the first of its ranks that failed; -1 = none did */
};

/* A subtask of the second level: what one rank has said, and what became of it. It is known by its group and
 * its place in it: numbers of ranks change when a group is left out. */
struct job_rank {
        char group[JOB_GROUP_NAME_BYTES];
        uint32_t index;
        uint64_t samples;
        uint64_t restarts; /* new processes that it was given */
        uint64_t before;   /* of them, under earlier managers */
        int exit_code;     /* -1 = it runs, or nothing is known */
        double busy_sec;   /* that it has computed in its world, as it says */
};

/* How far the job was at a moment, for its report. */
#define JOB_POINTS_MAX  48
#define JOB_POINT_RANKS 16
struct job_point {
        double seconds; /* since start_usec */
        uint64_t world, step, samples;
        double loss;                   /* NAN = not said */
        uint8_t busy[JOB_POINT_RANKS]; /* percent of the time since the last point that each rank computed */
        size_t busy_count;
};

struct job_progress {
        uint64_t epoch, step, samples, samples_total;
        double samples_per_s, seconds_left, loss, accuracy; /* NAN = not said */
        uint64_t time_usec;                                 /* 0 = nothing was heard */
};

struct job_state {
        enum job_phase phase;
        char reason[JOB_REASON_BYTES], message[JOB_MESSAGE_BYTES];
        uint64_t observed_generation;
        uint64_t start_usec, completion_usec; /* CLOCK_REALTIME; 0 = not yet */
        uint64_t world, restarts, reshards;
        char last_event[JOB_TIME_BYTES]; /* of this world's manager, that was passed on: its time; "" = none
                                          */
        char address[96];                /* of the world's manager, "10.0.0.7:7000"; "" = not known yet */
        uint64_t samples;                /* of an epoch; 0 = not known */
        struct job_group *groups;
        size_t group_count;
        uint32_t next_index; /* for the next group's name */
        char (*notes)[JOB_NOTE_BYTES];
        size_t note_count;
        struct job_progress progress;
        struct job_rank *ranks; /* those of which something is known; go with the plan */
        size_t rank_count;
        struct job_point points[JOB_POINTS_MAX]; /* in time; thinned as they become many */
        size_t point_count;
        struct job_condition conditions[JOB_CONDITION_COUNT];
};

/* NULL ends them. */
extern const char *const job_phase_names[JOB_PHASE_COUNT + 1];
extern const char *const job_speed_source_names[JOB_SPEED_COUNT + 1];
extern const char *const job_group_state_names[JOB_GROUP_STATE_COUNT + 1];
extern const char *const job_condition_names[JOB_CONDITION_COUNT];

struct job_state job_state_new(void);         /* of a new job */
void job_state_free(struct job_state *state); /* accepts NULL; leaves the state of a new job */

bool job_phase_ended(enum job_phase phase);

/* job_state_note() - one more sentence for the plan; dropped past JOB_NOTES_MAX or without memory. */
void job_state_note(struct job_state *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void job_state_clear_plan(struct job_state *state); /* groups and notes */

/* job_state_set() - the phase with its word and sentence, and the conditions that follow from it. */
void job_state_set(struct job_state *state, enum job_phase phase, uint64_t now_usec, const char *reason,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* job_state_condition() - set one; `since_usec` changes only when it did. */
void job_state_condition(struct job_state *state, enum job_condition_type type, bool holds, uint64_t now_usec,
                         const char *reason, const char *message);

/* job_state_group() - the group of this name, or NULL. */
struct job_group *job_state_group(const struct job_state *state, const char *name);

/* job_state_rank() - the entry of a rank, or NULL; job_state_make_rank() adds it (NULL without memory). */
struct job_rank *job_state_rank(const struct job_state *state, const char *group, uint32_t index);
struct job_rank *job_state_make_rank(struct job_state *state, const char *group, uint32_t index);

/* job_state_add_point() - when there is no room, two neighbours become one. */
void job_state_add_point(struct job_state *state, const struct job_point *point);

/* job_state_shard() - the samples of an epoch that fall to the n-th rank of a worker group, and with @ranks
 * of them: a range in proportion to their parts of each batch. Return: false if they are not known. */
bool job_state_shard(const struct job *job, const struct job_state *state, const struct job_group *group,
                     uint32_t n, uint32_t ranks, uint64_t *ret_begin, uint64_t *ret_end);

uint32_t job_state_world_size(const struct job_state *state);

/* job_rank_batch() - what the n-th rank of a group takes of each batch: equal parts, the first ones larger.
 */
uint64_t job_rank_batch(const struct job_group *group, uint32_t n);

#define JOB_POD_NAME_BYTES 128

/* Names of a job's pods follow from the state alone, so that making one again is found out: "fashion-w0-1",
 * after a move "fashion-w0-1-r1"; the manager of world 2 "fashion-m2". */
void job_group_pod_name(const char *job, const struct job_group *group, char name[JOB_POD_NAME_BYTES]);
void job_manager_pod_name(const char *job, uint64_t world, char name[JOB_POD_NAME_BYTES]);
