/* Live shares: what is written is read, and what cannot be is refused with its field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/shards/live_shares.h"

static void what_is_written_is_read(void **state)
{
        uint32_t of[] = { 700, 324, 0 };
        struct live_shares wrote = { .step = 120, .count = 3, .of = of }, got;
        struct text bytes = { 0 };
        struct err err = { 0 };

        (void) state;
        live_shares_encode(&wrote, &bytes);
        assert_string_equal(bytes.data, "{\"step\":120,\"shares\":[700,324,0]}\n");
        assert_int_equal(live_shares_decode(bytes.data, bytes.size_bytes, &got, &err), 0);
        assert_int_equal(got.step, 120);
        assert_int_equal(got.count, 3);
        assert_memory_equal(got.of, of, sizeof(of));
        assert_int_equal(live_shares_check(&got, 3, 1024, &err), 0);
        live_shares_free(&got);
        text_free(&bytes);
}

static const struct {
        const char *sentence, *bytes, *word;
} refused[] = {
        { "half a file", "{\"step\":1,\"sha", "JSON" },
        { "no step", "{\"shares\":[1,2]}", "step" },
        { "no shares", "{\"step\":1}", "shares" },
        { "an empty world", "{\"step\":1,\"shares\":[]}", "shares" },
        { "a negative share", "{\"step\":1,\"shares\":[4,-1]}", "shares[1]" },
        { "half a sample", "{\"step\":1,\"shares\":[1.5,2]}", "shares[0]" },
        { "more than a batch can hold", "{\"step\":1,\"shares\":[1,99999999]}", "shares[1]" },
        { "too few samples", "{\"step\":1,\"shares\":[1,2]}", "add up to 3, the batch is 4" },
        { "another world", "{\"step\":1,\"shares\":[1,2,1]}", "3 numbers for a world of 2" },
};

static void what_cannot_be_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct live_shares got;
                struct err err = { 0 };
                int r = live_shares_decode(refused[i].bytes, strlen(refused[i].bytes), &got, &err);

                if (r == 0)
                        r = live_shares_check(&got, 2, 4, &err);
                if (r >= 0 || strstr(err.msg, refused[i].word) == NULL)
                        fail_msg("%s: %d '%s'", refused[i].sentence, r, err.msg);
                live_shares_free(&got);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(what_cannot_be_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
