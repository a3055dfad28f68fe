/* What a launch may say, which devices it gets, and what the program is told of them: each refusal with its
 * sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch_choice.h"
#include "agent/launch/launch_order.h"
#include "base/cleanup.h"
#include "base/text.h"

static void refused(const char *what, int want, const char *sentence, int got, const struct err *err)
{
        if (got != want || strcmp(err->msg, sentence) != 0)
                fail_msg("%s: %d '%s', not %d '%s'", what, got, err->msg, want, sentence);
}

/* clang-format off */
static const struct {
        const char *body, *sentence; /* sentence: "" = it is taken */
} orders[] = {
        { "{\"runtime\":\"cuda\"}",                                 "" },
        { "{\"runtime\":\"cuda\",\"chips\":2,\"args\":[\"a\"],\"environment\":{\"A\":\"1\"},\"directory\":\"/tmp\"}", "" },
        { "[]",                                                     "must be an object, not a list" },
        { "{\"runtime\":\"cuda\",\"chip\":2}",                      "chip: is not known here; known: runtime, devices, chips, args, environment, directory" },
        { "{}",                                                     "runtime: is missing" },
        { "{\"runtime\":7}",                                        "runtime: must be a string, not a number" },
        { "{\"runtime\":\"a-name-that-is-long\"}",                  "runtime: must have at most 15 bytes, not 19" },
        { "{\"runtime\":\"cuda\",\"directory\":7}",                 "directory: must be a string, not a number" },
        { "{\"runtime\":\"cuda\",\"chips\":0}",                     "chips: must be a whole number in 1..1024, not 0" },
        { "{\"runtime\":\"cuda\",\"args\":\"a\"}",                  "args: must be a list, not the string 'a'" },
        { "{\"runtime\":\"cuda\",\"args\":[\"a\",7]}",              "args[1]: must be a string" },
        { "{\"runtime\":\"cuda\",\"args\":[\"a\\u0000b\"]}",        "args[0]: must be a string" },
        { "{\"runtime\":\"cuda\",\"devices\":\"a\"}",               "devices: must be a list, not the string 'a'" },
        { "{\"runtime\":\"cuda\",\"devices\":[7]}",                 "devices[0]: must be a device's id" },
        { "{\"runtime\":\"cuda\",\"devices\":[\"a\",\"\"]}",        "devices[1]: must be a device's id" },
        { "{\"runtime\":\"cuda\",\"devices\":[\"a,b\"]}",           "devices[0]: must be a device's id" },
        { "{\"runtime\":\"cuda\",\"environment\":[]}",              "environment: must be an object, not a list" },
};
/* clang-format on */

static void an_order_is_read_strictly(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                json_t *body = json_loads(orders[i].body, JSON_ALLOW_NUL, NULL);
                struct json_field root = json_field_root(body);
                struct launch_order order = { .chips = 0 };
                struct err err = { 0 };
                int r;

                assert_non_null(body);
                r = launch_order_read(&root, &order, &err);
                refused(orders[i].body, orders[i].sentence[0] == '\0' ? 0 : -EBADMSG, orders[i].sentence,
                        r < 0 ? r : 0, &err);
                text_free(&order.list);
                json_decref(body);
        }
}

static void devices_are_listed_with_commas(void **state)
{
        json_t *body = json_loads("{\"runtime\":\"cpu\",\"devices\":[\"a\",\"b::1\"]}", 0, NULL);
        struct json_field root = json_field_root(body);
        struct launch_order order = { .chips = 0 };

        (void) state;
        assert_true(launch_order_read(&root, &order, NULL) >= 0);
        assert_string_equal(order.list.data, "a,b::1");
        text_free(&order.list);
        json_decref(body);
}

static void only_what_the_table_lets_through_is_passed_on(void **state)
{
        static char path[] = "/bin/true", passed[] = "LANG";
        char *names[] = { passed, NULL };
        const struct program_table_row program = { .path = path,
                                                   .environment = names,
                                                   .environment_count = 1 };
        static const struct {
                const char *environment, *sentence;
        } rows[] = {
                { "{\"REMUDA_RANK\":\"1\",\"LD_PRELOAD\":\"/x.so\"}",
                  "environment.LD_PRELOAD: not a string that the program table lets through" },
                { "{\"LANG\":7}", "environment.LANG: not a string that the program table lets through" },
                { "{\"PATH\":\"/x\"}", "environment.PATH: not a string that the program table lets through" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *environment = json_loads(rows[i].environment, 0, NULL);
                struct launch_order order = { .environment = json_field_root(environment) };
                const struct launch_choice none = { .count = 0 };
                struct err err = { 0 };
                unsigned id;
                pid_t pid;

                refused(rows[i].environment, -EINVAL, rows[i].sentence,
                        launch_order_start(&order, &(struct caller){ .trusted = true }, &program, &none, NULL,
                                           &id, &pid, &err),
                        &err);
                json_decref(environment);
        }
}

/* Two GPUs, of which pod "team/a" holds the first; a processor; a device in no group. */
static size_t one_is_held(void *userdata, const struct holder **ret, uint64_t *ret_asked_usec)
{
        static const struct holder holder = { .device_id = "GPU-0", .pod_namespace = "team", .pod = "a" };

        (void) userdata;
        (void) ret_asked_usec;
        *ret = &holder;
        return 1;
}

static void add(struct inventory *inventory, const char *id, const char *vendor, const char *runtime,
                bool usable)
{
        struct device *device = inventory_add_device(inventory);
        struct device_group *group;

        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->vendor, sizeof(device->vendor), vendor);
        device->ordinal = (unsigned) inventory->device_count - 1;
        device->usable = usable;
        if (runtime[0] == '\0')
                return;
        (void) text_format(device->group, sizeof(device->group), "%s-0", vendor);
        if (inventory_find_group(inventory, device->group) != NULL)
                return;
        group = inventory_add_group(inventory);
        (void) text_copy(group->name, sizeof(group->name), device->group);
        (void) text_copy(group->runtime, sizeof(group->runtime), runtime);
}

static void make_node(struct inventory *inventory)
{
        inventory_init(inventory);
        add(inventory, "GPU-0", "nvidia", "cuda", true);
        add(inventory, "GPU-1", "nvidia", "cuda", true);
        add(inventory, "GPU-2", "nvidia", "cuda", false);
        add(inventory, "cpu-numa0", "cpu", "cpu", true);
        add(inventory, "lone", "nvidia", "", true);
        add(inventory, "ve-0", "nec", "nec", true);
        add(inventory, "ve-1", "nec", "nec", true);
        add(inventory, "0000:18:00.0", "nvidia", "cuda", true);
        add(inventory, "x-0", "horizon", "horizon", true);
}

/* clang-format off */
static const struct {
        const char *list, *runtime, *pod; /* pod: NULL = a trusted caller */
        int result;
        size_t count;
        const char *sentence;
} lists[] = {
        { "",                 "cuda",   NULL, 0,       0, "" },
        { "GPU-1",            "cuda",   NULL, 0,       1, "" },
        { "GPU-0::0,GPU-0::1,GPU-1", "cuda", NULL, 0,  2, "" },
        { ",GPU-1,,",         "cuda",   NULL, 0,       1, "" },
        { "GPU-0",            "cuda",   "a",  0,       1, "" },
        { "GPU-1",            "cuda",   "a",  -EACCES, 0, "device 'GPU-1' is not held by the caller's pod" },
        { "GPU-0",            "cuda",   "b",  -EACCES, 0, "device 'GPU-0' is not held by the caller's pod" },
        { "GPU-9",            "cuda",   NULL, -ENOENT, 0, "no device 'GPU-9' on this node" },
        { "cpu-numa0",        "cuda",   NULL, -EINVAL, 0, "device 'cpu-numa0' does not run 'cuda'; its runtime is 'cpu'" },
        { "cpu-numa0",        "opencl", NULL, 0,       1, "" },
        { "lone",             "cuda",   NULL, -EINVAL, 0, "device 'lone' does not run 'cuda'; its runtime is 'none'" },
        { "an-id-of-more-bytes-than-any-may-have-----------------------------------------------------------------", "cuda", NULL,
          -EINVAL, 0, "'an-id-of-more-bytes-...' is no device's id" },
};
/* clang-format on */

static void a_pod_may_name_what_it_holds(void **state)
{
        struct inventory node;
        const struct services services = { .published = &node, .holders = one_is_held };

        (void) state;
        make_node(&node);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                struct caller caller = { .trusted = lists[i].pod == NULL, .pod_namespace = "team" };
                struct launch_choice choice = { .count = 0 };
                struct err err = { 0 };

                (void) text_copy(caller.pod, sizeof(caller.pod), lists[i].pod != NULL ? lists[i].pod : "");
                refused(lists[i].list, lists[i].result, lists[i].sentence,
                        launch_choice_list(&services, &caller, lists[i].runtime, lists[i].list, &choice,
                                           &err),
                        &err);
                if (lists[i].result == 0)
                        assert_int_equal(choice.count, lists[i].count);
        }
        inventory_free(&node);
}

static void any_are_those_that_nobody_holds_and_that_are_well(void **state)
{
        struct inventory node;
        const struct services services = { .published = &node, .holders = one_is_held };
        struct launch_choice choice = { .count = 0 };
        struct err err = { 0 };

        (void) state;
        make_node(&node);
        assert_int_equal(launch_choice_any(&services, NULL, "cuda", 1, &choice, &err), 0);
        assert_string_equal(choice.devices[0]->id, "GPU-1");
        choice.count = 0;
        refused("three", -EBUSY, "3 devices of runtime 'cuda' are asked for, 2 are free",
                launch_choice_any(&services, NULL, "cuda", 3, &choice, &err), &err);
        inventory_free(&node);
}

/* clang-format off */
static const struct {
        const char *list;
        bool in_pod;
        const char *environment;
} environments[] = {
        { "",                   false, "{}" },
        { "GPU-0,GPU-1",        true,  "{\"REMUDA_VENDOR\":\"nvidia\",\"REMUDA_DEVICES\":\"GPU-0,GPU-1\",\"CUDA_VISIBLE_DEVICES\":\"GPU-0,GPU-1\"}" },
        { "GPU-0,0000:18:00.0", false, "{\"REMUDA_VENDOR\":\"nvidia\",\"REMUDA_DEVICES\":\"GPU-0,0000:18:00.0\",\"CUDA_VISIBLE_DEVICES\":\"0,7\"}" },
        { "0000:18:00.0",       true,  "{\"REMUDA_VENDOR\":\"nvidia\",\"REMUDA_DEVICES\":\"0000:18:00.0\"}" },
        { "ve-0",               false, "{\"REMUDA_VENDOR\":\"nec\",\"REMUDA_DEVICES\":\"ve-0\",\"VE_NODE_NUMBER\":\"5\"}" },
        { "ve-0,ve-1",          false, "{\"REMUDA_VENDOR\":\"nec\",\"REMUDA_DEVICES\":\"ve-0,ve-1\"}" },
        { "x-0",                false, "{\"REMUDA_VENDOR\":\"horizon\",\"REMUDA_DEVICES\":\"x-0\"}" },
};
/* clang-format on */

static void a_program_is_told_its_devices_in_the_words_of_its_runtime(void **state)
{
        struct inventory node;
        const struct services services = { .published = &node };

        (void) state;
        make_node(&node);
        for (size_t i = 0; i < ARRAY_SIZE(environments); i++) {
                const struct caller caller = { .trusted = true };
                struct launch_choice choice = { .count = 0 };
                json_t *environment;
                char *told;
                char runtime[16] = "";
                const struct device *first;
                char id[DEVICE_ID_BYTES];

                (void) text_format(id, sizeof(id), "%.*s", (int) strcspn(environments[i].list, ","),
                                   environments[i].list);
                first = inventory_find_device(&node, id);
                if (first != NULL)
                        (void) text_copy(runtime, sizeof(runtime),
                                         inventory_find_group(&node, first->group)->runtime);
                assert_int_equal(
                        launch_choice_list(&services, &caller, runtime, environments[i].list, &choice, NULL),
                        0);
                environment = launch_choice_environment(&choice, environments[i].in_pod);
                told = json_dumps(environment, JSON_COMPACT);
                if (strcmp(told, environments[i].environment) != 0)
                        fail_msg("%s: %s", environments[i].list, told);
                free(told);
                json_decref(environment);
        }
        inventory_free(&node);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_order_is_read_strictly),
                cmocka_unit_test(devices_are_listed_with_commas),
                cmocka_unit_test(only_what_the_table_lets_through_is_passed_on),
                cmocka_unit_test(a_pod_may_name_what_it_holds),
                cmocka_unit_test(any_are_those_that_nobody_holds_and_that_are_well),
                cmocka_unit_test(a_program_is_told_its_devices_in_the_words_of_its_runtime),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
