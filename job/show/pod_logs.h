/* Pod logs: what the ranks of a cluster's job print, through the API server, line by line, as it comes.
 *
 * A pod holds the ranks of one device group, and each of their lines begins with [RANK]. Followed, pods that
 * are made later (a repair, a move) are followed, too, until the job has ended and nothing of it is left to
 * read; a stream that breaks off is taken up behind the line that was the last. All from the caller's loop,
 * which waits for nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "job/show/job_view.h"
#include "store/kubernetes/kube.h"

#define POD_LOGS_ALL        (-1)      /* of the ranks */
#define POD_LOGS_LINE_BYTES (1 << 20) /* what a line has more is left out */

struct pod_logs;

struct pod_logs_options {
        const char *namespace_, *job;
        const struct job_view *view; /* as it is known; NULL = it is asked for first. Only for this call */
        long rank;                   /* or POD_LOGS_ALL */
        bool follow;                 /* else what there is now, of the view */
        unsigned tail_lines;         /* of each pod; 0 = all */
        uint64_t look_usec;          /* between two questions for the job, when it is followed */
        /* @line: without its end, with [RANK], as the pod wrote it: any bytes but 0 */
        void (*line)(void *userdata, const char *line);
        /* a pod's log is given up: it is not there to read, or it broke off (@error 0: some of it was told)
         * and could not be taken up for half a minute, or its pod is the job's no more */
        void (*refused)(void *userdata, const char *pod, int error, const char *sentence);
        /* the end, once, from the loop; with @error < 0 @sentence says why. pod_logs_free() may follow later,
         * not from here */
        void (*done)(void *userdata, int error, const char *sentence);
        void *userdata;
};

/* pod_logs_start() - texts are copied. @client is borrowed. Return: 0 or -ENOMEM. */
int pod_logs_start(sd_event *loop, struct kube_client *client, const struct pod_logs_options *options,
                   struct pod_logs **ret);

/* pod_logs_refusal() - what became of a log that was refused: "is not read", "has broken off". */
const char *pod_logs_refusal(int error);

/* pod_logs_free() - nothing more is said. Not from a callback. Accepts NULL. */
void pod_logs_free(struct pod_logs *logs);
