/* Who has lost a race for a device: the extender evicts nobody else, and nobody who runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/claims/claims_lost.h"

static void tell_slice(struct claims *c, const char *first, const char *second, int64_t of)
{
        struct claims_slice_facts facts = { .driver = DRA_NAME_DRIVER,
                                            .pool = "a",
                                            .node = "a",
                                            .generation = 1,
                                            .slice_count = of,
                                            .devices = { { .name = first }, { .name = second } },
                                            .device_count = second == NULL ? 1 : 2 };

        assert_int_equal(claims_set_slice(c, "s", &facts), 0);
}

static void tell_claim(struct claims *c, const char *driver, const char *node, const char *device)
{
        struct claims_claim_facts facts = {
                .allocated = true,
                .node = node,
                .results = { { .driver = driver, .pool = "a", .device = device } },
                .result_count = 1
        };

        assert_int_equal(claims_set_claim(c, "ns/c", &facts), 0);
}

static void tell_pod(struct claims *c, bool begun, bool made)
{
        struct claims_pod_facts facts = {
                .names = { "c" }, .made = { made }, .name_count = 1, .has_claims = true, .begun = begun
        };

        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
}

/* clang-format off */
static const struct { const char *what, *driver, *node; bool begun, named; int64_t of; bool goes; } rows[] = {
        { "its device is not offered any more",      DRA_NAME_DRIVER, "a", false, false, 1, true },
        { "... but it has begun",                    DRA_NAME_DRIVER, "a", true,  false, 1, false },
        { "... but a slice of the pool is missing",  DRA_NAME_DRIVER, "a", false, false, 2, false },
        { "... but of another driver",               "gpu.example",     "a", false, false, 1, false },
        { "... but it was allocated elsewhere",      DRA_NAME_DRIVER, "b", false, false, 1, false },
        { "... but the claim stays without the pod", DRA_NAME_DRIVER, "a", false, true,  1, false },
};
/* clang-format on */

static void who_cannot_begin_is_named(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct claims *c = claims_new();
                const char *lost;

                assert_non_null(c);
                tell_slice(c, "gpu-0", "gpu-1", 1);
                tell_claim(c, rows[i].driver, rows[i].node, "gpu-1");
                tell_pod(c, rows[i].begun, !rows[i].named);
                assert_null(claims_lost(c, "ns/p", "a"));
                tell_slice(c, "gpu-0", NULL, rows[i].of);
                lost = claims_lost(c, "ns/p", "a");
                if ((lost != NULL) != rows[i].goes)
                        fail_msg("%s: %s", rows[i].what, lost == NULL ? "nothing" : lost);
                if (lost != NULL)
                        assert_string_equal(lost, "gpu-1");
                tell_slice(c, "gpu-0", "gpu-1", 1); /* it was given back */
                assert_null(claims_lost(c, "ns/p", "a"));
                claims_free(c);
        }
}

/* A kubelet that starts deletes the slices of its node: nothing is known then. */
static void slices_that_are_wiped_say_nothing(void **state)
{
        struct claims *c = claims_new();

        (void) state;
        assert_non_null(c);
        tell_claim(c, DRA_NAME_DRIVER, "a", "gpu-1");
        tell_pod(c, false, true);
        assert_null(claims_lost(c, "ns/p", "a"));
        tell_slice(c, "gpu-0", NULL, 1);
        assert_non_null(claims_lost(c, "ns/p", "a"));
        assert_null(claims_lost(c, "ns/other", "a"));
        assert_null(claims_lost(c, "ns/p", "b"));
        assert_int_equal(claims_set_slice(c, "s", NULL), 0);
        assert_null(claims_lost(c, "ns/p", "a"));
        claims_free(c);
}

static void count(void *userdata, const char *pod_key)
{
        assert_string_equal(pod_key, "ns/p");
        (*(unsigned *) userdata)++;
}

/* kube-scheduler's claim for extended resources went, and its name stayed. */
static void who_names_a_claim_that_is_gone_is_named(void **state)
{
        struct claims_pod_facts facts = { .extended = "c" };
        struct claims *c = claims_new();
        unsigned seen = 0;

        (void) state;
        assert_non_null(c);
        assert_null(claims_lost_gone(c, "ns/p"));
        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
        assert_string_equal(claims_lost_gone(c, "ns/p"), "ns/c"); /* it went before it was told */
        tell_claim(c, DRA_NAME_DRIVER, "a", "gpu-1");
        assert_null(claims_lost_gone(c, "ns/p"));
        assert_int_equal(claims_set_claim(c, "ns/c", NULL), 0);
        assert_string_equal(claims_lost_gone(c, "ns/p"), "ns/c");
        claims_lost_gone_each(c, count, &seen);
        assert_int_equal(seen, 1);
        tell_claim(c, DRA_NAME_DRIVER, "a", "gpu-1");
        facts.extended = "d"; /* another one */
        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
        assert_string_equal(claims_lost_gone(c, "ns/p"), "ns/d");
        facts.extended = "c";
        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
        assert_null(claims_lost_gone(c, "ns/p"));
        assert_int_equal(claims_set_claim(c, "ns/c", NULL), 0);
        facts.begun = true;
        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
        assert_null(claims_lost_gone(c, "ns/p"));
        facts.begun = false;
        assert_int_equal(claims_set_pod(c, "ns/p", &facts), 0);
        tell_claim(c, DRA_NAME_DRIVER, "a", "gpu-1");
        assert_null(claims_lost_gone(c, "ns/p"));
        claims_lost_gone_each(c, count, &seen);
        assert_int_equal(seen, 1);
        tell_pod(c, false, true); /* one by name is the resource claim controller's */
        assert_int_equal(claims_set_claim(c, "ns/c", NULL), 0);
        assert_null(claims_lost_gone(c, "ns/p"));
        claims_free(c);
}

/* Ten seconds, without a gap in what was seen; asked once, and again after as long. */
static void patience_is_for_every_look(void **state)
{
        struct claims_lost_watch watch = { 0 };
        const uint64_t second = 1000000;
        uint64_t now = 5 * second;
        unsigned asked = 0;

        (void) state;
        for (int i = 0; i < 10; i++, now += second)
                assert_false(claims_lost_judge(&watch, true, now));
        assert_true(claims_lost_judge(&watch, true, now));
        for (int i = 0; i < 20; i++)
                asked += claims_lost_judge(&watch, true, now += second);
        assert_int_equal(asked, 2);

        watch = (struct claims_lost_watch){ 0 };
        for (int i = 0; i < 30; i++) /* it comes and goes */
                assert_false(claims_lost_judge(&watch, i % 9 != 0, now += second));
        watch = (struct claims_lost_watch){ 0 };
        for (int i = 0; i < 30; i++) /* nobody looked meanwhile: it may have been well */
                assert_false(claims_lost_judge(&watch, true, now += CLAIMS_LOST_LOOK + 1));
}

static bool has_begun(const char *status)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct claims_pod_facts facts;
        json_t *pod;

        text_printf(&text,
                    "{\"spec\":{\"resourceClaims\":[{\"name\":\"x\",\"resourceClaimName\":\"c\"}]},"
                    "\"status\":%s}",
                    status);
        pod = json_loads(text.data, 0, NULL);
        assert_non_null(pod);
        claims_json_pod(pod, &facts);
        json_decref(pod);
        return facts.begun;
}

static void a_sandbox_is_a_beginning(void **state)
{
        (void) state;
        assert_false(has_begun("{}"));
        assert_false(has_begun(
                "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodReadyToStartContainers\",\"status\":"
                "\"False\"}],"
                "\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}"));
        assert_true(
                has_begun("{\"conditions\":[{\"type\":\"PodReadyToStartContainers\",\"status\":\"True\"}]}"));
        assert_true(has_begun(
                "{\"conditions\":[{\"type\":\"PodReadyToStartContainers\",\"status\":\"Unknown\"}]}"));
        assert_true(has_begun("{\"containerStatuses\":[{\"state\":{\"running\":{}}}]}"));
        assert_true(has_begun("{\"initContainerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":0}}}]}"));
        assert_true(has_begun(
                "{\"containerStatuses\":[{\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{}}}]}"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_cannot_begin_is_named),
                cmocka_unit_test(slices_that_are_wiped_say_nothing),
                cmocka_unit_test(who_names_a_claim_that_is_gone_is_named),
                cmocka_unit_test(patience_is_for_every_look),
                cmocka_unit_test(a_sandbox_is_a_beginning),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
