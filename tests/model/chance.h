/* Chance: where a model's choices come from: a seed, or bytes that a fuzzer made, which end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

struct chance {
        uint64_t seed;
        const uint8_t *bytes; /* NULL = the seed */
        size_t left;
        bool ended; /* no byte is left: every choice is the first one */
};

static inline size_t chance_below(struct chance *chance, size_t limit)
{
        if (chance->bytes == NULL)
                return random_below(&chance->seed, limit);
        chance->ended = chance->left == 0;
        if (chance->ended)
                return 0;
        chance->left--;
        return *chance->bytes++ % limit;
}

static inline bool chance_of(struct chance *chance, size_t percent)
{
        return chance_below(chance, 100) >= 100 - percent;
}
