/* Report: one job as one self-contained HTML page: how its ranks spent their time, what overlapped, how the
 * loss fell, who got which share and why, what happened. No script, nothing is fetched: it can be mailed.
 *
 * In memory; text from jobs is escaped. Times are microseconds since the ranks began (the trainer's
 * timeline). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum report_what {
        REPORT_LOAD,
        REPORT_FORWARD,
        REPORT_BACKWARD,
        REPORT_EXCHANGE,
        REPORT_UPDATE,
        REPORT_COMPUTE, /* any of the three, where no more is known */
        REPORT_WAIT,
        REPORT_WHAT_COUNT
};

/* report_what_parse() - by the word of a timeline; -ENOENT. */
int report_what_parse(const char *word, enum report_what *ret);

struct report_activity {
        uint32_t rank;
        uint64_t step;
        enum report_what what;
        uint64_t begin_usec, end_usec;
};

/* What a rank did over the whole timeline. */
struct report_totals {
        uint64_t usec[REPORT_WHAT_COUNT];
        uint64_t hidden_exchange_usec, hidden_load_usec; /* while the rank computed */
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
};

struct report {
        const json_t *view;                 /* a job, as `remuda jobs show -o json` writes it */
        struct report_activity *activities; /* of a few steps: an excerpt */
        size_t activity_count;
        struct report_rank *ranks;
        size_t rank_count;
        bool cut;    /* the timeline was too long to be read whole */
        bool coarse; /* the timeline is of the whole job, in a few moments; points are of all ranks together
                      */
};

/* report_overlap() - the time that intervals of `inner` are covered by those of `outer`: both sorted by
 * begin, intervals of `outer` not overlapping each other. */
struct report_interval {
        uint64_t begin, end;
};
uint64_t report_overlap(const struct report_interval *inner, size_t inner_count,
                        const struct report_interval *outer, size_t outer_count);

/* report_html() - the page. */
void report_html(const struct report *report, struct text *out);

/* report_picture() - one picture as an SVG file: "timeline", "progress", "loss", "shares" or
 * "placement".
 * Return: 0; -ENOENT: there is nothing to draw, or no such picture. */
int report_picture(const struct report *report, const char *name, struct text *out);
