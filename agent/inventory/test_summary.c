/* Summary: a row is an inventory, its line of a table and its two conditions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Groups "VENDOR MODEL DEVICES": a device is h(ealthy), d(egraded), u(nhealthy), q(uarantined), ? (could not
 * be asked, usable) or x (the same, not usable). Device n of all has its health since n + 1 seconds. */
/* clang-format off */
static const struct {
        const char *groups[3], *line, *ready, *degraded; /* "STATUS REASON SECONDS: MESSAGE" */
} rows[] = {
        { { "nvidia H100 hhhh", "huawei Ascend910B3 hh", "cpu EPYC h" }, "6 6 6 4 H100, 2 Ascend910B3",
          "True ChipsUsable 1: 6 of 6 chips are usable", "False DevicesWell 7: 0 of its devices are not well" },
        { { "nvidia H100 hh", "nvidia L40S h", "nvidia H100 hu" }, "5 4 4 4 H100, 1 L40S",
          "True ChipsUsable 1: 4 of 5 chips are usable", "True DevicesNotWell 5: 1 of its devices are not well: d4 Ill" },
        { { "nvidia H100 uq", "cpu EPYC h" }, "2 0 0 2 H100",
          "False NoUsableChip 2: 0 of 2 chips are usable", "True DevicesNotWell 1: 2 of its devices are not well: d0 Ill, d1 Ill" },
        { { "nvidia H100 ud?x" }, "4 2 2 4 H100",
          "True ChipsUsable 2: 2 of 4 chips are usable", "True DevicesNotWell 1: 3 of its devices are not well: d0 Ill, d1 Ill, d3 Ill" },
        { { "cpu EPYC hu" }, "0 0 0 ", "True NoChips 0: 0 of 0 chips are usable", "True DevicesNotWell 2: 1 of its devices are not well: d1 Ill" },
        { { NULL }, "0 0 0 ", "True NoChips 0: 0 of 0 chips are usable", "False DevicesWell 0: 0 of its devices are not well" },
        { { "nec  h" }, "1 1 1 1 nec", "True ChipsUsable 1: 1 of 1 chips are usable", "False DevicesWell 1: 0 of its devices are not well" },
};
/* clang-format on */

static void add_devices(struct inventory *inventory, const char *group, const char *vendor,
                        const char *letters)
{
        static const char words[] = "hduq?x";
        static const enum device_health health[] = { HEALTH_HEALTHY,     HEALTH_DEGRADED, HEALTH_UNHEALTHY,
                                                     HEALTH_QUARANTINED, HEALTH_UNKNOWN,  HEALTH_UNKNOWN };

        for (; *letters != '\0'; letters++) {
                size_t n = inventory->device_count;
                struct device *d = inventory_add_device(inventory);

                assert_non_null(d);
                (void) text_format(d->id, sizeof(d->id), "d%zu", n);
                (void) text_copy(d->group, sizeof(d->group), group);
                (void) text_copy(d->vendor, sizeof(d->vendor), vendor);
                d->health = health[strchr(words, *letters) - words];
                d->usable = strchr("hd?", *letters) != NULL;
                (void) text_copy(d->reason, sizeof(d->reason), *letters == 'h' ? "" : "Ill");
                d->since_usec = (n + 1) * 1000000;
        }
}

static void make(const char *const *groups, size_t count, struct inventory *inventory)
{
        inventory_init(inventory);
        for (size_t i = 0; i < count && groups[i] != NULL; i++) {
                const char *model = strchr(groups[i], ' ') + 1, *letters = strchr(model, ' ') + 1;
                struct device_group *group = inventory_add_group(inventory);

                assert_non_null(group);
                (void) text_format(group->name, sizeof(group->name), "g%zu", i);
                (void) text_format(group->vendor, sizeof(group->vendor), "%.*s",
                                   (int) (model - groups[i] - 1), groups[i]);
                (void) text_format(group->model, sizeof(group->model), "%.*s", (int) (letters - model - 1),
                                   model);
                add_devices(inventory, group->name, group->vendor, letters);
        }
        inventory_count(inventory);
}

static void expect(size_t row, const char *want, const char *got)
{
        if (strcmp(want, got) != 0)
                fail_msg("row %zu: want '%s', got '%s'", row, want, got);
}

static void in_a_line_and_two_conditions(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct summary_condition conditions[SUMMARY_CONDITIONS] = { 0 };
                CLEANUP(inventory_free) struct inventory inventory;
                struct summary s;
                char text[600];

                make(rows[i].groups, ARRAY_SIZE(rows[i].groups), &inventory);
                summary_make(&inventory, &s);
                (void) text_format(text, sizeof(text), "%u %u %u %s", s.chips, s.healthy, s.free, s.models);
                expect(i, rows[i].line, text);
                summary_judge(&inventory, conditions);
                for (size_t c = 0; c < SUMMARY_CONDITIONS; c++) {
                        (void) text_format(text, sizeof(text), "%s %s %llu: %s", conditions[c].status,
                                           conditions[c].reason,
                                           (unsigned long long) conditions[c].since_usec / 1000000,
                                           conditions[c].message);
                        expect(i, c == SUMMARY_READY ? rows[i].ready : rows[i].degraded, text);
                }
                assert_string_equal(conditions[SUMMARY_READY].type, "Ready");
                assert_string_equal(conditions[SUMMARY_DEGRADED].type, "Degraded");
        }
}

static void a_condition_keeps_its_time(void **state)
{
        static const char *const ill[] = { "nvidia H100 hhuh" }, *const worse[] = { "nvidia H100 huuh" },
                                 *const well[] = { "nvidia H100 hhhh" };
        struct summary_condition conditions[SUMMARY_CONDITIONS] = { 0 };
        const struct {
                const char *const *groups;
                const char *status;
                unsigned seconds;
        } looks[] = { { ill, "True", 3 }, { worse, "True", 3 }, { well, "False", 4 }, { ill, "True", 3 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
                CLEANUP(inventory_free) struct inventory inventory;

                make(looks[i].groups, 1, &inventory);
                summary_judge(&inventory, conditions);
                assert_string_equal(conditions[SUMMARY_DEGRADED].status, looks[i].status);
                assert_int_equal(conditions[SUMMARY_DEGRADED].since_usec, looks[i].seconds * 1000000);
                assert_int_equal(conditions[SUMMARY_READY].since_usec, 1000000);
        }
}

/* Of very many models the column has as many as it holds, each whole; likewise the ill devices of a message.
 */
static void what_is_long_is_cut_between_words(void **state)
{
        struct summary_condition conditions[SUMMARY_CONDITIONS] = { 0 };
        CLEANUP(inventory_free) struct inventory inventory;
        struct summary s;

        (void) state;
        inventory_init(&inventory);
        for (unsigned i = 0; i < GROUPS_MAX; i++) {
                struct device_group *group = inventory_add_group(&inventory);

                (void) text_format(group->name, sizeof(group->name), "g%u", i);
                (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
                (void) text_format(group->model, sizeof(group->model), "model-%u-end", i);
                add_devices(&inventory, group->name, "nvidia", "u");
        }
        inventory_count(&inventory);
        summary_make(&inventory, &s);
        assert_int_equal(s.chips, GROUPS_MAX);
        assert_true(strlen(s.models) > 200 && text_ends_with(s.models, "-end"));
        summary_judge(&inventory, conditions);
        assert_true(text_ends_with(conditions[SUMMARY_DEGRADED].message, " Ill"));
        assert_true(strlen(conditions[SUMMARY_DEGRADED].message) > 150);
}

static void it_is_told_with_the_inventory(void **state)
{
        static const char *const groups[] = { "nvidia H100 hhu", "cpu EPYC h" };
        struct summary_condition conditions[SUMMARY_CONDITIONS] = { 0 };
        CLEANUP(inventory_free) struct inventory inventory, again;
        const char *heard = NULL, *status = NULL, *type = NULL, *since = NULL, *models = NULL;
        json_t *object;
        int chips = 0, healthy = 0, free_ = 0;

        (void) state;
        make(groups, ARRAY_SIZE(groups), &inventory);
        summary_judge(&inventory, conditions);
        conditions[SUMMARY_READY].since_usec = 0; /* not known */
        object = inventory_json_tell(&inventory, conditions, 60000000);
        assert_non_null(object);
        assert_int_equal(json_unpack(object, "{s:{s:s, s:{s:i, s:i, s:i, s:s}, s:[{s:s, s:s, s:s}]}}",
                                     "status", "heard", &heard, "summary", "chips", &chips, "healthy",
                                     &healthy, "free", &free_, "models", &models, "conditions", "type", &type,
                                     "status", &status, "lastTransitionTime", &since),
                         0);
        assert_string_equal(heard, "1970-01-01T00:01:00Z");
        assert_string_equal(since, heard);
        assert_string_equal(type, "Ready");
        assert_string_equal(status, "True");
        assert_string_equal(models, "3 H100");
        assert_true(chips == 3 && healthy == 2 && free_ == 2);
        assert_int_equal(inventory_json_decode(object, &again, NULL), 0);
        assert_true(inventory_same(&inventory, &again));
        json_decref(object);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(in_a_line_and_two_conditions),
                cmocka_unit_test(a_condition_keeps_its_time),
                cmocka_unit_test(what_is_long_is_cut_between_words),
                cmocka_unit_test(it_is_told_with_the_inventory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
