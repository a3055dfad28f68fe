/* Services: who is asked about a device, and what is made of the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/config/services.h"
#include "base/cleanup.h"
#include "base/text.h"

static size_t two_hold(void *userdata, const struct holder **ret, uint64_t *ret_asked_usec)
{
        static struct holder holders[2];

        (void) userdata;
        (void) ret_asked_usec;
        for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
                (void) text_format(holders[i].device_id, sizeof(holders[i].device_id), "gpu-%zu", i);
                (void) text_format(holders[i].pod_namespace, sizeof(holders[i].pod_namespace), "team-%zu", i);
                (void) text_copy(holders[i].pod, sizeof(holders[i].pod), "p");
        }
        *ret = holders;
        return ARRAY_SIZE(holders);
}

static void a_pod_holds_what_is_said_of_it_alone(void **state)
{
        struct services services = { .holders = two_hold };

        (void) state;
        assert_true(services_is_held(&services, "gpu-1", NULL, NULL));
        assert_false(services_is_held(&services, "gpu-2", NULL, NULL));
        assert_true(services_is_held(&services, "gpu-1", "team-1", "p"));
        assert_false(services_is_held(&services, "gpu-1", "team-0", "p"));
        assert_false(services_is_held(&services, "gpu-1", "team-1", "q"));
        services.holders = NULL; /* nobody is asked: nobody holds anything */
        assert_false(services_is_held(&services, "gpu-1", NULL, NULL));
}

static void keep_event(void *userdata, const char *type, const char *reason, const char *device,
                       const char *sentence)
{
        text_printf(userdata, "%s %s %s %s", type, reason, device, sentence);
}

static void an_event_is_a_sentence(void **state)
{
        CLEANUP(text_free) struct text said = { 0 };
        struct services services = { .event = keep_event, .userdata = &said };

        (void) state;
        services_event(&services, "Warning", "Gone", "gpu-1", "%u of %u", 1u, 8u);
        assert_string_equal(said.data, "Warning Gone gpu-1 1 of 8");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_holds_what_is_said_of_it_alone),
                cmocka_unit_test(an_event_is_a_sentence),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
