/* Watch: what people see of a world that runs: a line of progress, and the last words of ranks that failed.
 */
#pragma once

#include "job/launcher/engine.h"
#include "job/run/run.h"

struct run_watch {
        uint64_t shown_usec; /* last line of progress */
        bool shown;
};

/* run_watch_show() - the line of progress, when it is time for one. */
void run_watch_show(const struct run *run, const struct engine *engine, struct run_watch *watch,
                    uint64_t now_usec);

/* run_watch_words() - the last words of a rank that failed, or, where it said none, of another one, since
 * programs may let one speak for all; "; " and what else may be the cause. */
void run_watch_words(struct run *run, size_t failed);

/* run_watch_end() - leave the progress line of a terminal. */
void run_watch_end(struct run_watch *watch);
