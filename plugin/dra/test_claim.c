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
static struct dra_name names[8];
static struct bundles bundles;
static const struct claim_node node = {
        .name = "n1", .inventory = &inventory, .names = names, .bundles = &bundles
};

static void add(const char *id, const char *group, const char *resource, const char *file, bool usable)
{
        struct device *device = inventory_add_device(&inventory);
        struct device_group *g = inventory_find_group(&inventory, group);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        (void) text_copy(device->vendor, sizeof(device->vendor), "none");
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
        add("f0", "c-0", "c.com/gpu", "/dev/c0", true);
        add("f1", "c-0", "c.com/gpu", "/dev/c1", true);
        (void) text_copy(inventory.groups[2].fabric, sizeof(inventory.groups[2].fabric), "nvlink");
        add("s0", "s-0", "s.com/gpu", "/dev/s0", true);
        add("t0", "t-0", "t.com/gpu", "/dev/t0", true);
        inventory.groups[3].shares = inventory.groups[4].shares = 4; /* nobody knows the memory of the last */
        inventory.groups[3].memory_bytes = UINT64_C(8) << 30;
        dra_name_all(&inventory, names);
        return bundles_find(&inventory, names, &bundles);
}

static int tear_down(void **state)
{
        (void) state;
        bundles_free(&bundles);
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
}

/* Ill since it was allocated: for whom it is all the same. */
static void a_sick_device_is_for_who_tolerates_its_taint(void **state)
{
        static const struct {
                const char *toleration;
                bool prepared;
        } rows[] = {
                { "{\"operator\":\"Exists\"}", true },
                { "{\"key\":\"remuda.dev/health\",\"operator\":\"Exists\"}", true },
                { "{\"key\":\"remuda.dev/health\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}", true },
                { "{\"key\":\"remuda.dev/health\",\"operator\":\"Equal\",\"value\":\"DeviceLost\"}", true },
                { "{\"key\":\"remuda.dev/health\",\"value\":\"DeviceLost\"}", true },
                { "{\"key\":\"a.com/x\",\"operator\":\"Exists\"},{\"operator\":\"Exists\"}", true },
                { "{\"key\":\"remuda.dev/health\",\"operator\":\"Equal\",\"value\":\"BadPages\"}", false },
                { "{\"key\":\"remuda.dev/health\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}", false },
                { "{\"key\":\"gpu.example.com/lost\",\"operator\":\"Exists\"}", false },
                { "{\"operator\":\"Equal\",\"value\":\"DeviceLost\"}", false },
                { "{}", false },
                { "7", false },
        };
        struct dra_state_claim claim;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text allocation = { 0 };
                int r;

                text_printf(&allocation, ALLOCATION(RESULT("d2", ",\"tolerations\":[%s]")),
                            rows[i].toleration);
                r = claim_of(allocation.data, &claim, NULL);
                if (r != (rows[i].prepared ? 0 : -EBADMSG))
                        fail_msg("%s: %d", rows[i].toleration, r);
                dra_state_claim_free(&claim);
        }
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

/* A whole group is one result, one device of the kubelet's, and all of its chips. */
static void a_group_is_all_of_its_chips(void **state)
{
        struct plugin_config config;
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &inventory,
                                            .config = &config };
        struct dra_state_claim claim;
        json_t *spec = NULL;
        const json_t *devices;
        struct err err = { 0 };

        (void) state;
        plugin_config_default(&config);
        assert_int_equal(claim_of(ALLOCATION(RESULT("group-c-0", "")), &claim, NULL), 0);
        assert_int_equal(claim.device_count, 2);
        assert_string_equal(claim.devices[0].id, "f0");
        assert_string_equal(claim.devices[1].id, "f1");
        assert_string_equal(claim.devices[1].name, "group-c-0");
        assert_int_equal(claim_cdi_build(&cdi, &claim, &spec, NULL), 0);
        devices = json_object_get(spec, "devices");
        assert_int_equal(json_array_size(devices), 2); /* the request, and the one device with both files */
        assert_int_equal(
                json_array_size(json_object_get(json_object_get(json_array_get(devices, 1), "containerEdits"),
                                                "deviceNodes")),
                2);
        json_decref(spec);
        dra_state_claim_free(&claim);
        inventory.devices[5].usable = false; /* one of them must not be used: none of it is given */
        assert_int_equal(claim_of(ALLOCATION(RESULT("group-c-0", "")), &claim, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "'group-c-0' must not be used"));
        inventory.devices[5].usable = true;
}

/* Two requests may have a share each of one chip: its files once, and what is said of memory is the sum. */
static void a_share_says_how_much_memory_it_has(void **state)
{
        struct plugin_config config;
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &inventory,
                                            .config = &config };
        struct dra_state_claim claim;
        CLEANUP(free_p) char *text = NULL;
        json_t *spec = NULL;

        (void) state;
        plugin_config_default(&config);
        assert_int_equal(
                claim_of(ALLOCATION(RESULT("s0",
                                           ",\"shareID\":\"s-1\",\"consumedCapacity\":{\"memory\":"
                                           "\"1Gi\"}") "," RESULT("s0", ",\"shareID\":\"s-2\","
                                                                        "\"consumedCapacity\":{\"remuda.dev/"
                                                                        "memory\":\"2Gi\"}")),
                         &claim, NULL),
                0);
        assert_string_equal(claim.devices[1].share, "s-2");
        assert_int_equal(claim.devices[1].memory_bytes, UINT64_C(2) << 30);
        assert_int_equal(claim_cdi_build(&cdi, &claim, &spec, NULL), 0);
        assert_int_equal(json_array_size(json_object_get(spec, "devices")), 2);
        text = json_dumps(spec, 0);
        assert_non_null(strstr(text, "\"REMUDA_SHARE_MEMORY=s0=3221225472\""));
        assert_non_null(strstr(text, "\"REMUDA_DEVICES=s0\""));
        json_decref(spec);
        dra_state_claim_free(&claim);
}

/* A scheduler writes all that a share has; where it does not, the share has what the slice says. What cannot
 * be read is none of the two. */
static void a_share_has_what_its_allocation_says(void **state)
{
#define OF(amounts) ",\"shareID\":\"s\",\"consumedCapacity\":" amounts
        static const struct {
                const char *result, *refused; /* NULL = it is not */
                uint64_t memory_bytes, shares;
        } rows[] = {
                { RESULT("s0", ",\"shareID\":\"s\""), NULL, UINT64_C(2) << 30, 0 },
                { RESULT("s0", OF("{}")), NULL, UINT64_C(2) << 30, 0 },
                { RESULT("s0", OF("{\"memory\":null,\"shares\":\"1\"}")), NULL, UINT64_C(2) << 30, 0 },
                { RESULT("s0", OF("{\"memory\":\"1Gi\",\"shares\":\"2\"}")), NULL, UINT64_C(1) << 30, 2 },
                { RESULT("s0", OF("{\"remuda.dev/memory\":\"1\",\"remuda.dev/shares\":\"3\"}")), NULL, 1, 3 },
                { RESULT("t0", ",\"shareID\":\"s\""), NULL, 0, 0 },
                { RESULT("t0", OF("{\"memory\":\"0\"}")), NULL, 0, 0 }, /* all of what is not known */
                { RESULT("t0", OF("{\"memory\":\"-1\"}")), "device 't0' has memory \"-1\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"0\"}")), "device 's0' has memory \"0\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"-5\"}")), "has memory \"-5\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"-1Gi\"}")), "has memory \"-1Gi\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"9e99\"}")), "has memory \"9e99\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"x\"}")), "has memory \"x\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":\"\"}")), "has memory \"\"", 0, 0 },
                { RESULT("s0", OF("{\"memory\":7}")), "has memory 7", 0, 0 },
                { RESULT("s0", OF("{\"memory\":[]}")), "has memory []", 0, 0 },
                { RESULT("s0", OF("7")), "consumedCapacity", 0, 0 },
                { RESULT("s0", OF("{\"shares\":\"0\"}")), "has shares \"0\"", 0, 0 },
                { RESULT("s0", OF("{\"shares\":\"-1\"}")), "has shares \"-1\"", 0, 0 },
                { RESULT("s0", OF("{\"shares\":2}")), "has shares 2", 0, 0 },
                { RESULT("d0", OF("{\"memory\":\"1\"}")), "'d0', which is one claim's alone", 0, 0 },
                { RESULT("d0", ",\"shareID\":\"s\""), "'d0', which is one claim's alone", 0, 0 },
                { RESULT("group-c-0", ",\"shareID\":\"s\""), "'group-c-0', which is several", 0, 0 },
        };
#undef OF
        struct dra_state_claim claim;
        struct err err;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text allocation = { 0 };
                int r;

                err = (struct err){ 0 };
                text_printf(&allocation, ALLOCATION("%s"), rows[i].result);
                r = claim_of(allocation.data, &claim, &err);
                if (r != (rows[i].refused == NULL ? 0 : -EBADMSG) ||
                    (rows[i].refused != NULL && strstr(err.msg, rows[i].refused) == NULL))
                        fail_msg("%s: %d: %s", rows[i].result, r, err.msg);
                if (r == 0 && (claim.devices[0].memory_bytes != rows[i].memory_bytes ||
                               claim.devices[0].shares != rows[i].shares))
                        fail_msg("%s: %ju bytes, %ju shares", rows[i].result,
                                 (uintmax_t) claim.devices[0].memory_bytes,
                                 (uintmax_t) claim.devices[0].shares);
                dra_state_claim_free(&claim);
        }
}

/* A CPU group, or a chip whose device file nobody knows: CDI has no device that edits nothing, and a runtime
 * that meets one in a spec reads none of it. */
static void a_device_without_files_edits_something(void **state)
{
        struct plugin_config config;
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &inventory,
                                            .config = &config };
        struct dra_state_claim claim;
        size_t files = inventory.devices[0].node_count;
        const json_t *env, *entry;
        json_t *spec = NULL;

        (void) state;
        plugin_config_default(&config);
        inventory.devices[0].node_count = 0;
        assert_int_equal(claim_of(ALLOCATION(RESULT("d0", "")), &claim, NULL), 0);
        assert_int_equal(claim_cdi_build(&cdi, &claim, &spec, NULL), 0);
        entry = json_array_get(json_object_get(spec, "devices"), 1);
        assert_string_equal(json_string_value(json_object_get(entry, "name")), UID ".device.d0");
        env = json_object_get(json_object_get(entry, "containerEdits"), "env");
        assert_int_equal(json_array_size(env), 1);
        assert_string_equal(json_string_value(json_array_get(env, 0)), "REMUDA_VENDOR=none");
        json_decref(spec);
        dra_state_claim_free(&claim);
        inventory.devices[0].node_count = files;
}

/* What the cluster says now of a claim that the account has with d0 and d1. */
static void a_claim_stands_or_is_given_up(void **state)
{
#define HEAD     "{\"metadata\":{\"uid\":\"" UID "\"},\"status\":{"
#define RESERVED "\"reservedFor\":[{\"name\":\"p\"}]"
        static const struct {
                const char *what, *object;
                bool stands;
        } rows[] = {
                { "as it was",
                  HEAD RESERVED ",\"allocation\":" ALLOCATION(RESULT("d1", "") "," RESULT("d0", "")) "}}",
                  true },
                { "one of them is another now",
                  HEAD RESERVED ",\"allocation\":" ALLOCATION(RESULT("d1", "") "," RESULT("d2", "")) "}}",
                  false },
                { "a share of one of them",
                  HEAD RESERVED
                  ",\"allocation\":" ALLOCATION(RESULT("d1", ",\"shareID\":\"s\"") "," RESULT("d0", "")) "}}",
                  false },
                { "nobody is to use it",
                  HEAD "\"allocation\":" ALLOCATION(RESULT("d1", "") "," RESULT("d0", "")) "}}", false },
                { "not allocated", HEAD RESERVED "}}", false },
                { "another one of its name",
                  "{\"metadata\":{\"uid\":\"x\"},\"status\":{" RESERVED
                  ",\"allocation\":" ALLOCATION(RESULT("d1", "") "," RESULT("d0", "")) "}}",
                  false },
                { "no object", "[]", false },
        };
        struct dra_state_claim claim;

        (void) state;
        assert_int_equal(claim_of(ALLOCATION(RESULT("d0", "") "," RESULT("d1", "")), &claim, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *object = json_loads(rows[i].object, 0, NULL);

                assert_non_null(object);
                if (claim_stands(object, &claim, "n1") != rows[i].stands)
                        fail_msg("%s", rows[i].what);
                assert_false(claim_stands(object, &claim, "n2"));
                json_decref(object);
        }
        dra_state_claim_free(&claim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_ours_is_read),
                cmocka_unit_test(a_sick_device_is_for_who_tolerates_its_taint),
                cmocka_unit_test(what_cannot_be_prepared_says_why),
                cmocka_unit_test(a_spec_has_what_each_name_stands_for),
                cmocka_unit_test(two_resources_in_one_request_are_refused),
                cmocka_unit_test(a_group_is_all_of_its_chips),
                cmocka_unit_test(a_claim_stands_or_is_given_up),
                cmocka_unit_test(a_share_says_how_much_memory_it_has),
                cmocka_unit_test(a_share_has_what_its_allocation_says),
                cmocka_unit_test(a_device_without_files_edits_something),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
