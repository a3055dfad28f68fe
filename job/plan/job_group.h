/* Job group: a subtask of the first level: a device group of a node, and the pod that runs there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "job/spec/job.h"
#include "planner/speeds/chip_speed.h"

#define JOB_GROUPS_MAX          256 /* device groups of one job: what a manager takes */
#define JOB_GROUP_NAME_BYTES    24
#define JOB_POD_NAME_BYTES      128
#define JOB_GROUP_LAYERS_BYTES  512
#define JOB_GROUP_DEVICES_BYTES 512

enum job_group_state {
        JOB_GROUP_WAITING,
        JOB_GROUP_RUNNING,
        JOB_GROUP_SUCCEEDED,
        JOB_GROUP_FAILED,
        JOB_GROUP_LOST,
        JOB_GROUP_STATE_COUNT
};

struct job_group {
        char name[JOB_GROUP_NAME_BYTES]; /* "w0-1", "s-0": a DNS label, the pod's host name */
        bool server;
        uint32_t entry;       /* index in workers */
        uint32_t index;       /* among the groups of its entry, never used twice in a job's life */
        uint32_t incarnation; /* how often it was moved to other chips */
        char node[254];       /* "" = it has lost its place and waits for another */
        char group[DEVICE_GROUP_BYTES], runtime[JOB_RUNTIME_BYTES], vendor[24];
        char model[DEVICE_MODEL_BYTES], resource[DEVICE_RESOURCE_BYTES];
        bool planned;   /* its chips are in no slice: its claim is allocated by who carries the job out */
        uint32_t chips; /* that the pod asks for */
        uint32_t ranks; /* >= chips; more where a CPU group serves several */
        uint32_t first_rank;
        char layers[JOB_GROUP_LAYERS_BYTES]; /* of a split: "0:1,2:3", of each rank; "" = it is not planned */
        char devices[JOB_GROUP_DEVICES_BYTES]; /* that its pod's claim was allocated: "gpu-0,gpu-1"; "" = none
                                                  are known */
        uint64_t batch;                        /* of each global batch */
        double weight;
        enum chip_speed source; /* of the speed behind the share */
        char precision[8];      /* "bf16" ..., "mixed"; "" = of none that is known */
        double samples_per_s;   /* of the whole group, as measured; 0 = it is not */
        uint64_t network_mbps;  /* of its node, as the ledger has it now; 0 = not known; not in the status */
        enum job_group_state state;
        uint64_t restarts; /* new processes that its ranks were given */
        int exit_code;     /* of the first of its ranks that failed; -1 = none did */
};

/* NULL ends them. */
extern const char *const job_group_state_names[JOB_GROUP_STATE_COUNT + 1];

/* job_group_rank_batch() - what the n-th rank of a group takes of each batch: equal parts, the first ones
 * larger. */
uint64_t job_group_rank_batch(const struct job_group *group, uint32_t n);

/* job_group_rank_layers() - of the n-th rank, of `layers` ("0:1,2:3"), which may be somebody else's writing.
 * Return: false, and nothing is set: there are none. */
bool job_group_rank_layers(const char *layers, size_t n, uint32_t *ret_first, uint32_t *ret_last);

/* job_group_lose() - it has no chips any more and waits for others; its next pod has another name. */
void job_group_lose(struct job_group *group);

/* job_group_pod_name() - follows from the state alone, so that making a pod again is found out:
 * "fashion-w0-1", after a move "fashion-w0-1-r1". */
void job_group_pod_name(const char *job, const struct job_group *group, char name[JOB_POD_NAME_BYTES]);
