/* Near: which names are told, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/near.h"

#define LONG16 "abcdefghijklmnop"

static void the_nearest_are_said(void **state)
{
        static const struct {
                const char *word;
                bool whole;
                const char *names[5], *said;
        } cases[] = {
                { "cuad", false, { "cuda", "cann", "rocm" }, "; did you mean cuda?" },
                { "H1OO", false, { "H100-SXM5-80GB", "A100" }, "; did you mean H100-SXM5-80GB?" },
                { "H1OO", true, { "H100-SXM5-80GB" }, "" },
                { "CUDA", false, { "cuda" }, "; did you mean cuda?" },
                { "x100", false, { "A100", "B100", "A100" }, "; did you mean A100 or B100?" },
                { "x100", false, { "A100", "B100", "C100", "D100" }, "; did you mean A100, B100 or C100?" },
                { "x10", false, { "A100", "x100" }, "; did you mean x100?" }, /* the nearer one alone */
                { "x", false, { "y" }, "" },                                  /* nothing of it is left */
                { "", false, { "y", "" }, "" },
                { "quite different", false, { "cuda" }, "" },
                { LONG16 LONG16 LONG16 LONG16,
                  false,
                  { LONG16 LONG16 LONG16 LONG16 "x" },
                  "; did you mean " LONG16 LONG16 LONG16 LONG16 "x?" },
                { LONG16 LONG16 LONG16 LONG16 "y", false, { LONG16 LONG16 LONG16 LONG16 "x" }, "" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct near near = { .word = cases[i].word, .whole = cases[i].whole };
                char said[120];

                for (size_t k = 0; k < ARRAY_SIZE(cases[i].names) && cases[i].names[k] != NULL; k++)
                        near_consider(&near, cases[i].names[k]);
                if (strcmp(near_say(&near, said, sizeof(said)), cases[i].said) != 0)
                        fail_msg("%s: %s", cases[i].word, said);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_nearest_are_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
