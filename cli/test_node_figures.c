/* Figures of a page are those of its devices together, and what is not known counts nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "cli/node_figures.h"

#define DEVICE(n, busy, used, temperature, power)                                                            \
        "remuda_device_utilization_ratio{uuid=\"" n "\",engine=\"compute\"} " busy "\n"                      \
        "remuda_device_utilization_ratio{uuid=\"" n "\",engine=\"memory\"} 1\n"                              \
        "remuda_device_memory_used_bytes{uuid=\"" n "\",type=\"device\"} " used "\n"                         \
        "remuda_device_temperature_celsius{uuid=\"" n "\",sensor=\"core\"} " temperature "\n"                \
        "remuda_device_power_watts{uuid=\"" n "\"} " power "\n"

#define TOTAL(n, bytes) "remuda_device_memory_total_bytes{uuid=\"" n "\",type=\"device\"} " bytes "\n"

static void test_page(void **state)
{
        struct node_figures f = node_figures_read(
                TOTAL("a", "100") TOTAL("b", "100") TOTAL("cpu", "999") DEVICE("a", "0.5", "10", "40", "300")
                        DEVICE("b", "1", "20", "71", "200.5") DEVICE("c", "0", "7", "-3", "1"));

        (void) state;
        assert_true(f.busy == 0.5 && f.busy_devices == 3);
        assert_true(f.used == 30 && f.memory == 200); /* of c it is not known how much there is */
        assert_true(f.temperature == 71 && f.power == 501.5);
}

static void test_nothing(void **state)
{
        static const char *const pages[] = { "",
                                             "\n",
                                             "remuda_device_power_watts{",
                                             "<html>503</html>",
                                             "remuda_device_power_watts_more{a=\"\"} 7\n",
                                             "remuda_device_memory_used_bytes{uuid=\"a} 7",
                                             "remuda_device_power_watts{a=\"\"} x\n" };

        (void) state;
        for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
                struct node_figures f = node_figures_read(pages[i]);

                assert_true(isnan(f.busy) && isnan(f.used) && isnan(f.memory) && isnan(f.temperature) &&
                            isnan(f.power));
        }
}

static void test_sum(void **state)
{
        struct node_figures sum = NODE_FIGURES_NONE, none = NODE_FIGURES_NONE,
                            one = node_figures_read(TOTAL("a", "100") DEVICE("a", "1", "10", "40", "300")),
                            two = node_figures_read(DEVICE("b", "0", "1", "60", "5")
                                                            DEVICE("c", "0", "1", "50", "5"));

        (void) state;
        node_figures_add(&sum, &none);
        assert_true(isnan(sum.busy) && isnan(sum.power));
        node_figures_add(&sum, &one);
        node_figures_add(&sum, &two);
        node_figures_add(&sum, &none);
        assert_true(fabs(sum.busy - 1.0 / 3) < 1e-12 && sum.busy_devices == 3); /* by devices, not by nodes */
        assert_true(sum.used == 10 && sum.memory == 100 && sum.temperature == 60 && sum.power == 310);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_page),
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_sum),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
