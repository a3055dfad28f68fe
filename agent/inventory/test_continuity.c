/* Continuity: names before and after a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/inventory/continuity.h"
#include "base/cleanup.h"
#include "base/text.h"

static void add(struct inventory *inventory, const char *id, const char *pci, const char *group)
{
        struct device *device = inventory_add_device(inventory);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->pci, sizeof(device->pci), pci);
        (void) text_copy(device->vendor, sizeof(device->vendor), "nvidia");
        (void) text_copy(device->model, sizeof(device->model), "H100");
        (void) text_copy(device->group, sizeof(device->group), group);
        if (group[0] != '\0' && inventory_find_group(inventory, group) == NULL) {
                struct device_group *added = inventory_add_group(inventory);

                assert_non_null(added);
                (void) text_copy(added->name, sizeof(added->name), group);
                (void) text_copy(added->vendor, sizeof(added->vendor), "nvidia");
                (void) text_copy(added->model, sizeof(added->model), "H100");
        }
}

static void an_unbound_device_keeps_its_id(void **state)
{
        struct inventory before, now;

        (void) state;
        inventory_init(&before);
        inventory_init(&now);
        add(&before, "GPU-a", "0000:11:00.0", "g-0");
        add(&before, "GPU-b", "0000:12:00.0", "g-0");
        add(&now, "0000:11:00.0", "0000:11:00.0", "g-0");
        add(&now, "GPU-b", "0000:12:00.0", "g-0");
        assert_int_equal(continuity_keep(&before, &now), 0);
        assert_string_equal(now.devices[0].id, "GPU-a");
        assert_string_equal(now.devices[1].id, "GPU-b");
        inventory_free(&before);
        inventory_free(&now);
}

static void an_id_that_moved_is_not_taken_from_its_bearer(void **state)
{
        struct inventory before, now;

        (void) state;
        inventory_init(&before);
        inventory_init(&now);
        add(&before, "GPU-a", "0000:11:00.0", "g-0");
        add(&now, "0000:11:00.0", "0000:11:00.0", "g-0"); /* another card in the old one's slot */
        add(&now, "GPU-a", "0000:12:00.0", "g-0");        /* the old one, moved */
        assert_int_equal(continuity_keep(&before, &now), 0);
        assert_string_equal(now.devices[0].id, "0000:11:00.0");
        assert_string_equal(now.devices[1].id, "GPU-a");
        inventory_free(&before);
        inventory_free(&now);
}

static void a_group_does_not_inherit_the_name_of_one_that_left(void **state)
{
        struct inventory before, now;

        (void) state;
        inventory_init(&before);
        inventory_init(&now);
        add(&before, "GPU-a", "0000:11:00.0", "g-0");
        add(&before, "GPU-b", "0000:21:00.0", "g-1");
        add(&now, "GPU-b", "0000:21:00.0", "g-0"); /* the only one left: numbered from 0 again */
        add(&now, "GPU-c", "0000:31:00.0", "g-1"); /* new */
        assert_int_equal(continuity_keep(&before, &now), 0);
        assert_string_equal(now.devices[0].group, "g-1");
        assert_string_equal(now.groups[0].name, "g-1");
        assert_string_equal(now.devices[1].group, "g-2");
        assert_string_equal(now.groups[1].name, "g-2");
        inventory_free(&before);
        inventory_free(&now);
}

static void without_a_past_nothing_changes(void **state)
{
        struct inventory before, now;

        (void) state;
        inventory_init(&before);
        inventory_init(&now);
        add(&now, "GPU-b", "0000:21:00.0", "g-0");
        add(&now, "GPU-c", "0000:31:00.0", "g-1");
        add(&now, "GPU-d", "0000:41:00.0", "");
        assert_int_equal(continuity_keep(&before, &now), 0);
        assert_string_equal(now.devices[0].group, "g-0");
        assert_string_equal(now.devices[1].group, "g-1");
        assert_string_equal(now.devices[2].group, "");
        inventory_free(&before);
        inventory_free(&now);
}

/* A device that has lost its driver at 0000:11:00.0, and what stood there before. */
static const struct {
        const char *what;
        const char *pci, *vendor, *partition, *reason;
        const char *id; /* that it has now */
} pasts[] = {
        { "itself", "0000:11:00.0", "nvidia", "", "", "GPU-a" },
        { "another place", "0000:12:00.0", "nvidia", "", "", "0000:11:00.0" },
        { "another vendor's", "0000:11:00.0", "amd", "", "", "0000:11:00.0" },
        { "a part of it", "0000:11:00.0", "nvidia", "half-0", "", "0000:11:00.0" },
        { "one of two of one id", "0000:11:00.0", "nvidia", "", "DuplicateId", "0000:11:00.0" },
};

static void only_the_same_device_hands_its_id_on(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pasts); i++) {
                struct inventory before, now;

                inventory_init(&before);
                inventory_init(&now);
                add(&before, "GPU-a", pasts[i].pci, "g-0");
                (void) text_copy(before.devices[0].vendor, sizeof(before.devices[0].vendor), pasts[i].vendor);
                (void) text_copy(before.devices[0].partition, sizeof(before.devices[0].partition),
                                 pasts[i].partition);
                (void) text_copy(before.devices[0].reason, sizeof(before.devices[0].reason), pasts[i].reason);
                add(&now, "0000:11:00.0", "0000:11:00.0", "g-0");
                assert_int_equal(continuity_keep(&before, &now), 0);
                if (strcmp(now.devices[0].id, pasts[i].id) != 0)
                        fail_msg("%s: %s", pasts[i].what, now.devices[0].id);
                inventory_free(&before);
                inventory_free(&now);
        }
}

static void a_group_of_another_kind_keeps_no_name(void **state)
{
        (void) state;
        for (size_t i = 0; i < 3; i++) { /* itself, another vendor's, another model */
                struct inventory before, now;

                inventory_init(&before);
                inventory_init(&now);
                add(&before, "GPU-a", "0000:11:00.0", "lone");
                if (i == 1)
                        (void) text_copy(before.devices[0].vendor, sizeof(before.devices[0].vendor), "amd");
                if (i == 2)
                        (void) text_copy(before.devices[0].model, sizeof(before.devices[0].model), "T4");
                add(&now, "GPU-a", "0000:11:00.0", "lone");
                assert_int_equal(continuity_keep(&before, &now), 0);
                assert_string_equal(now.groups[0].name, i == 0 ? "lone" : "lone-0");
                assert_string_equal(now.devices[0].group, now.groups[0].name);
                inventory_free(&before);
                inventory_free(&now);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_unbound_device_keeps_its_id),
                cmocka_unit_test(an_id_that_moved_is_not_taken_from_its_bearer),
                cmocka_unit_test(a_group_does_not_inherit_the_name_of_one_that_left),
                cmocka_unit_test(only_the_same_device_hands_its_id_on),
                cmocka_unit_test(a_group_of_another_kind_keeps_no_name),
                cmocka_unit_test(without_a_past_nothing_changes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
