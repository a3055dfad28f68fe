/* Devices of an inventory that no slice has: who is counted, what is free, and whom they are for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/claims_lost.h"
#include "scheduler-extender/claims/claims_planned.h"

static void claims_free_p(struct claims **claims)
{
        claims_free(*claims);
}

/* A node "a" with so many chips of two groups, "one" and "two", half each, named one-0 ... */
static void tell_node(struct claims *c, unsigned chips, bool planned, const char *sick)
{
        struct inventory inventory;

        inventory_init(&inventory);
        inventory.planned = planned;
        for (unsigned g = 0; g < 2; g++) {
                struct device_group *group = inventory_add_group(&inventory);

                (void) text_copy(group->name, sizeof(group->name), g == 0 ? "one" : "two");
                (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
                (void) text_copy(group->resource, sizeof(group->resource), "nvidia.com/gpu");
        }
        for (unsigned i = 0; i < chips; i++) {
                struct device *device = inventory_add_device(&inventory);
                const char *group = i < chips / 2 ? "one" : "two";

                (void) text_format(device->id, sizeof(device->id), "%s-%u", group, i % (chips / 2));
                (void) text_copy(device->group, sizeof(device->group), group);
                (void) text_copy(device->vendor, sizeof(device->vendor), "nvidia");
                device->usable = sick == NULL || strcmp(sick, device->id) != 0;
        }
        assert_int_equal(claims_planned_set(c, "a", &inventory), 0);
        inventory_free(&inventory);
}

static void tell_claim(struct claims *c, const char *key, const char *device)
{
        struct claims_claim_facts facts = {
                .allocated = true,
                .node = "a",
                .results = { { .driver = DRA_NAME_DRIVER, .pool = "a", .device = device } },
                .result_count = 1
        };

        assert_int_equal(claims_set_claim(c, key, &facts), 0);
}

static bool is_it(void *userdata, const char *device)
{
        return userdata != NULL && strcmp(device, userdata) == 0;
}

static size_t free_of(const struct claims *c, const char *group, char *taken, const char **ret)
{
        return claims_planned_free(c, "a", group, is_it, taken, ret, 32);
}

static void what_nobody_has_is_free_in_its_order(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();
        const char *names[32];

        (void) state;
        tell_node(c, 8, true, "one-2");
        assert_int_equal(free_of(c, "one", NULL, names), 3); /* one is sick */
        assert_string_equal(names[0], "one-0");
        assert_string_equal(names[2], "one-3");
        tell_claim(c, "ns/x", "one-0");
        assert_int_equal(free_of(c, "one", (char[]){ "one-1" }, names), 1); /* one that is being written */
        assert_string_equal(names[0], "one-3");
        assert_int_equal(free_of(c, "two", NULL, names), 4);
        assert_int_equal(free_of(c, "none", NULL, names), 0);
        assert_int_equal(claims_planned_free(c, "b", "one", is_it, NULL, names, 32), 0);
}

/* Chips of the node, and no device for a claim that kube-scheduler allocates. */
static void they_are_counted_for_planned_claims_alone(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();
        struct claims_account account;

        (void) state;
        tell_node(c, 8, true, NULL);
        tell_claim(c, "ns/x", "two-0");
        tell_claim(c, "ns/y", "two-1");
        claims_account(c, "a", &account);
        assert_int_equal(account.offered + account.free + account.ours + account.ours_free, 0);
        assert_int_equal(account.chip_count, 1);
        assert_true(account.chips[0].offers && account.chips[0].planned);
        assert_int_equal(account.chips[0].offered, 8);
        assert_int_equal(account.chips[0].held, 2);
        assert_int_equal(account.unnamed, 0);
        assert_string_equal(account.groups[0].name, "two");
        assert_int_equal(account.groups[0].held, 2);
        tell_node(c, 8, false, NULL); /* it offers them in another way now: slices will tell */
        claims_account(c, "a", &account);
        assert_int_equal(account.chip_count, 0);
        assert_int_equal(account.unnamed, 2);
        assert_false(claims_has_slices(c));
}

static void more_than_one_slice_has_are_all_there(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();
        struct claims_account account;
        const char *names[200];

        (void) state;
        tell_node(c, 2 * CLAIMS_DEVICES_MAX + 60, true, NULL);
        claims_account(c, "a", &account);
        assert_int_equal(account.chips[0].offered, 2 * CLAIMS_DEVICES_MAX + 60);
        assert_int_equal(claims_planned_free(c, "a", "two", is_it, NULL, names, 200),
                         CLAIMS_DEVICES_MAX + 30);
        assert_string_equal(names[0], "two-0");
        tell_node(c, 2 * CLAIMS_DEVICES_MAX, true, NULL); /* a slice less, and full ones */
        claims_account(c, "a", &account);
        assert_true(account.judged);
        assert_int_equal(account.chips[0].offered, 2 * CLAIMS_DEVICES_MAX);
        assert_int_equal(claims_planned_set(c, "a", NULL), 0);
        claims_account(c, "a", &account);
        assert_int_equal(account.chip_count, 0);
}

/* While a slice of the node is there its devices are kube-scheduler's, whatever the inventory says. */
static void a_slice_is_stronger(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();
        struct claims_slice_facts slice = { .driver = DRA_NAME_DRIVER,
                                            .pool = "a",
                                            .node = "a",
                                            .generation = 1,
                                            .slice_count = 1,
                                            .devices = { { .name = "one-0", .group = "one" } },
                                            .device_count = 1 };
        const char *names[32];

        (void) state;
        tell_node(c, 8, true, NULL);
        assert_int_equal(claims_set_slice(c, "s", &slice), 0);
        assert_int_equal(free_of(c, "one", NULL, names), 0);
        assert_int_equal(claims_set_slice(c, "s", NULL), 0);
        assert_int_equal(free_of(c, "one", NULL, names), 4);
}

static void two_claims_of_one_device_are_found(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();

        (void) state;
        tell_node(c, 8, true, NULL);
        tell_claim(c, "ns/x", "one-0");
        tell_claim(c, "ns/y", "one-1");
        assert_null(claims_planned_rival(c, "ns/x"));
        tell_claim(c, "other/z", "one-0");
        assert_string_equal(claims_planned_rival(c, "ns/x"), "other/z");
        assert_string_equal(claims_planned_rival(c, "other/z"), "ns/x");
        assert_null(claims_planned_rival(c, "ns/y"));
        assert_null(claims_planned_rival(c, "ns/none"));
}

/* A claim that kube-scheduler allocated before the node kept its devices for planned ones. */
static void who_came_too_late_is_lost(void **state)
{
        CLEANUP(claims_free_p) struct claims *c = claims_new();
        struct claims_pod_facts pod = {
                .names = { "x" }, .made = { true }, .name_count = 1, .has_claims = true
        };

        (void) state;
        tell_node(c, 8, true, NULL);
        tell_claim(c, "ns/x", "one-0");
        assert_int_equal(claims_set_pod(c, "ns/p", &pod), 0);
        assert_string_equal(claims_lost(c, "ns/p", "a"), "one-0");
        pod.made[0] = false; /* a planned one is made of no template */
        assert_int_equal(claims_set_pod(c, "ns/p", &pod), 0);
        assert_null(claims_lost(c, "ns/p", "a"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_nobody_has_is_free_in_its_order),
                cmocka_unit_test(they_are_counted_for_planned_claims_alone),
                cmocka_unit_test(more_than_one_slice_has_are_all_there),
                cmocka_unit_test(a_slice_is_stronger),
                cmocka_unit_test(two_claims_of_one_device_are_found),
                cmocka_unit_test(who_came_too_late_is_lost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
