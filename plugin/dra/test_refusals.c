/* Refusals: a claim is told once in a while, a namespace's are told a few at a time, and none pays for
 * another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "plugin/dra/refusals.h"

#define SECOND UINT64_C(1000000)

static bool tell(struct refusals *refusals, const char *namespace_, unsigned claim, uint64_t now_usec)
{
        char uid[DRA_STATE_UID_BYTES];

        (void) text_format(uid, sizeof(uid), "claim-%u", claim);
        return refusals_tell(refusals, namespace_, uid, now_usec);
}

static void a_claim_is_told_once_in_five_minutes(void **state)
{
        struct refusals r = { .namespaces = { { .full_usec = 0 } } };

        (void) state;
        assert_true(tell(&r, "a", 1, SECOND));
        assert_false(tell(&r, "a", 1, SECOND));
        assert_false(tell(&r, "a", 1, 300 * SECOND));
        assert_true(tell(&r, "a", 2, 300 * SECOND));
        assert_true(tell(&r, "a", 1, 301 * SECOND));
        assert_false(tell(&r, "a", 1, 302 * SECOND));
}

static void a_namespace_has_a_burst_and_then_one_each_half_minute(void **state)
{
        struct refusals r = { .namespaces = { { .full_usec = 0 } } };
        unsigned told = 0;

        (void) state;
        for (unsigned i = 0; i < 1000; i++)
                told += tell(&r, "a", i, SECOND);
        assert_int_equal(told, REFUSALS_BURST);
        for (unsigned i = 0; i < 600; i++) /* ten minutes */
                told += tell(&r, "a", 1000 + i, (2 + i) * SECOND);
        assert_in_range(told, REFUSALS_BURST + 19, REFUSALS_BURST + 20);
        assert_true(tell(&r, "b", 1, 602 * SECOND)); /* whom that costs nothing */
        for (unsigned i = 0; i < 1000; i++)          /* a day later all of the burst is there, and no more */
                told += tell(&r, "a", 2000 + i, 86400 * SECOND);
        assert_in_range(told, 2 * REFUSALS_BURST + 19, 2 * REFUSALS_BURST + 20);
}

static void of_many_namespaces_the_quietest_is_forgotten(void **state)
{
        struct refusals r = { .namespaces = { { .full_usec = 0 } } };
        char name[16];

        (void) state;
        for (unsigned i = 0; i < REFUSALS_BURST; i++)
                assert_true(tell(&r, "noisy", i, SECOND));
        for (unsigned i = 0; i < 10 * REFUSALS_NAMESPACES; i++) {
                (void) text_format(name, sizeof(name), "n%u", i);
                assert_true(tell(&r, name, 0, SECOND));
        }
        assert_false(tell(&r, "noisy", 99, SECOND)); /* it is as noisy as before */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_claim_is_told_once_in_five_minutes),
                cmocka_unit_test(a_namespace_has_a_burst_and_then_one_each_half_minute),
                cmocka_unit_test(of_many_namespaces_the_quietest_is_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
