/* All chips of a container with several requests: the launcher asks the agent for these, and cuts them for
 * its ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/launcher/devices/claimed_devices.h"

#define GPU CLAIMED_DEVICES_PREFIX "NVIDIA_COM_GPU__"
#define NPU CLAIMED_DEVICES_PREFIX "HUAWEI_COM_ASCEND910__"

static void check(char *const *environment, const char *devices, const char *ids, const char *places)
{
        struct claimed_devices found;
        bool several = claimed_devices_find(environment, devices, &found);

        assert_int_equal(several, ids != NULL);
        if (!several)
                return;
        assert_string_equal(found.ids, ids);
        if (places == NULL)
                assert_null(found.places);
        else
                assert_string_equal(found.places, places);
        claimed_devices_free(&found);
}

static void requests_of_one_resource_are_put_together(void **state)
{
        char *two[] = { (char *) "A=b", (char *) GPU "u_1=GPU-b=0000:2,GPU-c=0000:3",
                        (char *) GPU "u_0=GPU-a=0000:1", NULL };

        (void) state;
        check(two, "GPU-b,GPU-c", "GPU-a,GPU-b,GPU-c", "0000:1,0000:2,0000:3");
        check(two, "GPU-a", "GPU-a,GPU-b,GPU-c", "0000:1,0000:2,0000:3");
        two[1] = (char *) GPU "u_1=GPU-b=,GPU-c=0000:3";
        check(two, "GPU-a", "GPU-a,GPU-b,GPU-c", NULL); /* one of them has no address */
}

static void what_is_whole_is_left_alone(void **state)
{
        char *one[] = { (char *) GPU "u_0=GPU-a=0000:1", NULL };
        char *unlike[] = { (char *) GPU "u_0=GPU-a=0000:1", (char *) NPU "u_1=n-0=0000:9", NULL };
        char *odd[] = { (char *) GPU,
                        (char *) CLAIMED_DEVICES_PREFIX "X=GPU-a=1",
                        (char *) CLAIMED_DEVICES_PREFIX,
                        (char *) CLAIMED_DEVICES_PREFIX "__=",
                        (char *) GPU "u_0=,,=,",
                        NULL };

        (void) state;
        check(one, "GPU-a", NULL, NULL);
        check(unlike, "GPU-a", NULL, NULL);
        check(unlike, "n-0", NULL, NULL);
        check(one, "GPU-z", NULL, NULL); /* the device plugin's */
        check(one, NULL, NULL, NULL);
        check(odd, "GPU-a", NULL, NULL);
        check(odd, "", NULL, NULL);
}

static void the_environment_has_them_from_now_on(void **state)
{
        (void) state;
        assert_int_equal(setenv(GPU "u_0", "GPU-a=", 1) | setenv(GPU "u_1", "GPU-b=0000:2", 1) |
                                 setenv("REMUDA_DEVICES", "GPU-b", 1) | setenv("REMUDA_PCI", "0000:2", 1),
                         0);
        claimed_devices_take();
        assert_string_equal(getenv("REMUDA_DEVICES"), "GPU-a,GPU-b");
        assert_null(getenv("REMUDA_PCI"));
        claimed_devices_take(); /* once more changes nothing */
        assert_string_equal(getenv("REMUDA_DEVICES"), "GPU-a,GPU-b");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_of_one_resource_are_put_together),
                cmocka_unit_test(what_is_whole_is_left_alone),
                cmocka_unit_test(the_environment_has_them_from_now_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
