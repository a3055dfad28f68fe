/* Multiply and fold, as the inner loop of wyhash: eight bytes of short keys at a time, sixteen of long ones.
 */
#include "base/hash.h"

#include <string.h>

#define LONG_BYTES 128 /* from there on lanes pay */

/* Each bit of the product depends on bits of both; folding its halves keeps them all. */
static uint64_t mix(uint64_t a, uint64_t b)
{
        __extension__ typedef unsigned __int128 wide;
        wide product = (wide) a * b;

        return (uint64_t) product ^ (uint64_t) (product >> 64);
}

#define LANES 4

/* A product waits for the one before: four hashes side by side keep the multiplier busy. Each takes two words
 * at a time, either of which is first mixed with the hash so far, the second with its bits in other places:
 * nobody who does not know it can choose words that make the product 0, or exchange them unnoticed. By an odd
 * number of places, as hash and turned hash would else differ in 2^32 ways alone. Return: the bytes that are
 * done. */
static size_t hash_lanes(const unsigned char *at, size_t size_bytes, uint64_t *hash)
{
        uint64_t lanes[LANES], words[2 * LANES];
        size_t done = 0;

#pragma GCC unroll 4
        for (size_t i = 0; i < LANES; i++)
                lanes[i] = *hash + i;
        for (; size_bytes - done >= sizeof(words); done += sizeof(words)) {
                memcpy(words, at + done, sizeof(words));
#pragma GCC unroll 4 /* LANES: a lane in a register, not in memory */
                for (size_t i = 0; i < LANES; i++)
                        lanes[i] = mix(lanes[i] ^ words[2 * i],
                                       (lanes[i] << 29 | lanes[i] >> 35) ^ words[2 * i + 1]);
        }
#pragma GCC unroll 4
        for (size_t i = 0; i < LANES; i++)
                *hash = mix(*hash ^ lanes[i], UINT64_C(0xe7037ed1a0b428db));
        return done;
}

uint64_t hash_bytes(const void *bytes, size_t size_bytes, uint64_t seed)
{
        const unsigned char *at = bytes;
        uint64_t hash = seed ^ UINT64_C(0xa0761d6478bd642f), word;
        size_t done = size_bytes >= LONG_BYTES ? hash_lanes(at, size_bytes, &hash) : 0;

        at += done;
        for (size_t left = size_bytes - done; left >= sizeof(word);
             left -= sizeof(word), at += sizeof(word)) {
                memcpy(&word, at, sizeof(word));
                hash = mix(hash ^ word, UINT64_C(0xe7037ed1a0b428db));
        }
        word = 0;
        memcpy(&word, at, size_bytes % sizeof(word));
        return mix(hash ^ word ^ size_bytes, UINT64_C(0x8ebc6af09c88c6e3));
}

uint64_t hash_text(const char *text, uint64_t seed)
{
        return hash_bytes(text, strlen(text), seed);
}
