/* Random: the trainer's only source of chance, the same on every build and machine.
 *
 * SplitMix64 (Steele, Lea, Flood 2014): one addition and a mixer, passes BigCrush, any seed is good. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random_source {
        uint64_t state;
};

/* random_for() - an independent source for (seed, purpose, number), e.g. (7, "permutation", epoch). */
struct random_source random_for(uint64_t seed, const char *purpose, uint64_t number);
uint64_t random_next(struct random_source *r);

/* random_below() - uniform in [0, limit), without bias; limit > 0. */
uint64_t random_below(struct random_source *r, uint64_t limit);

/* random_unit() - uniform in [0, 1), 24 bits: exact in a float. */
float random_unit(struct random_source *r);

/* random_shuffle() - Fisher-Yates. */
void random_shuffle(struct random_source *r, uint32_t *items, size_t count);
