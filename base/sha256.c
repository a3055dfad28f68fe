/* The compression function of FIPS 180-4, 64 bytes at a time. */
#include "base/sha256.h"

#include <string.h>

/* clang-format off */
static const uint32_t round_constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t rotate_right(uint32_t word, unsigned bits)
{
        return (word >> bits) | (word << (32 - bits));
}

static void expand(const uint8_t block[64], uint32_t schedule[64])
{
        for (size_t i = 0; i < 16; i++)
                schedule[i] = (uint32_t) block[4 * i] << 24 | (uint32_t) block[4 * i + 1] << 16 |
                              (uint32_t) block[4 * i + 2] << 8 | (uint32_t) block[4 * i + 3];
        for (unsigned i = 16; i < 64; i++) {
                uint32_t a = schedule[i - 15], b = schedule[i - 2];

                schedule[i] = schedule[i - 16] + schedule[i - 7] +
                              (rotate_right(a, 7) ^ rotate_right(a, 18) ^ (a >> 3)) +
                              (rotate_right(b, 17) ^ rotate_right(b, 19) ^ (b >> 10));
        }
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
        uint32_t schedule[64], v[8];

        expand(block, schedule);
        memcpy(v, state, sizeof(v));
        for (unsigned i = 0; i < 64; i++) {
                uint32_t sum1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
                uint32_t sum0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
                uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
                uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
                uint32_t first = v[7] + sum1 + choose + round_constants[i] + schedule[i];

                memmove(&v[1], &v[0], 7 * sizeof(v[0]));
                v[4] += first; /* was v[3] before the move */
                v[0] = first + sum0 + majority;
        }
        for (unsigned i = 0; i < 8; i++)
                state[i] += v[i];
}

void sha256_init(struct sha256 *hash)
{
        static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

        memset(hash, 0, sizeof(*hash));
        memcpy(hash->state, start, sizeof(start));
}

void sha256_update(struct sha256 *hash, const void *bytes, size_t size_bytes)
{
        const uint8_t *next = bytes;
        size_t held = hash->size_bytes % 64;

        hash->size_bytes += size_bytes;
        if (held > 0) {
                size_t take = 64 - held < size_bytes ? 64 - held : size_bytes;

                memcpy(hash->block + held, next, take);
                next += take;
                size_bytes -= take;
                if (held + take < 64)
                        return;
                compress(hash->state, hash->block);
        }
        for (; size_bytes >= 64; next += 64, size_bytes -= 64)
                compress(hash->state, next);
        if (size_bytes > 0)
                memcpy(hash->block, next, size_bytes);
}

void sha256_final(struct sha256 *hash, uint8_t ret[SHA256_BYTES])
{
        static const uint8_t padding[64] = { 0x80 };
        uint64_t bits = hash->size_bytes * 8;
        size_t held = hash->size_bytes % 64;
        uint8_t length[8];

        for (unsigned i = 0; i < 8; i++)
                length[i] = (uint8_t) (bits >> (56 - 8 * i));
        sha256_update(hash, padding, held < 56 ? 56 - held : 120 - held);
        sha256_update(hash, length, sizeof(length));
        for (unsigned i = 0; i < SHA256_BYTES; i++)
                ret[i] = (uint8_t) (hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(const uint8_t bytes[SHA256_BYTES], char ret[SHA256_HEX_BYTES])
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_BYTES; i++) {
                ret[2 * i] = digits[bytes[i] >> 4];
                ret[2 * i + 1] = digits[bytes[i] & 15];
        }
        ret[2 * (size_t) SHA256_BYTES] = '\0';
}

void sha256_final_hex(struct sha256 *hash, char ret[SHA256_HEX_BYTES])
{
        uint8_t bytes[SHA256_BYTES];

        sha256_final(hash, bytes);
        sha256_hex(bytes, ret);
}

void sha256_hmac_init(struct sha256_hmac *hmac, const void *key, size_t key_bytes)
{
        uint8_t inner[64] = { 0 }, outer[64];

        sha256_init(&hmac->inner);
        sha256_init(&hmac->outer);
        if (key_bytes > sizeof(inner)) {
                sha256_update(&hmac->inner, key, key_bytes);
                sha256_final(&hmac->inner, inner);
                sha256_init(&hmac->inner);
        } else
                memcpy(inner, key, key_bytes);
        for (size_t i = 0; i < sizeof(inner); i++) {
                outer[i] = inner[i] ^ 0x5c;
                inner[i] ^= 0x36;
        }
        sha256_update(&hmac->inner, inner, sizeof(inner));
        sha256_update(&hmac->outer, outer, sizeof(outer));
}

void sha256_hmac_final_hex(struct sha256_hmac *hmac, char ret[SHA256_HEX_BYTES])
{
        uint8_t bytes[SHA256_BYTES];

        sha256_final(&hmac->inner, bytes);
        sha256_update(&hmac->outer, bytes, sizeof(bytes));
        sha256_final_hex(&hmac->outer, ret);
}

bool sha256_is_hex(const char *text)
{
        return strlen(text) == SHA256_HEX_BYTES - 1 &&
               strspn(text, "0123456789abcdef") == SHA256_HEX_BYTES - 1;
}
