/* Random: a small seeded generator (SplitMix64), the same on every machine. Not for secrets. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

/* random_below() - 0 .. limit - 1; limit > 0. */
static inline size_t random_below(uint64_t *state, size_t limit)
{
        return (size_t) (((__uint128_t) random_next(state) * limit) >> 64);
}

static inline void random_shuffle(uint64_t *state, uint32_t *items, size_t count)
{
        for (size_t i = count; i > 1; i--) {
                size_t j = random_below(state, i);
                uint32_t swap = items[i - 1];

                items[i - 1] = items[j];
                items[j] = swap;
        }
}
