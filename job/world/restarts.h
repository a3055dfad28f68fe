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

struct restarts_words {
        char text[112];
};

/* restarts_words() - "restart 2 of 3, from the last valid checkpoint". */
struct restarts_words restarts_words(uint64_t done, uint64_t max, bool checkpoints);
