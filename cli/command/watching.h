/* Watching: a command that lists (listing.h) goes on to look, until Ctrl-C, until who reads its output has
 * gone, or until it cannot go on.
 *
 * A look is made at once, then every period or when watching_changed() was called: several changes within a
 * tenth of a second are one look. A look that fails, but for the first, is said in one sentence, and the next
 * one that succeeds goes on from what was printed before. */
#pragma once

#include <systemd/sd-event.h>

#include "base/options.h"
#include "cli/command/listing.h"

#define WATCHING_PERIOD_USEC UINT64_C(2000000) /* where nobody tells of changes: as the agent looks */

struct watching {
        const struct option_program *program; /* whose name is before what is said on standard error */
        struct listing_arguments *listing;
        int (*look)(void *userdata, struct err *err); /* prints it by `listing`. Return: 0 or negative */
        void *userdata;
        uint64_t period_usec;       /* 0 = by watching_changed() alone */
        bool waits;                 /* also the first look is for watching_changed() to ask */
        struct listing_watch *rows; /* keys and ageing; the rest is zero */

        sd_event *loop; /* of whoever watches; NULL = one is made */
        sd_event_source *timer, *reader;
        bool asked, failed;
        int result; /* negative: the command cannot go on */
        struct err err;
        uint64_t lost_usec; /* when trouble was last told; 0 = never */
};

/* watching_run() - Return: an exit code: EXIT_INTERRUPTED after SIGINT or SIGTERM; EXIT_DONE when nobody
 * reads any more; the one of what the first look or watching_end() says, which is told on standard error. */
int watching_run(struct watching *watching);

/* watching_changed() - something has changed: look. */
void watching_changed(struct watching *watching);

/* watching_trouble() - what a store says while it is watched: that it was lost is said in one sentence, again
 * only after a minute without trouble. */
void watching_trouble(struct watching *watching, const char *sentence);

/* watching_end() - it cannot go on: watching_run() tells the sentence. @result: negative. */
void watching_end(struct watching *watching, int result, const char *sentence);
