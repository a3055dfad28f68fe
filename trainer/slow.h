/* Slow: a rank that behaves as a device so many times slower than its own (simulated, --simulate-slow), or as
 * one of a given speed (simulated, --simulate-speeds).
 *
 * What the rank's own device needs for a piece of work is the least that a piece of the same kind and size
 * took so far: nothing disturbed that one. The rank then sleeps until so many times that have passed since
 * the piece began. A neighbour, an interrupt or a cold cache in one piece is thus not made many times longer,
 * but lies within the time that the slow device takes anyway; and the processor is free meanwhile. Not
 * thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLOW_SIZES 16 /* kinds and sizes of pieces that are remembered, the oldest gives way */

enum slow_kind { SLOW_LOAD, SLOW_COMPUTE, SLOW_FORWARD, SLOW_BACKWARD, SLOW_MEASURED };

struct slow {
        struct slow_piece {
                enum slow_kind kind;
                size_t samples;
                uint64_t least_usec;
        } pieces[SLOW_SIZES];
        size_t count; /* pieces seen first, ever */
};

/* slow_quiet() - one more piece of that kind and size has taken so long. Return: what such a piece takes on a
 * quiet machine. Pure. */
uint64_t slow_quiet(struct slow *s, enum slow_kind kind, size_t samples, uint64_t usec);

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

/* slow_sleep() - until `usec` have passed since `begin`. */
void slow_sleep(struct slow_moment begin, uint64_t usec);
