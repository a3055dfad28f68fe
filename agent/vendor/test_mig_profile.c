/* MIG profiles: the names that NVIDIA documents for each board (its MIG user guide and the MIG manager's
 * configuration), as far as an instance's number tells them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/vendor/mig_profile.h"
#include "agent/vendor/rows.h"
#include "base/cleanup.h"

/* "" = cannot be known: 3g or 4g. */
static const struct {
        const char *model, *whole, *half, *quarter, *eighth;
} rows[] = {
        { "A30", "4g.24gb", "2g.12gb", "1g.6gb", "" },
        { "A100-SXM4-40GB", "7g.40gb", "", "2g.10gb", "1g.5gb" },
        { "A100-PCIE-40GB", "7g.40gb", "", "2g.10gb", "1g.5gb" },
        { "A100-SXM4-80GB", "7g.80gb", "", "2g.20gb", "1g.10gb" },
        { "A800-PCIE-80GB", "7g.80gb", "", "2g.20gb", "1g.10gb" },
        { "H100-SXM5-80GB", "7g.80gb", "", "2g.20gb", "1g.10gb" },
        { "H100-NVL-94GB", "7g.94gb", "", "2g.24gb", "1g.12gb" },
        { "H100-96GB", "7g.96gb", "", "2g.24gb", "1g.12gb" },
        { "H20", "7g.96gb", "", "2g.24gb", "1g.12gb" },
        { "GH200-96GB", "7g.96gb", "", "2g.24gb", "1g.12gb" },
        { "H200-SXM-141GB", "7g.141gb", "", "2g.35gb", "1g.18gb" },
        { "H200-NVL-141GB", "7g.141gb", "", "2g.35gb", "1g.18gb" },
        { "GH200-144GB", "7g.144gb", "", "2g.36gb", "1g.18gb" },
        { "B200", "7g.180gb", "", "2g.45gb", "1g.23gb" },
        { "GB200", "7g.186gb", "", "2g.47gb", "1g.23gb" },
        { "B300", "7g.269gb", "", "2g.67gb", "1g.34gb" },
        { "GB300", "7g.278gb", "", "2g.70gb", "1g.35gb" },
        { "RTX-PRO-6000-BSE", "4g.96gb", "2g.48gb", "1g.24gb", "" },
        { "L40S", "", "", "", "" }, /* has no MIG */
};

static const struct vendor_model *model_of(const char *name)
{
        const struct vendor_model *model = vendor_nvidia.models;

        while (model->name != NULL && strcmp(model->name, name) != 0)
                model++;
        return model;
}

static void profiles_are_called_as_nvidia_documents(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct vendor_model *model = model_of(rows[i].model);

                if (model->name == NULL)
                        fail_msg("no model %s", rows[i].model);
                for (unsigned gi = 0; gi < MIG_INSTANCES; gi++) {
                        const char *name = gi >= 7   ? rows[i].eighth
                                           : gi >= 3 ? rows[i].quarter
                                           : gi >= 1 ? rows[i].half
                                                     : rows[i].whole;
                        struct mig_profile profile;

                        mig_profile_of(model->device, model->gib, gi, &profile);
                        if (strcmp(profile.name, name) != 0)
                                fail_msg("instance %u of %s: %s, documented is %s", gi, rows[i].model,
                                         profile.name, name);
                }
        }
}

static void what_is_not_known_has_no_name(void **state)
{
        struct mig_profile profile;
        char resource[64];

        (void) state;
        mig_profile_of(0x2335, 0, 7, &profile); /* its memory is not known */
        assert_string_equal(profile.name, "");
        mig_profile_of(0x9999, 80, 7, &profile); /* a board that nobody has heard of */
        assert_string_equal(profile.name, "");
        assert_int_equal(profile.share, 8);
        mig_profile_resource(&profile, resource, sizeof(resource));
        assert_string_equal(resource, "nvidia.com/mig");
        mig_profile_of(0x2335, 141, MIG_INSTANCES, &profile);
        assert_string_equal(profile.name, "");
        mig_profile_of(0x2335, 141, 3, &profile);
        mig_profile_resource(&profile, resource, sizeof(resource));
        assert_string_equal(resource, "nvidia.com/mig-2g.35gb");
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(profiles_are_called_as_nvidia_documents),
                                            cmocka_unit_test(what_is_not_known_has_no_name) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
