/* SHA-256 (FIPS 180-4): the fingerprint of a program or a checkpoint; and with a key, a proof.
 *
 * Pure: no allocation, no I/O. Feed any number of pieces, then finish once. O(bytes). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES     32
#define SHA256_HEX_BYTES 65 /* lower case, with the terminating NUL */

struct sha256 {
        uint32_t state[8];
        uint64_t size_bytes;
        uint8_t block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *bytes, size_t size_bytes);
void sha256_final(struct sha256 *hash, uint8_t ret[SHA256_BYTES]);

/* HMAC-SHA256 (RFC 2104): feed `inner` what is to be vouched for. */
struct sha256_hmac {
        struct sha256 inner, outer;
};
void sha256_hmac_init(struct sha256_hmac *hmac, const void *key, size_t key_bytes);
void sha256_hmac_final_hex(struct sha256_hmac *hmac, char ret[SHA256_HEX_BYTES]);

/* sha256_hex() - 32 bytes as 64 lower case digits and a NUL. */
void sha256_hex(const uint8_t bytes[SHA256_BYTES], char ret[SHA256_HEX_BYTES]);

/* sha256_is_hex() - is this what sha256_final_hex() writes? */
bool sha256_is_hex(const char *text);

/* sha256_final_hex() - the same, as 64 lower case digits and a NUL. */
void sha256_final_hex(struct sha256 *hash, char ret[SHA256_HEX_BYTES]);
