/* Weights in 8 bits: each channel has its own levels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/export/channels.h"

/* A thousand times larger weights of one channel cost the other no level: with one scale for both it would be
 * zeros. */
static void a_large_channel_costs_the_others_nothing(void **state)
{
        float values[] = { 1000, 0.5F, -500, -1, 250, 0.25F },
              wanted[] = { 1000, 0.5F, -500, -1, 250, 0.25F };
        float scales[2];
        int8_t bytes[6];

        (void) state;
        channels_quantise(3, 2, values, bytes, scales);
        assert_int_equal(bytes[0], 127);
        assert_int_equal(bytes[3], -127);
        for (size_t i = 0; i < 6; i++) {
                float largest = i % 2 == 0 ? 1000 : 1;

                assert_true(fabsf(values[i] - wanted[i]) <= largest / 254 * 1.001F);
                assert_true(values[i] == (float) bytes[i] * scales[i % 2]);
        }
}

static void a_channel_of_zeros_stays_one(void **state)
{
        float values[] = { 0, 3, 0, -3 }, scales[2];
        int8_t bytes[4];

        (void) state;
        channels_quantise(2, 2, values, bytes, scales);
        assert_true(scales[0] == 1 && values[0] == 0 && values[2] == 0);
        assert_int_equal(bytes[1], 127);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_large_channel_costs_the_others_nothing),
                cmocka_unit_test(a_channel_of_zeros_stays_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
