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
        node.planned = true;
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

#define AGENT(text) NODE("\"agent\":" text)
static void what_an_agent_says_of_itself_comes_back(void **state)
{
        struct agent_facts facts = {
                .version = "0.9.0",
                .libraries = { { "nvidia", AGENT_FACTS_SILENT, "the library hangs" },
                               { "amd", AGENT_FACTS_ABSENT, "" } },
                .library_count = 2,
                .offers = { { "nvidia.com/gpu", true }, { "remuda.dev", false } },
                .offer_count = 2,
        };
        CLEANUP(inventory_free) struct inventory node, again;
        char *text;
        json_t *object;

        (void) state;
        inventory_init(&again);
        make_node(&node);
        object = inventory_json_encode(&node);
        assert_null(json_object_get(json_object_get(object, "status"), "agent")); /* nothing is said */
        json_decref(object);
        node.agent = facts;
        object = inventory_json_encode(&node);
        text = json_dumps(json_object_get(json_object_get(object, "status"), "agent"),
                          JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, "{\"kubelet\":[{\"name\":\"nvidia.com/gpu\",\"registered\":true},"
                                  "{\"name\":\"remuda.dev\",\"registered\":false}],"
                                  "\"libraries\":[{\"message\":\"the library "
                                  "hangs\",\"state\":\"silent\",\"vendor\":\"nvidia\"},"
                                  "{\"state\":\"absent\",\"vendor\":\"amd\"}],\"version\":\"0.9.0\"}");
        free(text);
        assert_int_equal(inventory_json_decode(object, &again, NULL), 0);
        assert_true(agent_facts_same(&facts, &again.agent) && inventory_same(&node, &again));
        json_decref(object);
}

/* Any agent may write what it likes of itself: no inventory is refused over it, and nothing is too long. */
static void lies_of_an_agent_about_itself_are_passed_over(void **state)
{
        static const struct {
                const char *text;
                size_t libraries, offers;
        } rows[] = {
                { AGENT("7"), 0, 0 },
                { AGENT("[]"), 0, 0 },
                { AGENT("null"), 0, 0 },
                { AGENT("{\"version\":7,\"libraries\":{},\"kubelet\":\"all\"}"), 0, 0 },
                { AGENT("{\"libraries\":[7,null,{},{\"vendor\":\"\"},{\"vendor\":\"a\"}]}"), 1, 0 },
                { AGENT("{\"libraries\":[{\"vendor\":\"0123456789012345678901234567890\"}]}"), 0, 0 },
                { AGENT("{\"libraries\":[{\"vendor\":\"a\",\"state\":\"later\",\"message\":[]}]}"), 1, 0 },
                { AGENT("{\"kubelet\":[{\"name\":\"a/b\",\"registered\":1},{\"registered\":true},0]}"), 0,
                  1 },
        };
        json_t *many = json_array(), *object;
        struct inventory node;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                object = json_loads(rows[i].text, 0, NULL);
                assert_non_null(object);
                if (inventory_json_decode(object, &node, NULL) < 0 ||
                    node.agent.library_count != rows[i].libraries ||
                    node.agent.offer_count != rows[i].offers || node.agent.version[0] != '\0')
                        fail_msg("%s: %zu %zu", rows[i].text, node.agent.library_count,
                                 node.agent.offer_count);
                for (size_t k = 0; k < node.agent.library_count; k++)
                        assert_int_equal(node.agent.libraries[k].state, AGENT_FACTS_UNKNOWN);
                assert_false(node.agent.offers[0].registered);
                json_decref(object);
                inventory_free(&node);
        }
        for (size_t i = 0; i < 1000; i++)
                (void) json_array_append_new(
                        many, json_pack("{ss ss sb}", "vendor", "v", "name", "a/b", "registered", 1));
        object = json_pack("{ss s{s{sO sO}}}", "kind", "NodeAccelerators", "status", "agent", "libraries",
                           many, "kubelet", many);
        assert_int_equal(inventory_json_decode(object, &node, NULL), 0);
        assert_int_equal(node.agent.library_count, AGENT_FACTS_LIBRARIES_MAX);
        assert_int_equal(node.agent.offer_count, AGENT_FACTS_OFFERS_MAX);
        json_decref(object);
        json_decref(many);
        inventory_free(&node);
}

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
                cmocka_unit_test(what_an_agent_says_of_itself_comes_back),
                cmocka_unit_test(lies_of_an_agent_about_itself_are_passed_over),
                cmocka_unit_test(what_cannot_be_is_refused_with_its_place),
                cmocka_unit_test(holders_have_an_end_over_all_devices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
