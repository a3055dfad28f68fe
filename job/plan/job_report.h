/* Job report: what the manager of a running job says of it: its state file, the answer to whoever asks, its
 * last words (docs/reference/rendezvous.md, "The state"). Read by one table. In memory only. */
#pragma once

#include <jansson.h>

#include "job/plan/job_state.h"

#define JOB_REPORT_TEXT_BYTES 512

struct job_report_rank {
        char group[JOB_GROUP_NAME_BYTES];
        uint64_t batch, step, samples, restarts;
        double samples_per_s, busy_seconds;
        int exit_code; /* -1 = it has not ended */
};

struct job_report_event {
        char time[JOB_TIME_BYTES], reason[JOB_REASON_BYTES], message[JOB_REPORT_TEXT_BYTES];
};

struct job_report_program {
        char group[JOB_GROUP_NAME_BYTES], sha256[65];
};

struct job_report {
        char state[16], reason[JOB_REASON_BYTES], message[JOB_REPORT_TEXT_BYTES];
        uint64_t restarts, reshards, recuts; /* since it was started */
        uint64_t launcher_crashes;           /* in the job's life */
        uint64_t epoch, step, samples, epoch_samples;
        double samples_per_s;
        double loss, accuracy;         /* NAN = not said */
        struct job_report_rank *ranks; /* those of a group follow each other */
        size_t rank_count;
        struct job_report_event *events; /* in time */
        size_t event_count;
        struct job_report_program *programs; /* that the groups start */
        size_t program_count;
};

/* job_report_parse() - what is not understood, or beyond all bounds (job/world/progress.h), is as if it had
 * not been said. @ret is released with
 * job_report_free(). Return: 0; -EBADMSG (no report: @ret says nothing), -ENOMEM. */
int job_report_parse(const char *text, struct job_report *ret);
void job_report_free(struct job_report *report);
