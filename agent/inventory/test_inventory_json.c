/* Inventory JSON: all that an inventory says comes back, and what cannot be is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "base/text.h"

static struct device *add(struct inventory *node, const char *id, enum device_health health, bool usable)
{
        struct device *device = inventory_add_device(node);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), "g");
        device->health = health;
        device->usable = usable;
        return device;
}

static void make_node(struct inventory *node)
{
        struct device_group *group;

        inventory_init(node);
        (void) text_copy(node->node, sizeof(node->node), "node-1");
        node->generation = 7;
        group = inventory_add_group(node);
        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), "g");
        group->shares = 4;
        add(node, "a", HEALTH_HEALTHY, true);
        add(node, "b", HEALTH_UNHEALTHY, false);
        add(node, "c", HEALTH_UNKNOWN, true); /* not as its health alone would have it */
        add(node, "d", HEALTH_DEGRADED, true);
        assert_int_equal(inventory_add_loss(node, "b", "team/x"), 0);
        assert_int_equal(inventory_add_loss(node, "b", "team/y"), 0);
        assert_int_equal(inventory_add_loss(node, "d", "team/x"), 0);
        node->devices[1].index = node->devices[1].ordinal = 1;
        node->devices[2].index = 3; /* another has left */
        node->devices[2].ordinal = 2;
        inventory_count(node);
}

static void an_inventory_comes_back_as_it_went(void **state)
{
        CLEANUP(inventory_free) struct inventory node, again;
        json_t *object, *devices, *held;
        struct err err = { 0 };

        (void) state;
        inventory_init(&again);
        make_node(&node);
        object = inventory_json_encode(&node);
        devices = json_object_get(json_object_get(object, "status"), "devices");
        held = json_object_get(json_array_get(devices, 1), "heldBy");
        assert_int_equal(json_array_size(held), 2);
        assert_null(json_object_get(json_array_get(devices, 0), "heldBy"));
        assert_null(json_object_get(json_array_get(devices, 0), "usable"));
        assert_true(json_is_true(json_object_get(json_array_get(devices, 2), "usable")));
        assert_null(json_object_get(json_array_get(devices, 3), "usable"));
        assert_null(json_object_get(json_array_get(devices, 1), "ordinal"));
        assert_int_equal(json_integer_value(json_object_get(json_array_get(devices, 2), "ordinal")), 2);
        if (inventory_json_decode(object, &again, &err) < 0)
                fail_msg("%s", err.msg);
        assert_true(inventory_same(&node, &again));
        assert_int_equal(again.generation, 7);
        json_decref(object);
        inventory_free(&again);
}

/* clang-format off */
#define NODE(status) "{\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"n\"},\"status\":{" status "}}"
#define DEVICE(rest) NODE("\"devices\":[{\"id\":\"a\"},{\"id\":\"b\"" rest "}]")
static const struct {
        const char *text, *sentence; /* sentence: "" = it is read */
} objects[] = {
        { NODE(""),                                    "" },
        { NODE("\"later\":1"),                         "" },
        { DEVICE(",\"heldBy\":[]"),                    "" },
        { DEVICE(",\"usable\":true"),                  "" },
        { NODE("\"groups\":[{\"name\":\"g\",\"shares\":2}]"), "" },
        { "[]",                                        "inventory: not a NodeAccelerators object" },
        { "{\"kind\":7}",                              "inventory: not a NodeAccelerators object" },
        { "{\"kind\":\"Pod\"}",                        "inventory: not a NodeAccelerators object" },
        { NODE("\"devices\":7"),                       "inventory: status.devices: must be a list, not a number" },
        { NODE("\"devices\":[7]"),                     "inventory: status.devices[0]: must be an object, not a number" },
        { DEVICE(",\"health\":\"fine\""),              "inventory: status.devices[1].health: " },
        { DEVICE(",\"usable\":1"),                     "inventory: status.devices[1].usable: must be true or false, not a number" },
        { DEVICE(",\"heldBy\":7"),                     "inventory: status.devices[1].heldBy: must be a list, not a number" },
        { DEVICE(",\"heldBy\":[7]"),                   "inventory: status.devices[1].heldBy[0]: must be a string, not a number" },
        { DEVICE(",\"heldBy\":[\"a/b\",null]"),        "inventory: status.devices[1].heldBy[1]: must be a pod, NAMESPACE/NAME" },
        { NODE("\"groups\":[{\"name\":\"g\",\"shares\":-1}]"), "inventory: status.groups[0].shares: must be " },
        { NODE("\"groups\":[{\"name\":\"g\",\"shares\":\"2\"}]"), "inventory: status.groups[0].shares: must be " },
};
/* clang-format on */

static void what_cannot_be_is_refused_with_its_place(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
                json_t *object = json_loads(objects[i].text, 0, NULL);
                const char *sentence = objects[i].sentence;
                struct inventory node;
                struct err err = { 0 };
                int r;

                assert_non_null(object);
                r = inventory_json_decode(object, &node, &err);
                if ((r < 0) != (sentence[0] != '\0') || strncmp(err.msg, sentence, strlen(sentence)) != 0)
                        fail_msg("%s: %d %s", objects[i].text, r, err.msg);
                if (r < 0)
                        assert_true(r == -EBADMSG && node.device_count == 0 && node.devices == NULL);
                inventory_free(&node);
                json_decref(object);
        }
}

static void holders_have_an_end_over_all_devices(void **state)
{
        json_t *object = json_loads(DEVICE(""), 0, NULL),
               *devices = json_object_get(json_object_get(object, "status"), "devices");
        struct inventory node;
        struct err err = { 0 };

        (void) state;
        for (size_t d = 0; d < 2; d++) {
                json_t *held = json_array();

                for (size_t i = 0; i < LOSSES_MAX / 2 + 1; i++)
                        assert_int_equal(json_array_append_new(held, json_string("team/x")), 0);
                assert_int_equal(json_object_set_new(json_array_get(devices, d), "heldBy", held), 0);
        }
        assert_int_equal(inventory_json_decode(object, &node, &err), -EBADMSG);
        assert_string_equal(err.msg,
                            "inventory: status.devices[1].heldBy[2047]: is one more than 4096 holders");
        inventory_free(&node);
        json_decref(object);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_inventory_comes_back_as_it_went),
                cmocka_unit_test(what_cannot_be_is_refused_with_its_place),
                cmocka_unit_test(holders_have_an_end_over_all_devices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
