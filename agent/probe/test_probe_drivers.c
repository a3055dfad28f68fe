/* Drivers: every row is of a vendor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/probe/probe_driver.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

/* The libraries that are asked, whose they are, and under which name one at least must be looked for. */
/* clang-format off */
static const struct { const char *library, *vendor, *soname; } wanted[] = {
        { "NVML",     "nvidia",    "libnvidia-ml.so.1" },
        { "DCMI",     "huawei",    "libdcmi.so" },
        { "AMD SMI",  "amd",       "libamd_smi.so" },
        { "ROCm SMI", "amd",       "librocm_smi64.so" },
        { "ROCm SMI", "hygon",     "librocm_smi64.so" },
        { "CNDEV",    "cambricon", "libcndev.so" },
        { "HLML",     "habana",    "libhlml.so" },
        { "IXML",     "iluvatar",  "libixml.so" },
        { "HGML",     "thead",     "libhgml.so" },
        { "MTML",     "mthreads",  "libmtml.so" },
        { "MXSML",    "metax",     "libmxsml.so" },
        { "XPUML",    "kunlunxin", "libxpuml.so" },
        { "EFML",     "enflame",   "libefml.so" },
};
/* clang-format on */

static const struct probe_driver *find(const char *library, const char *vendor)
{
        for (const struct probe_driver *d = probe_drivers; d->vendor != NULL; d++)
                if (strcmp(d->library, library) == 0 && strcmp(d->vendor, vendor) == 0)
                        return d;
        return NULL;
}

static void every_library_has_a_row(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                const struct probe_driver *d = find(wanted[i].library, wanted[i].vendor);
                bool named = false;

                if (d == NULL || d->calls == NULL ||
                    (d->calls->open == NULL && d->calls->functions == NULL) || d->calls->sample == NULL)
                        fail_msg("%s of %s: no row, or nothing in it", wanted[i].library, wanted[i].vendor);
                for (size_t n = 0; n < PROBE_SONAMES_MAX && d->sonames[n] != NULL; n++)
                        named |= text_ends_with(d->sonames[n], wanted[i].soname);
                if (!named)
                        fail_msg("%s of %s is not looked for as %s", wanted[i].library, wanted[i].vendor,
                                 wanted[i].soname);
        }
}

static void every_row_is_of_a_vendor_and_stands_with_its_kin(void **state)
{
        (void) state;
        for (const struct probe_driver *d = probe_drivers; d->vendor != NULL; d++) {
                const struct probe_driver *first = probe_driver_find(d->vendor);

                if (vendor_find(d->vendor, NULL) == NULL)
                        fail_msg("%s: no such vendor", d->vendor);
                for (const struct probe_driver *between = first; between < d; between++)
                        if (strcmp(between->vendor, d->vendor) != 0)
                                fail_msg("%s of %s stands apart from the vendor's first row", d->library,
                                         d->vendor);
                if (d->sonames[0] == NULL)
                        fail_msg("%s of %s has no name to look for", d->library, d->vendor);
        }
        assert_null(probe_driver_find("no such vendor"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_library_has_a_row),
                cmocka_unit_test(every_row_is_of_a_vendor_and_stands_with_its_kin),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
