/* Watch: what the ranks of a running world say (progress lines) and what became of them (reports), and the
 * judgement of it: who failed, who hangs, who is slow. */
#pragma once

#include "job/run/run.h"

struct watch {
        int changes; /* inotify on the job's folder */
        struct progress progress;
        struct progress_rank *seen; /* of every rank, for the judgement */
        uint64_t shown_usec;
        uint64_t stopped_usec, stopped_since_usec; /* last look for stopped processes; 0 = none is */
        bool shown;
};

int watch_open(struct run *run, struct watch *watch,
               struct err *err); /* also resets what was seen of the ranks */
void watch_close(struct watch *watch);

/* watch_read() - take in new lines and reports, name stragglers, show progress. */
void watch_read(struct run *run, struct watch *watch);

/* watch_failed() - the rank that failed first, or rank_count if none has. */
size_t watch_failed(const struct run *run);

/* watch_hung() - the rank that has made no progress for max(hangSeconds, 5 median steps), that has said
 * nothing since the start for five times hangSeconds, or that is stopped; or rank_count. */
size_t watch_hung(const struct run *run, struct watch *watch);

/* watch_end() - leave the progress line of a terminal. */
void watch_end(struct watch *watch);
