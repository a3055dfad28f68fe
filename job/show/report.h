/* Report: what a page and its pictures draw of one job: its view, its progress lines, the timelines that the
 * reference trainer wrote.
 *
 * Collected from the files of the job's folder, or from the history of a cluster's job. Times are
 * microseconds since the ranks began, of all ranks by one clock (the trainer's timeline, a trace of Chrome's
 * format: trainer/record.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/show/job_view.h"

enum report_what {
        REPORT_LOAD,
        REPORT_FORWARD,
        REPORT_BACKWARD,
        REPORT_EXCHANGE,
        REPORT_UPDATE,
        REPORT_COMPUTE, /* any of the three, where no more is known */
        REPORT_WAIT,
        REPORT_MEASURE, /* an evaluation, trials: no training */
        REPORT_WHAT_COUNT
};

extern const char *const report_what_names[]; /* the words of a timeline; ended by NULL */

struct report_activity {
        uint32_t rank;
        uint64_t step;
        enum report_what what;
        uint64_t begin_usec, end_usec;
};

/* What a rank did over the whole timeline. */
struct report_totals {
        uint64_t usec[REPORT_WHAT_COUNT];
        uint64_t exchange_beside_usec, load_beside_usec; /* while the rank computed */
        uint64_t begin_usec, end_usec; /* of the first and the last activity; end 0 = none */
};

struct report_point {
        double step, seconds, samples, loss, accuracy; /* NAN = not said */
        unsigned world;                                /* 0, and one more after every restart */
};

struct report_rank {
        struct report_totals totals;
        struct report_point *points; /* from its progress lines, thinned */
        size_t point_count;
        uint64_t passed_bytes,
                passed_last; /* of samples, to its neighbour: in all worlds; as the last line said */
};

struct report {
        const struct job_view *view;
        struct report_activity *activities; /* of a few steps: an excerpt */
        size_t activity_count;
        struct report_rank *ranks;
        size_t rank_count;
        bool cut;    /* the timeline was too long to be read whole */
        bool coarse; /* the timeline is of the whole job, in a few moments; points are of all ranks together
                      */
};

/* report_collect() - @view: borrowed by *report, which is released with report_free(). Return: 0 or -ENOMEM.
 */
int report_collect(const struct job_view *view, struct report *report, struct err *err);
void report_free(struct report *report);
