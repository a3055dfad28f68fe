/* Watch: what the ranks of a running world say (progress lines) and what became of them (reports), and the
 * judgement of it: who failed, who hangs, who is slow. */
#pragma once

#include "cli/run.h"

#define WATCH_SLOW_RATIO 1.3 /* times the median step */
#define WATCH_SLOW_STEPS 20
#define WATCH_STEPS      32 /* whose median is the usual step */

struct watch {
        int changes; /* inotify on the job's folder */
        double step_ms[WATCH_STEPS];
        size_t step_count;
        uint64_t began_usec, shown_usec;
        bool shown;
};

int watch_open(struct run *run, struct watch *watch,
               struct err *err); /* also resets what was seen of the ranks */
void watch_close(struct watch *watch);

/* watch_read() - take in new lines and reports, name stragglers, show progress. */
void watch_read(struct run *run, struct watch *watch);

/* watch_failed() - the rank that failed first, or rank_count if none has. */
size_t watch_failed(const struct run *run);

/* watch_hung() - the rank that has made no progress for max(hangSeconds, 5 median steps), or rank_count. */
size_t watch_hung(const struct run *run, const struct watch *watch);

/* watch_end() - leave the progress line of a terminal. */
void watch_end(struct watch *watch);
