/* Watch: what the ranks of a running world say (progress lines), what becomes of them (reports, their
 * processes), as facts of run.world; and the line of progress that people see. */
#pragma once

#include "job/launcher/group_ranks.h"
#include "job/run/run.h"

struct run_watch {
        int changes; /* inotify on the job's folder */
        struct group_ranks ranks;
        uint32_t *lines;     /* of each rank, that were taken in */
        uint64_t shown_usec; /* last line of progress */
        bool shown;
};

int run_watch_open(const struct run *run, struct run_watch *watch, struct err *err);
void run_watch_close(struct run_watch *watch);

/* run_watch_begin() - a new world: nothing is known of its ranks. */
int run_watch_begin(struct run *run, struct run_watch *watch, struct err *err);

/* run_watch_look() - take in new lines and reports, show progress. */
void run_watch_look(struct run *run, struct run_watch *watch);

/* run_watch_words() - the last words of a rank that failed, or, where it said none, of another one, since
 * programs may let one speak for all; "; " and what else may be the cause. */
void run_watch_words(struct run *run, size_t failed);

/* run_watch_end() - leave the progress line of a terminal. */
void run_watch_end(struct run_watch *watch);
