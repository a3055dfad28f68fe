/* The vectors of FIPS 180-4, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"

/* clang-format off */
static const struct {
        const char *what, *piece;
        size_t times;
        const char *digest;
} cases[] = { /* FIPS 180-4 examples, and `sha256sum` of lengths around the block */
        { "empty",          "",    1,       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc",            "abc", 1,       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "two blocks",     "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                                            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "a million of a", "a",   1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
        { "55 of a",        "a",   55,      "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { "56 of a",        "a",   56,      "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { "64 of a",        "a",   64,      "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
};
/* clang-format on */

static void known_digests(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char digest[SHA256_HEX_BYTES];
                struct sha256 hash;

                sha256_init(&hash);
                for (size_t n = 0; n < cases[i].times; n++)
                        sha256_update(&hash, cases[i].piece, strlen(cases[i].piece));
                sha256_final_hex(&hash, digest);
                if (strcmp(digest, cases[i].digest) != 0)
                        fail_msg("%s: want %s, got %s", cases[i].what, cases[i].digest, digest);
        }
}

static void pieces_of_any_size_give_one_digest(void **state)
{
        char whole[SHA256_HEX_BYTES], pieces[SHA256_HEX_BYTES];
        unsigned char data[1000];
        struct sha256 hash;

        (void) state;
        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (unsigned char) (i * 7);
        sha256_init(&hash);
        sha256_update(&hash, data, sizeof(data));
        sha256_final_hex(&hash, whole);
        for (size_t step = 1; step < 200; step++) {
                sha256_init(&hash);
                for (size_t at = 0; at < sizeof(data); at += step)
                        sha256_update(&hash, data + at, at + step > sizeof(data) ? sizeof(data) - at : step);
                sha256_final_hex(&hash, pieces);
                if (strcmp(whole, pieces) != 0)
                        fail_msg("pieces of %zu: want %s, got %s", step, whole, pieces);
        }
}

/* RFC 4231, test cases 1, 2 and 6. */
static void known_proofs(void **state)
{
        static const struct {
                size_t key_bytes;
                const char *key, *data, *want;
        } rows[] = {
                { 20, "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
                  "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
                { 4, "Jefe", "what do ya want for nothing?",
                  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
                { 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
                  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        };
        char long_key[131], proof[SHA256_HEX_BYTES];

        (void) state;
        memset(long_key, 0xaa, sizeof(long_key));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sha256_hmac hmac;

                sha256_hmac_init(&hmac, rows[i].key != NULL ? rows[i].key : long_key, rows[i].key_bytes);
                sha256_update(&hmac.inner, rows[i].data, strlen(rows[i].data));
                sha256_hmac_final_hex(&hmac, proof);
                assert_string_equal(proof, rows[i].want);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(known_digests),
                cmocka_unit_test(known_proofs),
                cmocka_unit_test(pieces_of_any_size_give_one_digest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
