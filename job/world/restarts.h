/* Restarts: whether a job may start once more, and the words for it; the same for a fault within its world
 * (verdict.h) and for one of its pods (pods.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESTARTS_NO_MORE "; no restart is left" /* ends the message of the fault that found them used up */

enum restarts {
        RESTARTS_LEFT,
        RESTARTS_USED_UP,
        RESTARTS_NONE /* the job was never to start anew: there is nothing to say about it */
};

enum restarts restarts_of(uint64_t done, uint64_t max);

/* How soon a job starts again. Three faults in a row are repaired at once, each within a minute of the start
 * before it; after that what fails at once is left alone for a while, 1 s, 2 s, 4 s, up to a minute, so that
 * a job with a thousand restarts is no tight loop. Who ran for a minute begins anew. Zero-initialised. */
struct restarts_pace {
        unsigned quick;      /* faults in a row */
        uint64_t again_usec; /* when it may start, or did; 0 = there was no fault */
};

/* restarts_pause() - a fault happened now, of any one steady clock. Return: how long nothing is started. */
uint64_t restarts_pause(struct restarts_pace *pace, uint64_t now_usec);

struct restarts_words {
        char text[128];
};

/* restarts_words() - "restart 2 of 3, from the last valid checkpoint"; with a pause, ", in 4 s". */
struct restarts_words restarts_words(uint64_t done, uint64_t max, bool checkpoints, uint64_t pause_usec);
