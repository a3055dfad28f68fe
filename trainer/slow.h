/* Slow: a rank that behaves as a device so many times slower than its own (simulated, --simulate-slow), or as
 * one of a given speed (simulated, --simulate-speeds).
 *
 * What the rank's own device needs for a piece of work is the least that a piece of the same kind and size
 * took so far, in a rehearsal or since: nothing disturbed that one. The rank then sleeps until so many times
 * that have passed since the piece began. A neighbour, an interrupt or a cold cache in one piece is thus not
 * made many times longer, but lies within the time that the slow device takes anyway; and the processor is
 * free meanwhile. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/loader.h"
#include "trainer/in_step/mover.h"
#include "trainer/train_options.h"

#define SLOW_SIZES 256 /* kinds and sizes of pieces that are remembered, the oldest gives way */

enum slow_kind {
        SLOW_LOAD,
        SLOW_COMPUTE,
        SLOW_FORWARD,
        SLOW_BACKWARD,
        SLOW_MEASURED,
        SLOW_TRIED,
        SLOW_KINDS
};

struct slow {
        unsigned percent;          /* of the time that this rank's device takes; 100 = as it is */
        unsigned later_percent;    /* the same from a step on (--simulate-slow-from) */
        uint64_t later_step;       /* UINT64_MAX = none */
        uint64_t speed;            /* samples a second at most; 0 = as it is */
        struct loader *loader;     /* whose work is no computing; NULL = none (yet); borrowed */
        const struct mover *mover; /* the same */
        struct slow_piece {
                unsigned kind; /* enum slow_kind, or SLOW_KINDS and on: up to a node of one */
                size_t samples;
                uint64_t least_usec;
        } pieces[SLOW_SIZES];
        size_t count; /* pieces seen first, ever */
};

/* slow_open() - what --simulate-slow, --simulate-slow-from and --simulate-speeds say of this rank. */
struct slow slow_open(const struct train_options *o, int rank);

/* slow_step() - step `step` begins: is it slow by now? */
void slow_step(struct slow *s, uint64_t step);

/* slow_is() - is this rank to be slow? */
bool slow_is(const struct slow *s);

/* slow_quiet() - one more piece of that kind and size has taken so long. Return: what such a piece takes on a
 * quiet machine. Pure. */
uint64_t slow_quiet(struct slow *s, unsigned kind, size_t samples, uint64_t usec);

/* slow_piece_usec() - what a piece takes on a device of so many samples a second, loading included: a
 * backward pass is twice a forward one. Pure.
 * @speed: > 0 */
uint64_t slow_piece_usec(uint64_t speed, enum slow_kind kind, size_t samples);

struct slow_moment {
        uint64_t usec, processor_usec;
};
/* slow_now() - now, by the clock and by what this process has had of processors, less what of it went
 * elsewhere. */
struct slow_moment slow_now(uint64_t elsewhere_usec);

/* slow_busy_usec() - what a piece took: of clock and processor the smaller counts, so that time of neighbours
 * does not. */
uint64_t slow_busy_usec(struct slow_moment begin, struct slow_moment end);

/* slow_begin() - when a piece of computing begins. */
struct slow_moment slow_begin(const struct slow *s);

/* slow_keep_pace() - in the middle of a piece that began then, a node's gradient is there: a rank that is to
 * take so many percent of its time (--simulate-slow) sleeps for what it lacks so far. What is begun next to
 * it then finds as much time beside computing as on the slow device. Here, too, the least counts: a thread
 * that moves gradients disturbs the pass, and what it costs would be made many times longer.
 * @node: its number in the model */
void slow_keep_pace(struct slow *s, enum slow_kind kind, size_t node, size_t samples,
                    struct slow_moment begin);

/* slow_end() - a rank that is to be slow sleeps for what it lacks after having computed since `begin`; with
 * SLOW_COMPUTE for loading these samples, too. */
void slow_end(struct slow *s, enum slow_kind kind, size_t samples, struct slow_moment begin);

/* slow_sleep() - until `usec` have passed since `begin`. */
void slow_sleep(struct slow_moment begin, uint64_t usec);
