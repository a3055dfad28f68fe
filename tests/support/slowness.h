/* Slowness: how many times longer this machine takes, at this moment, for a fixed piece of work than a quiet
 * one (below). A bound on processor time is multiplied by it: where other programs use the same core's units
 * and caches, or a sanitizer looks at every access, what is measured takes longer and so does this. Never
 * less than one, so that a fast machine loosens nothing; ask before and after what is measured, and take the
 * greater. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SLOWNESS_ROUNDS 4000000
#define SLOWNESS_QUIET_MS                                                                                    \
        8.0 /* measured, rounded up: 6.0 quiet, 16 under ASan and UBSan, one Xeon of the cloud */

static inline double slowness(void)
{
        static volatile uint32_t cells[1 << 16];
        clock_t began = clock();
        uint32_t at = 1;
        double sum = 1, took_ms;

        for (size_t i = 0; i < SLOWNESS_ROUNDS; i++) {
                at = at * 1664525U + 1013904223U; /* Numerical Recipes' generator: no access is foreseen */
                cells[at >> 16] += at;
                sum = sum * 0.5 + (double) cells[(at >> 8) & 0xffff];
        }
        cells[0] = (uint32_t) sum;
        took_ms = (double) (clock() - began) * 1e3 / CLOCKS_PER_SEC;
        return took_ms > SLOWNESS_QUIET_MS ? took_ms / SLOWNESS_QUIET_MS : 1;
}

/* Did what took `sec` of processor time keep within `limit_sec`? `before`: the slowness when it began. */
static inline bool within(double sec, double limit_sec, double before)
{
        double after = slowness();

        return sec < limit_sec * (before > after ? before : after);
}
