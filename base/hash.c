/* Multiply and fold, eight bytes at a time: the inner loop of wyhash. */
#include "base/hash.h"

#include <string.h>

/* Each bit of the product depends on bits of both; folding its halves keeps them all. */
static uint64_t mix(uint64_t a, uint64_t b)
{
        __extension__ typedef unsigned __int128 wide;
        wide product = (wide) a * b;

        return (uint64_t) product ^ (uint64_t) (product >> 64);
}

uint64_t hash_bytes(const void *bytes, size_t size_bytes, uint64_t seed)
{
        const unsigned char *at = bytes;
        uint64_t hash = seed ^ UINT64_C(0xa0761d6478bd642f), word;

        for (size_t left = size_bytes; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
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
