/* Job pod: what is known of one pod of a job, also of one that was asked for and is not seen yet. Its object
 * is decoded once, by one table, when the store shows it. In memory only. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "job/plan/job_state.h"

enum job_pod_phase { JOB_POD_PENDING, JOB_POD_RUNNING, JOB_POD_SUCCEEDED, JOB_POD_FAILED };

struct job_pod {
        struct job_pod *next;
        char name[256];
        bool asked;                                 /* we made it, and the store has not shown it yet */
        bool delete_asked, force_asked, publishing; /* force: without the kubelet of its node */
        char secret[JOB_POD_NAME_BYTES];            /* that it mounts; "" = it says nothing of it */
        uint64_t asked_usec;                        /* CLOCK_MONOTONIC */
        uint64_t bound_usec;                        /* CLOCK_MONOTONIC: first seen with a node; 0 = not yet */
        uint64_t told_usec;  /* CLOCK_MONOTONIC: when it was told last where the manager is; 0 = not by us */
        unsigned told_times; /* ... again, of this address */
        uint64_t retry_usec; /* CLOCK_MONOTONIC: not before, after a write to it that failed */

        /* as the object says */
        char uid[64], owner[64]; /* owner: the TrainingJob's uid; "" = it is not ours */
        char job[JOB_NAME_BYTES], subtask[JOB_GROUP_NAME_BYTES], node[254], ip[64];
        char published[128]; /* the annotation that names the manager */
        bool manager, deleting, sick;
        enum job_pod_phase phase;
        bool started;  /* its main container runs, or has */
        int exit_code; /* of the main container; -1 = it has not ended */
        int64_t restart_max,
                restarts;      /* of a manager: what its plan allows, were before it; -1 = not known */
        char status_token[64]; /* of a manager: with it it tells how the job is */
        char reason[64];
        char message[4097]; /* the main container's termination message, or why it waits, or has no node */
};

/* job_pod_decode() - what the object says; the rest of *ret is empty.
 * @ret_keys: its annotation JOB_ANNOTATION_KEYS, or ""; borrowed from the object */
void job_pod_decode(const json_t *object, struct job_pod *ret, const char **ret_keys);

/* job_pod_update() - take over what an object says, and keep what is our own knowledge of the pod. */
void job_pod_update(struct job_pod *pod, const struct job_pod *seen);

bool job_pod_has_ended(const struct job_pod *pod);
