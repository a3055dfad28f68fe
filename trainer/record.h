/* Record: what a rank leaves behind while it trains: times, progress lines, the sample log, the timeline.
 *
 * Files are per rank, FILE.RANK. Lines are whole: a progress line is one write(2). All times of a run are by
 * one clock: they count from when its ranks began together, whatever one of them did meanwhile. The timeline
 * is a trace of Chrome's format (an array of complete events, which needs no end), for Perfetto and others:
 *
 *         [
 *         {"name":"forward","ph":"X","ts":120,"dur":95,"pid":0,"tid":1,"args":{"step":0}},
 *
 * Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trainer/data/sampler.h"
#include "trainer/train_options.h"

enum record_activity {
        RECORD_LOAD,
        RECORD_FORWARD,
        RECORD_BACKWARD,
        RECORD_EXCHANGE,
        RECORD_UPDATE,
        RECORD_WAIT,
        RECORD_MEASURE, /* an evaluation, trials: no training */
        RECORD_ACTIVITIES
};

struct record {
        int rank;
        int progress; /* descriptor, -1 = none */
        bool progress_owned;
        FILE *samples, *timeline;
        uint64_t start_usec;  /* when the ranks began, record_now() */
        uint64_t paused_usec; /* of the time since then, what was no training */
        uint64_t said_usec;   /* when the last progress line was written */
        uint64_t epoch, step; /* of the last step */
        uint64_t total_usec[RECORD_ACTIVITIES];
        double saved_ms; /* by segments, against one: measured in trial steps, for every step since */
        uint64_t load_waited_usec; /* of loading, while the rank waited for it */
        uint64_t sample_count;
        bool passes;                /* to a neighbour: what is said then */
        uint64_t passed_bytes;      /* of samples */
        const struct sampler *cuts; /* since when the shares in use are is said; NULL = none can come */
        uint64_t epoch_samples;     /* of all ranks together; 0 = not told in the progress lines */
};

uint64_t record_now(void); /* microseconds, CLOCK_MONOTONIC */

/* record_open() - @first_step: where the run begins; lines of a sample log from that step on are cut off. */
int record_open(struct record *r, const struct train_options *o, int rank, uint64_t first_step,
                struct err *err);
/* record_cut_log() - leave a log of numbers before the first line that is not whole or whose number `field`
 * (from 0) is `end` or more, ready for more lines. Return: 0 or a negative errno. */
int record_cut_log(FILE *f, size_t field, uint64_t end);

/* record_cut_others() - where a run goes on in a smaller world, cut back the sample logs of the ranks that
 * are no more (`size` and on). By rank 0. */
int record_cut_others(const struct train_options *o, int size, uint64_t first_step, struct err *err);
void record_flush(struct record *r); /* before a checkpoint: what is logged so far belongs to it */
int record_close(struct record *r, struct err *err); /* -EIO when a file could not be written whole */

/* record_done() - activity from begin_usec until now, into totals and timeline. Return: now. */
uint64_t record_done(struct record *r, enum record_activity what, uint64_t step, uint64_t begin_usec);
/* record_paused() - likewise; and that time is none of the training. @what: RECORD_MEASURE, or RECORD_WAIT of
 * who waited for one that measured */
void record_paused(struct record *r, enum record_activity what, uint64_t step, uint64_t begin_usec);
double record_training_seconds(const struct record *r); /* since the ranks began, less the pauses */
void record_samples(struct record *r, uint64_t epoch, size_t step, const uint32_t *ids, size_t count);
void record_progress(struct record *r, uint64_t epoch, uint64_t step, double loss);
/* record_alive() - a line of no news, if none was written for five seconds: in evaluations, which may take
 * longer than a rank may be silent. */
void record_alive(struct record *r);
/* record_accuracy() - of the parameters after the last step that record_progress() had.
 * @at_usec: when they were what they are, record_now(); the time since the beginning is told */
void record_accuracy(struct record *r, uint64_t at_usec, double accuracy, double loss);
