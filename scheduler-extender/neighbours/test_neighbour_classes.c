/* Classes of labels against what each term says of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "scheduler-extender/neighbours/neighbours.h"

/* As the class says, so say all terms; over terms and labels that come and go. */
static void classes_are_what_all_terms_say(void **state)
{
        struct neighbours_table table = { 0 };
        uint32_t labels[12] = { 0 }, demands[6] = { 0 };
        char text[128];

        (void) state;
        srand(1);
        for (int step = 0; step < 4000; step++) {
                uint32_t *label = &labels[rand() % 12], *demand = &demands[rand() % 6];

                if (rand() % 4 > 0) {
                        neighbours_release(&table, NEIGHBOURS_NONE, *label);
                        assert_true(text_format(text, sizeof(text), "ns\na=%d\nb=%d\nindex=%d\n", rand() % 3,
                                                rand() % 3, rand() % 100));
                        *label = rand() % 5 == 0 ? NEIGHBOURS_NONE : neighbours_hold_labels(&table, text);
                } else {
                        neighbours_release(&table, *demand, NEIGHBOURS_NONE);
                        assert_true(
                                text_format(text, sizeof(text),
                                            "A\thost\n@\tns\ni\ta\t%d\nS\tzone\t1\t0\t-\n@\t*\nn\tb\t%d\n",
                                            rand() % 4, rand() % 4));
                        *demand = rand() % 3 == 0 ? NEIGHBOURS_NONE : neighbours_hold_demands(&table, text);
                }
                for (size_t i = 0; i < 12; i++)
                        for (size_t j = 0; j < i; j++) {
                                bool alike = true, spoken = false;

                                for (uint32_t d = 0; d < table.demand_capacity; d++)
                                        for (size_t t = 0; t < table.demands[d].term_count; t++) {
                                                const struct neighbours_term *term =
                                                        &table.demands[d].terms[t];
                                                bool a = neighbours_selects(&table, term, labels[i]);

                                                alike = alike &&
                                                        a == neighbours_selects(&table, term, labels[j]);
                                                spoken = spoken || a;
                                        }
                                assert_int_equal(neighbours_alike(&table, labels[i], labels[j]), alike);
                                assert_int_equal(neighbours_class(&table, labels[i]) != NEIGHBOURS_NONE,
                                                 spoken);
                        }
        }
        for (size_t i = 0; i < 12; i++)
                neighbours_release(&table, NEIGHBOURS_NONE, labels[i]);
        for (size_t i = 0; i < 6; i++)
                neighbours_release(&table, demands[i], NEIGHBOURS_NONE);
        neighbours_free(&table);
}

int main(void)
{
        static const struct CMUnitTest tests[] = { cmocka_unit_test(classes_are_what_all_terms_say) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
