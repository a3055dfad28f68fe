/* The device classes that are shipped are those of the vendors' rows: one for each vendor and each runtime.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/device_class.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims.h"

#define FILE_NAME "manifests/dra/classes.yaml"

static char *shipped(void)
{
        FILE *file = fopen(FILE_NAME, "re");
        char *text = calloc(1, 65536);

        assert_non_null(file);
        assert_non_null(text);
        assert_in_range(fread(text, 1, 65535, file), 1, 65534);
        (void) fclose(file);
        return text;
}

static unsigned count(const char *text, const char *word)
{
        unsigned found = 0;

        for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
                found++;
        return found;
}

/* A class of a vendor's name selects by the vendor, one of a runtime that is no vendor's name by the runtime;
 * neither gives a device that stands for several chips. */
static void demand(const char *text, const char *name, const char *attribute)
{
        char head[100], selector[300];

        (void) text_format(head, sizeof(head), "metadata: {name: " DEVICE_CLASS_PREFIX "%s, ", name);
        (void) text_format(selector, sizeof(selector),
                           "device.driver == \"" DRA_NAME_DRIVER "\" && device.attributes[\"" DRA_NAME_DRIVER
                           "\"].%s == \"%s\" && "
                           "device.attributes[\"" DRA_NAME_DRIVER "\"].?devices.orValue(1) == 1'}",
                           attribute, name);
        if (count(text, head) != 1 || count(text, selector) != 1)
                fail_msg(FILE_NAME " lacks the class of %s %s", attribute, name);
}

static void each_vendor_and_runtime_has_its_class(void **state)
{
        CLEANUP(free_p) char *text = shipped();
        unsigned wanted = 0;

        (void) state;
        for (size_t v = 0; vendors[v] != NULL; v++) {
                const char *name = vendors[v]->name, *runtime = vendors[v]->runtime;

                if (strcmp(name, "unknown") == 0)
                        continue;
                demand(text, name, "vendor");
                wanted += vendor_find(name, NULL) == vendors[v]; /* a vendor may have several rows */
                if (vendor_find(runtime, NULL) == NULL) {
                        demand(text, runtime, "runtime");
                        wanted++;
                }
        }
        assert_int_equal(count(text, "{name: group." DRA_NAME_DRIVER ", "), 1); /* what stands for several */
        assert_int_equal(count(text, "kind: DeviceClass"), wanted + 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_vendor_and_runtime_has_its_class),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
