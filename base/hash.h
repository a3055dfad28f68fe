/* Hash: 64 bits over bytes, for tables and for noticing that something is not as it was. Pure.
 *
 * Several pieces are one hash by giving the result so far as the seed of the next:
 *
 *         hash = hash_bytes(name, strlen(name), 0);
 *         hash = hash_bytes(&size, sizeof(size), hash);
 *
 * Not for secrets, and not to be kept: another version may compute another one (a digest is base/sha256.h).
 * Where keys come from outside, seed it with something they cannot know. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t size_bytes, uint64_t seed);
uint64_t hash_text(const char *text, uint64_t seed); /* the bytes before the final 0 */
