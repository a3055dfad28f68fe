/* Which profiles of a KubeSchedulerConfiguration leave preemption to the extender. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/vendor/mig_profile.h"
#include "agent/vendor/rows.h"
#include "base/cleanup.h"
#include "cli/scheduler_profile.h"

#define OFF(POINT) "plugins: {" POINT ": {disabled: [{name: DefaultPreemption}]}}"

static const struct {
        const char *text, *name;
        bool preempts;
} rows[] = {
        { "", "default-scheduler", true },
        { "profiles: []", "default-scheduler", true },
        { "profiles: [{schedulerName: remuda}]", "remuda", true },
        { "profiles: [{schedulerName: remuda, " OFF("postFilter") "}]", "remuda", false },
        { "profiles: [{schedulerName: remuda, " OFF("multiPoint") "}]", "remuda", false },
        { "profiles: [{schedulerName: remuda, " OFF("filter") "}]", "remuda", true },
        { "profiles: [{plugins: {postFilter: {disabled: [{name: \"*\"}]}}}]", "default-scheduler", false },
        { "profiles: [{plugins: {postFilter: {disabled: [{name: \"*\"}], enabled: [{name: "
          "DefaultPreemption}]}}}]",
          "default-scheduler", true },
        { "profiles: [{schedulerName: remuda, " OFF("postFilter") "}, {schedulerName: b}]", "b", true },
        { "profiles: [{schedulerName: remuda, plugins: {postFilter: {disabled: [{name: Other}, 7, {}]}}}]",
          "remuda", true },
        { "profiles: 7", "default-scheduler", true },
};

static void each_profile_is_judged(void **state)
{
        struct scheduler_profile profile;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(scheduler_profile_read(rows[i].text, &profile, &err), 0);
                if (strcmp(profile.name, rows[i].name) != 0 || profile.preempts != rows[i].preempts)
                        fail_msg("%s: %s, preempts: %d", rows[i].text, profile.name, profile.preempts);
        }
        assert_int_equal(scheduler_profile_read("profiles: [", &profile, &err), -EBADMSG);
}

static void who_comes_to_the_extender(void **state)
{
        (void) state;
        assert_true(scheduler_profile_asks("extenders: [{}]", "a.b/c"));
        assert_true(scheduler_profile_asks("extenders: [{managedResources: []}]", "a.b/c"));
        assert_true(scheduler_profile_asks("extenders: [{managedResources: [{name: x}, {name: a.b/c}]}]",
                                           "a.b/c"));
        assert_false(scheduler_profile_asks("extenders: [{managedResources: [{name: x}, 7]}]", "a.b/c"));
        assert_false(scheduler_profile_asks("extenders: []", "a.b/c"));
        assert_false(scheduler_profile_asks("[", "a.b/c"));
}

/* scheduler.yaml of the shipped ConfigMap. */
static void shipped(char text[32768])
{
        static const char key[] = "  scheduler.yaml: |\n";
        FILE *file = fopen("manifests/scheduler/configmap.yaml", "re");
        char whole[32768], *from, *to;
        size_t n;

        assert_non_null(file);
        n = fread(whole, 1, sizeof(whole) - 1, file);
        (void) fclose(file);
        whole[n] = '\0';
        from = strstr(whole, key);
        assert_non_null(from);
        from += strlen(key);
        to = strstr(from, "\n  extender.yaml:");
        assert_non_null(to);
        *to = '\0'; /* what is left is indented evenly, and so is YAML */
        memcpy(text, from, (size_t) (to - from) + 1);
}

/* Slices that the agent tells apart by their instance's number. */
static void demand_slices_of(const char *text, const struct vendor_model *model)
{
        for (unsigned gi = 0; gi < MIG_INSTANCES; gi++) {
                struct mig_profile profile;
                char resource[64];

                mig_profile_of(model->device, model->gib, gi, &profile);
                mig_profile_resource(&profile, resource, sizeof(resource));
                if (!scheduler_profile_asks(text, resource))
                        fail_msg("managedResources of manifests/scheduler/configmap.yaml lacks %s of %s",
                                 resource, model->name);
        }
}

/* Slices that NVIDIA's own plugin offers and no instance's number tells: 3g and 4g, 1g with a quarter of the
 * memory, with media engines or graphics, and what older drivers call GB200's. */
static const char *const documented_slices[] = {
        "1g.10gb",     "1g.20gb",        "1g.24gb",    "1g.35gb",     "1g.36gb",        "1g.45gb",
        "1g.47gb",     "1g.67gb",        "1g.70gb",    "3g.20gb",     "4g.20gb",        "3g.40gb",
        "4g.40gb",     "3g.47gb",        "4g.47gb",    "3g.48gb",     "4g.48gb",        "3g.71gb",
        "4g.71gb",     "3g.72gb",        "4g.72gb",    "3g.90gb",     "4g.90gb",        "3g.93gb",
        "4g.93gb",     "3g.135gb",       "4g.135gb",   "3g.139gb",    "4g.139gb",       "3g.95gb",
        "4g.95gb",     "7g.189gb",       "1g.5gb.me",  "1g.6gb.me",   "2g.12gb.me",     "1g.10gb.me",
        "1g.12gb.me",  "1g.18gb.me",     "1g.23gb.me", "1g.24gb.me",  "1g.34gb.me",     "1g.35gb.me",
        "1g.24gb.gfx", "1g.24gb.me.all", "1g.24gb-me", "2g.48gb.gfx", "2g.48gb.me.all", "2g.48gb-me",
        "4g.96gb.gfx",
};

static void the_shipped_profile_asks_for_every_slice(void **state)
{
        char text[32768], resource[64];

        (void) state;
        shipped(text);
        for (const struct vendor_model *model = vendor_nvidia.models; model->name != NULL; model++)
                demand_slices_of(text, model);
        for (size_t i = 0; i < ARRAY_SIZE(documented_slices); i++) {
                (void) snprintf(resource, sizeof(resource), "nvidia.com/mig-%s", documented_slices[i]);
                if (!scheduler_profile_asks(text, resource))
                        fail_msg("managedResources of manifests/scheduler/configmap.yaml lacks %s", resource);
        }
}

static void the_shipped_profile_asks_for_every_vendor(void **state)
{
        struct scheduler_profile profile;
        struct err err = { 0 };
        char text[32768];

        (void) state;
        shipped(text);
        assert_int_equal(scheduler_profile_read(text, &profile, &err), 0);
        assert_string_equal(profile.name, "remuda");
        assert_false(profile.preempts);
        for (size_t v = 0; vendors[v] != NULL; v++) {
                const char *resources[16];
                size_t count = vendor_resources(vendors[v], resources, ARRAY_SIZE(resources));

                for (size_t i = 0; i < count; i++)
                        if (!scheduler_profile_asks(text, resources[i]))
                                fail_msg("managedResources of manifests/scheduler/configmap.yaml lacks %s",
                                         resources[i]);
        }
        assert_true(scheduler_profile_asks(text, "remuda.dev/claim"));
        assert_false(scheduler_profile_asks(text, "cpu"));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_profile_is_judged),
                                            cmocka_unit_test(who_comes_to_the_extender),
                                            cmocka_unit_test(the_shipped_profile_asks_for_every_vendor),
                                            cmocka_unit_test(the_shipped_profile_asks_for_every_slice) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
