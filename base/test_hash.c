/* Hash: each byte counts, wherever it lies, and so does how many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

#define BYTES 300 /* more than is hashed in lanes, and not whole words */

static void each_bit_counts(void **state)
{
        unsigned char bytes[BYTES];

        (void) state;
        for (size_t i = 0; i < BYTES; i++)
                bytes[i] = (unsigned char) (i * 37);
        for (size_t size = 1; size <= BYTES; size += size < 40 ? 1 : 13) {
                uint64_t hash = hash_bytes(bytes, size, 5);

                assert_true(hash != hash_bytes(bytes, size - 1, 5));
                assert_true(hash != hash_bytes(bytes, size, 6));
                for (size_t i = 0; i < 8 * size; i++) {
                        bytes[i / 8] ^= (unsigned char) (1 << i % 8);
                        if (hash_bytes(bytes, size, 5) == hash)
                                fail_msg("bit %zu of %zu bytes does not count", i, size);
                        bytes[i / 8] ^= (unsigned char) (1 << i % 8);
                }
                assert_true(hash == hash_bytes(bytes, size, 5));
        }
}

static void order_counts(void **state)
{
        /* the second: a first lane of two halves that are alike */
        static const uint64_t seeds[] = { 0, UINT64_C(0xa0761d6478bd642f) ^ UINT64_C(0x1234567812345678) };
        unsigned char bytes[BYTES], swapped[BYTES];

        (void) state;
        for (size_t i = 0; i < BYTES; i++)
                bytes[i] = (unsigned char) i;
        for (size_t s = 0; s < 2; s++)
                for (size_t a = 0; a + 8 <= 256; a += 8) /* words that change places, in a lane or not */
                        for (size_t b = a + 8; b + 8 <= 256; b += 8) {
                                memcpy(swapped, bytes, BYTES);
                                memcpy(swapped + a, bytes + b, 8);
                                memcpy(swapped + b, bytes + a, 8);
                                assert_true(hash_bytes(bytes, BYTES, seeds[s]) !=
                                            hash_bytes(swapped, BYTES, seeds[s]));
                        }
}

static void zeros_of_other_lengths_differ(void **state)
{
        static const unsigned char zeros[2 * BYTES];
        uint64_t seen[2 * BYTES];

        (void) state;
        for (size_t size = 0; size < sizeof(zeros); size++) {
                seen[size] = hash_bytes(zeros, size, 0);
                for (size_t before = 0; before < size; before++)
                        assert_true(seen[size] != seen[before]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_bit_counts),
                cmocka_unit_test(order_counts),
                cmocka_unit_test(zeros_of_other_lengths_differ),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
