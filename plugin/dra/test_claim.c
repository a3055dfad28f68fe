/* Claim: what of an allocation is this node's, why it cannot be prepared, and what a container gets for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/dra/claim.h"
#include "plugin/dra/claim_cdi.h"

#define UID "11111111-2222"

static struct inventory inventory;
static struct dra_name names[4];
static const struct claim_node node = { .name = "n1", .inventory = &inventory, .names = names };

static void add(const char *id, const char *group, const char *resource, const char *file, bool usable)
{
        struct device *device = inventory_add_device(&inventory);
        struct device_group *g = inventory_find_group(&inventory, group);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        (void) text_copy(device->nodes[0], sizeof(device->nodes[0]), file);
        device->node_count = 1;
        device->index = (unsigned) inventory.device_count;
        device->usable = usable;
        (void) text_copy(device->reason, sizeof(device->reason), usable ? "" : "DeviceLost");
        if (g != NULL)
                return;
        g = inventory_add_group(&inventory);
        (void) text_copy(g->name, sizeof(g->name), group);
        (void) text_copy(g->vendor, sizeof(g->vendor), "none");
        (void) text_copy(g->resource, sizeof(g->resource), resource);
}

static int set_up(void **state)
{
        (void) state;
        inventory_init(&inventory);
        add("d0", "a-0", "a.com/npu", "/dev/a0", true);
        add("d1", "a-0", "a.com/npu", "/dev/a1", true);
        add("d2", "a-0", "a.com/npu", "/dev/a2", false);
        add("e0", "b-0", "b.com/gpu", "/dev/b0", true);
        dra_name_all(&inventory, names);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        inventory_free(&inventory);
        return 0;
}

static int claim_of(const char *allocation, struct dra_state_claim *ret, struct err *err)
{
        json_t *object =
                json_pack("{s:{s:s, s:s, s:s}, s:{s:[{s:s, s:s}]}}", "metadata", "uid", UID, "name", "c",
                          "namespace", "ns", "status", "reservedFor", "resource", "pods", "name", "p");
        int r;

        assert_non_null(object);
        if (allocation != NULL)
                (void) json_object_set_new(json_object_get(object, "status"), "allocation",
                                           json_loads(allocation, 0, NULL));
        r = claim_read(object, UID, &node, ret, err);
        json_decref(object);
        return r;
}

#define RESULT(device, more)                                                                                 \
        "{\"request\":\"npu\",\"driver\":\"remuda.dev\",\"pool\":\"n1\",\"device\":\"" device "\"" more "}"
#define ALLOCATION(results) "{\"devices\":{\"results\":[" results "]}}"

static void what_is_ours_is_read(void **state)
{
        struct dra_state_claim claim;

        (void) state;
        assert_int_equal(
                claim_of(ALLOCATION(
                                 RESULT("d1", "") ",{\"driver\":\"gpu.nvidia.com\",\"device\":\"x\"}," RESULT(
                                         "d0", ",\"adminAccess\":true")),
                         &claim, NULL),
                0);
        assert_string_equal(claim.uid, UID);
        assert_string_equal(claim.pod, "p");
        assert_int_equal(claim.device_count, 2);
        assert_string_equal(claim.devices[0].id, "d1");
        assert_string_equal(claim.devices[0].request, "npu");
        assert_false(claim.devices[0].admin);
        assert_true(claim.devices[1].admin);
        dra_state_claim_free(&claim);
        assert_int_equal(claim_of(ALLOCATION(RESULT("d2", ",\"tolerations\":[{}]")), &claim, NULL), 0);
        dra_state_claim_free(&claim);
}

static void what_cannot_be_prepared_says_why(void **state)
{
        static const char *const rows[][2] = {
                { NULL, "not allocated" },
                { "[]", "not allocated" },
                { "{}", "no device of driver remuda.dev" },
                { ALLOCATION("{\"driver\":\"x\"}"), "no device of driver remuda.dev" },
                { ALLOCATION(RESULT("dx", "")), "'dx' is not one of node n1" },
                { ALLOCATION(RESULT("d2", "")), "DeviceLost" },
                { ALLOCATION("{\"request\":\"npu\",\"driver\":\"remuda.dev\",\"pool\":\"n2\",\"device\":"
                             "\"d0\"}"),
                  "another node's" },
                { ALLOCATION(
                          "{\"request\":\"/x\",\"driver\":\"remuda.dev\",\"pool\":\"n1\",\"device\":\"d0\"}"),
                  "is of no request" },
                { "{\"devices\":{\"results\":7}}", "results" },
                { "{\"devices\":{\"results\":[" RESULT(
                          "d0", "") "],\"config\":[{\"opaque\":{\"driver\":\"remuda.dev\"}}]}}",
                  "parameters" },
        };
        struct dra_state_claim claim;
        struct err err;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                err = (struct err){ 0 };
                assert_int_equal(claim_of(rows[i][0], &claim, &err), -EBADMSG);
                if (strstr(err.msg, rows[i][1]) == NULL)
                        fail_msg("%s: %s", rows[i][0], err.msg);
                assert_null(claim.devices);
        }
        assert_int_equal(claim_read(NULL, UID, &node, &claim, &err), -EBADMSG);
}

static void a_spec_has_what_each_name_stands_for(void **state)
{
        struct plugin_config config;
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &inventory,
                                            .config = &config };
        struct dra_state_claim claim;
        char name[CLAIM_CDI_NAME_BYTES];
        json_t *spec = NULL;
        const json_t *devices, *request;

        (void) state;
        plugin_config_default(&config);
        (void) text_copy(config.device_root, sizeof(config.device_root), "/host");
        assert_int_equal(claim_of(ALLOCATION(RESULT("d1", "") "," RESULT("d0", "")), &claim, NULL), 0);
        assert_int_equal(claim_cdi_build(&cdi, &claim, &spec, NULL), 0);
        devices = json_object_get(spec, "devices");
        assert_int_equal(json_array_size(devices), 3);
        claim_cdi_request_name(&claim, 0, name);
        assert_string_equal(name, "remuda.dev/claim=" UID ".request.npu");
        claim_cdi_device_name(&claim, 1, name);
        assert_string_equal(name, "remuda.dev/claim=" UID ".device.d0");
        assert_true(claim_cdi_is_first(&claim, 0) && !claim_cdi_is_first(&claim, 1));
        request = json_object_get(json_array_get(devices, 0), "containerEdits");
        assert_string_equal(json_string_value(json_array_get(json_object_get(request, "env"), 0)),
                            "REMUDA_DEVICES=d0,d1"); /* as the node counts them */
        assert_string_equal(json_string_value(json_object_get(
                                    json_array_get(json_object_get(request, "deviceNodes"), 0), "hostPath")),
                            "/host/dev/a0");
        json_decref(spec);
        dra_state_claim_free(&claim);
}

static void two_resources_in_one_request_are_refused(void **state)
{
        struct plugin_config config;
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &inventory,
                                            .config = &config };
        struct dra_state_claim claim;
        struct err err = { 0 };
        json_t *spec = NULL;

        (void) state;
        plugin_config_default(&config);
        assert_int_equal(claim_of(ALLOCATION(RESULT("d1", "") "," RESULT("e0", "")), &claim, NULL), 0);
        assert_int_equal(claim_cdi_build(&cdi, &claim, &spec, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "a.com/npu and of b.com/gpu"));
        dra_state_claim_free(&claim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_ours_is_read),
                cmocka_unit_test(what_cannot_be_prepared_says_why),
                cmocka_unit_test(a_spec_has_what_each_name_stands_for),
                cmocka_unit_test(two_resources_in_one_request_are_refused),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
