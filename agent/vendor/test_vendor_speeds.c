/* A model has the row that its name begins with, as long as no number is cut in two; one that a person wrote
 * has to be known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/vendor/speeds.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"

/* clang-format off */
static const struct { const char *vendor, *model, *row; } found[] = {
        { "nvidia", "H100-SXM5-80GB", "H100-SXM" },
        { "nvidia", "H100-96GB",      "H100" },
        { "nvidia", "A10G",           "A10" },
        { "nvidia", "A1000-Laptop",   NULL }, /* not an A10, not an A100 */
        { "nvidia", "T400-4GB",       NULL }, /* not a T4 */
        { "nvidia", "K40m",           "K40" },
        { "nvidia", "M40-24GB",       "M40" },
        { "nvidia", "P40",            "P40" },
        { "amd",    "MI250X",         "MI250" },
        { "amd",    "A100",           NULL },
        { "huawei", "Ascend310P3",    "Ascend310P" },
};
static const struct { const char *model, *row; } written[] = {
        { "A100",      "A100" },
        { "a100",      "A100" },
        { "H100-SXM",  "H100-SXM" },
        { "H100-mine", "H100" },
        { "A10G",      "A10" }, /* stands in the vendor's table */
        { "MI250X",    "MI250" },
        { "k40m",      "K40" },
        { "A101",      NULL },
        { "A100x",     NULL },
        { "H10",       NULL },
        { "",          NULL },
};
static const struct { const char *model, *near[SPEED_NEAR_MAX]; } near_ones[] = {
        { "A101",       { "A10", "A100" } },
        { "h1000",      { "H100" } },
        { "Ascend910D", { "Ascend910A", "Ascend910B", "Ascend910C" } },
        { "x",          { NULL } },
        { "gaudi9",     { "Gaudi2", "Gaudi3" } },
        { "nothing like any of them, and longer than each", { NULL } },
};
/* clang-format on */

static void a_row_cuts_no_number_in_two(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
                const struct speed *row = speed_find(found[i].vendor, found[i].model);

                if ((row == NULL) != (found[i].row == NULL) ||
                    (row != NULL && strcmp(row->model, found[i].row) != 0))
                        fail_msg("%s: %s", found[i].model, row == NULL ? "none" : row->model);
        }
}

static void what_a_person_wrote_is_known_or_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
                const struct speed *row = speed_find_model(written[i].model);

                if ((row == NULL) != (written[i].row == NULL) ||
                    (row != NULL && strcmp(row->model, written[i].row) != 0))
                        fail_msg("%s: %s", written[i].model, row == NULL ? "none" : row->model);
        }
}

static void every_name_of_a_vendor_may_be_written(void **state)
{
        (void) state;
        for (size_t v = 0; vendors[v] != NULL; v++)
                for (const struct vendor_model *m = vendors[v]->models; m != NULL && m->name != NULL; m++)
                        if (speed_find(vendors[v]->name, m->name) != NULL)
                                assert_non_null(speed_find_model(m->name));
}

static void the_nearest_names_are_told(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(near_ones); i++) {
                const char *near[SPEED_NEAR_MAX] = { NULL };
                size_t count = speed_near_models(near_ones[i].model, near);

                for (size_t k = 0; k < SPEED_NEAR_MAX; k++) {
                        const char *want = near_ones[i].near[k];

                        if ((k < count) != (want != NULL) || (want != NULL && strcmp(near[k], want) != 0))
                                fail_msg("%s: %zu is %s", near_ones[i].model, k,
                                         k < count ? near[k] : "none");
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_row_cuts_no_number_in_two),
                cmocka_unit_test(what_a_person_wrote_is_known_or_refused),
                cmocka_unit_test(every_name_of_a_vendor_may_be_written),
                cmocka_unit_test(the_nearest_names_are_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
