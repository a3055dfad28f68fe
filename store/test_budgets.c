/* What budgets leave of a set of pods that would go together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/budgets.h"

static json_t *parse(const char *text)
{
        json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

        if (json == NULL)
                fail_msg("%s", text);
        return json;
}

#define BUDGET(NAME, LEFT, SELECTOR)                                                                         \
        "{\"metadata\":{\"name\":\"" NAME "\"},\"spec\":{\"selector\":" SELECTOR                             \
        "},\"status\":{\"disruptionsAllowed\":" LEFT "}}"
#define POD(LABELS, READY)                                                                                   \
        "{\"metadata\":{\"labels\":" LABELS                                                                  \
        "},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" READY "\"}]}}"

static void a_selector_says_whose_budget_it_is(void **state)
{
        static const struct {
                const char *selector, *labels;
                bool its;
        } cases[] = {
                { "{\"matchLabels\":{\"a\":\"1\"}}", "{\"a\":\"1\",\"b\":\"2\"}", true },
                { "{\"matchLabels\":{\"a\":\"1\",\"b\":\"3\"}}", "{\"a\":\"1\",\"b\":\"2\"}", false },
                { "{}", "{\"a\":\"1\"}", true },
                { "null", "{\"a\":\"1\"}", false },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"0\",\"1\"]}]}",
                  "{\"a\":\"1\"}", true },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"0\"]}]}",
                  "{\"a\":\"1\"}", false },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"0\"]}]}",
                  "{\"a\":\"1\"}", true },
                { "{\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"NotIn\",\"values\":[\"0\"]}]}",
                  "{\"a\":\"1\"}", true },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}",
                  "{\"a\":\"1\"}", false },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", "{\"a\":\"1\"}", true },
                { "{\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"Exists\"}]}", "{\"a\":\"1\"}",
                  false },
                { "{\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"DoesNotExist\"}]}", "{\"a\":\"1\"}",
                  true },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{\"a\":\"1\"}",
                  false },
                { "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"0\"]}]}",
                  "{\"a\":\"1\"}", false },
                { "{\"matchExpressions\":[{}]}", "{\"a\":\"1\"}", false },
                { "{\"matchLabels\":{\"a\":\"1\"},\"matchExpressions\":[{\"key\":\"b\",\"operator\":"
                  "\"Exists\"}]}",
                  "{\"a\":\"1\"}", false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[400], pod_text[400], why[200] = "";
                json_t *budgets, *pod;

                (void) text_format(text, sizeof(text), "[" BUDGET("keep", "1", "%s") "]", cases[i].selector);
                (void) text_format(pod_text, sizeof(pod_text), POD("%s", "True"), cases[i].labels);
                budgets = parse(text);
                pod = parse(pod_text);
                budgets_begin(budgets);
                assert_true(budgets_take(budgets, pod, why, sizeof(why)));
                if (budgets_take(budgets, pod, why, sizeof(why)) == cases[i].its)
                        fail_msg("case %zu: %s", i, cases[i].selector);
                assert_int_equal(strstr(why, "budget keep has no room") != NULL, cases[i].its);
                json_decref(budgets);
                json_decref(pod);
        }
}

static void pods_are_counted_together(void **state)
{
        json_t *budgets = parse("[" BUDGET("none", "0", "{}") "," BUDGET("two", "2", "{}") "," BUDGET(
                       "one", "1", "{\"matchLabels\":{\"a\":\"1\"}}") ",{},7]"),
               *pod = parse(POD("{\"a\":\"1\"}", "True")), *other = parse(POD("{}", "True")),
               *sick = parse(POD("{\"a\":\"1\"}", "False")),
               *odd = parse("{\"status\":{\"conditions\":[{}]}}");
        char why[200];

        (void) state;
        budgets_begin(budgets);
        assert_int_equal(json_array_size(budgets),
                         2); /* nobody could go, and yet they may: it is not asked */
        assert_true(budgets_take(budgets, pod, why, sizeof(why)));
        assert_false(budgets_take(budgets, pod, why, sizeof(why)));
        assert_non_null(strstr(why, "budget one "));
        assert_true(budgets_take(budgets, sick, why, sizeof(why)));
        assert_true(budgets_take(budgets, odd, why, sizeof(why)));
        assert_true(budgets_take(budgets, other, why, sizeof(why))); /* who was refused has taken nothing */
        assert_false(budgets_take(budgets, other, why, sizeof(why)));
        assert_non_null(strstr(why, "budget two "));
        json_decref(budgets);
        json_decref(pod);
        json_decref(other);
        json_decref(sick);
        json_decref(odd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_selector_says_whose_budget_it_is),
                cmocka_unit_test(pods_are_counted_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
