/* Page jobs: what GET /v1/jobs says of a TrainingJob: read from its spec and its status, as the job's
 * controller writes it, and from what was seen to change in it. docs/reference/page.md has the fields. Pure
 * but for the heap: times are CLOCK_REALTIME. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/json/json_writer.h"
#include "job/world/job_rate.h"

#define PAGE_JOBS_EVENTS_MAX  32
#define PAGE_JOBS_EVENT_BYTES 256

/* What was seen of a job since we look on. Zero-initialised. */
struct page_jobs_seen {
        uint64_t restarts, reshards, recuts; /* as the status counts them */
        char phase[24];
        bool begun;
        struct job_rate rate;   /* of what its status told */
        double samples_per_sec; /* of the last JOB_RATE_USEC, as it was seen last; 0 = not known */
        struct {
                uint64_t usec;
                const char *kind; /* static: "phase", "repair", "plan" */
                char message[PAGE_JOBS_EVENT_BYTES];
        } events[PAGE_JOBS_EVENTS_MAX]; /* oldest first */
        size_t count;
};

/* page_jobs_see() - what has changed since it was last seen becomes events. */
void page_jobs_see(struct page_jobs_seen *seen, const json_t *object, uint64_t now_usec);

/* page_jobs_write() - the object of the job. @key: "namespace/name" */
void page_jobs_write(struct json_writer *w, const char *key, const json_t *object,
                     const struct page_jobs_seen *seen);
