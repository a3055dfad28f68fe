/* SplitMix64, seeded by seed, purpose and number. */
#include "trainer/random.h"

uint64_t random_next(struct random_source *r)
{
        uint64_t z = r->state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

struct random_source random_for(uint64_t seed, const char *purpose, uint64_t number)
{
        struct random_source r = { .state = seed };

        r.state = random_next(&r);
        for (const char *p = purpose; *p != '\0'; p++) {
                r.state ^= (uint64_t) (unsigned char) *p;
                r.state = random_next(&r);
        }
        r.state ^= number;
        r.state = random_next(&r);
        return r;
}

uint64_t random_below(struct random_source *r, uint64_t limit)
{
        uint64_t bias = -limit % limit, z;

        do
                z = random_next(r);
        while (z < bias);
        return z % limit;
}

float random_unit(struct random_source *r)
{
        return (float) (random_next(r) >> 40) * 0x1p-24f;
}

void random_shuffle(struct random_source *r, uint32_t *items, size_t count)
{
        for (size_t i = count; i > 1; i--) {
                size_t j = (size_t) random_below(r, i);
                uint32_t item = items[i - 1];

                items[i - 1] = items[j];
                items[j] = item;
        }
}
