/* Plugin: which devices are offered, what a container gets with them in each configuration, and what is
 * written for CDI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/plugin_fixture.h"

/* clang-format off */
static const struct {
        const char *what, *id, *group;
        const char *vendor, *resource;
        unsigned shares, offered; /* offered: of RESOURCE, beside two that are */
} members[] = {
        { "one more",             "c",      "g1", NULL,     NULL,         1, 3 },
        { "one of no group",      "c",      "",   NULL,     NULL,         1, 2 },
        { "one of an unknown",    "c",      "g9", NULL,     NULL,         1, 2 },
        { "one without an id",    "",       "g1", NULL,     NULL,         1, 2 },
        { "a blank in its id",    "c d",    "g1", NULL,     NULL,         1, 2 },
        { "no ASCII in its id",   "c\x7f",  "g1", NULL,     NULL,         1, 2 },
        { "the same id again",    "b",      "g1", NULL,     NULL,         1, 2 },
        { "an id within an id",   "bb",     "g1", NULL,     NULL,         1, 3 },
        { "another group",        "c",      "g2", "huawei", RESOURCE,     1, 3 },
        { "not shared",           "c",      "g2", "huawei", RESOURCE,     0, 3 },
        { "another's group",      "c",      "g2", "amd",    RESOURCE,     1, 2 },
        { "a shared group",       "c",      "g2", "huawei", RESOURCE,     4, 2 },
        { "of another resource",  "c",      "g2", "amd",    "amd.com/x",  4, 2 },
        { "of no resource",       "c",      "g2", "amd",    "",           1, 2 },
        { "of no name",           "c",      "g2", "amd",    "not a name", 1, 2 },
};
/* clang-format on */

static void what_cannot_be_told_apart_is_not_offered(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                void *own = NULL;
                struct place *p;

                (void) set_up(&own);
                p = own;
                add_group(p, "g1", "huawei", RESOURCE, 1);
                if (members[i].resource != NULL)
                        add_group(p, members[i].group, members[i].vendor, members[i].resource,
                                  members[i].shares);
                add_device(p, "b", "g1", "huawei");
                add_device(p, "a", "g1", "huawei");
                add_device(p, members[i].id, members[i].group, "huawei");
                start(p, NULL);
                update(p);
                if (offered(p, RESOURCE) != members[i].offered)
                        fail_msg("%s: %u, not %u, are offered", members[i].what, offered(p, RESOURCE),
                                 members[i].offered);
                update(p); /* the same again changes nothing */
                assert_int_equal(offered(p, RESOURCE), members[i].offered);
                (void) tear_down(&own);
        }
}

static const char *variable(const struct reply *reply, const char *name)
{
        const DevicePlugin__ContainerAllocateResponse *one = reply->allocated->containers[0];

        for (size_t i = 0; i < one->n_environment; i++)
                if (strcmp(one->environment[i]->key, name) == 0)
                        return one->environment[i]->value;
        return "";
}

static void a_container_gets_what_the_configuration_says(void **state)
{
        static const struct {
                const char *root, *host, *socket;
                bool cdi;
                size_t mounts, names;
        } kinds[] = {
                { "", "", "", false, 1, 0 },
                { "/", "", "", true, 1, 1 },
                { "/host", "/host", "/run/remuda", true, 2, 1 },
        };
        struct place *p = *state;
        struct device *device;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "npu-0", "g1", "huawei");
        device = add_device(p, "-1-", "g1", "huawei"); /* no name for CDI */
        (void) text_copy(device->nodes[1], sizeof(device->nodes[1]), "/dev/davinci0");
        device->node_count = 2;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct plugin_config config;
                struct reply reply;
                char host[64];

                plugin_config_default(&config);
                (void) text_copy(config.device_root, sizeof(config.device_root), kinds[i].root);
                (void) text_copy(config.launch_socket_directory, sizeof(config.launch_socket_directory),
                                 kinds[i].socket);
                config.cdi_names = kinds[i].cdi;
                if (i == 0) {
                        start(p, &config);
                        update(p);
                } else
                        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
                allocate(p, "npu-0", "-1-", &reply);
                assert_int_equal(reply.status, GRPC_OK);
                assert_non_null(reply.allocated);
                assert_int_equal(reply.allocated->containers[0]->n_devices, 4); /* each file once */
                assert_true(text_format(host, sizeof(host), "%s/dev/davinci0", kinds[i].host));
                assert_true(has_file(&reply, "/dev/davinci0", host));
                assert_true(text_format(host, sizeof(host), "%s/dev/davinci_manager", kinds[i].host));
                assert_true(has_file(&reply, "/dev/davinci_manager", host));
                assert_int_equal(reply.allocated->containers[0]->n_mounts, kinds[i].mounts);
                assert_int_equal(reply.allocated->containers[0]->n_cdi_devices, kinds[i].names);
                assert_string_equal(variable(&reply, "REMUDA_DEVICES"), "npu-0,-1-");
                assert_string_equal(variable(&reply, "REMUDA_DEVICES_EXAMPLE_COM_NPU_X_9"), "npu-0,-1-");
                pb_arena_free(&reply.arena);
        }
        plugin_set_tree(p->plugin, NULL);
        {
                struct reply reply;

                allocate(p, "npu-0", NULL, &reply);
                assert_int_equal(reply.allocated->containers[0]->n_devices, 1);
                pb_arena_free(&reply.arena);
        }
}

static void what_is_not_to_be_used_is_refused(void **state)
{
        static const struct {
                const char *id;
                enum grpc_status status;
                const char *says;
        } asked[] = {
                { "b", GRPC_OK, "" },
                { "none", GRPC_NOT_FOUND, "device 'none' is not one of " RESOURCE },
                { "ill", GRPC_FAILED_PRECONDITION, "device 'ill' is unhealthy (Hot): 120 degrees" },
                { "out", GRPC_FAILED_PRECONDITION, "and must not be used" },
                { "12345678901234567890123456789012345678901234567890123456789012345678901234567890"
                  "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                  GRPC_NOT_FOUND, "device '1234567890" },
        };
        struct place *p = *state;
        struct device *device;
        struct reply reply;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "b", "g1", "huawei");
        device = add_device(p, "ill", "g1", "huawei");
        device->usable = false;
        device->health = HEALTH_UNHEALTHY;
        (void) text_copy(device->reason, sizeof(device->reason), "Hot");
        (void) text_copy(device->message, sizeof(device->message), "120 degrees");
        add_device(p, "out", "g1", "huawei")->usable = false;
        start(p, NULL);
        update(p);
        for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
                allocate(p, asked[i].id, NULL, &reply);
                if (reply.status != asked[i].status || strstr(reply.sentence, asked[i].says) == NULL)
                        fail_msg("%s: %s '%s'", asked[i].id, grpc_status_name(reply.status), reply.sentence);
                pb_arena_free(&reply.arena);
        }
        ask(p, ALLOCATE, (const uint8_t *) "\x0a\xff", 2, &reply);
        assert_int_equal(reply.status, GRPC_INVALID_ARGUMENT);
        pb_arena_free(&reply.arena);
        assert_int_equal(status_of(p, RESOURCE)->refusals_total, ARRAY_SIZE(asked));
}

/* @count containers, each with @ids times the id "a", as the two methods read them alike. */
static uint8_t *many(size_t count, size_t ids, size_t *ret_size)
{
        static const uint8_t id[] = { 0x0a, 1, 'a' };
        uint8_t *bytes = malloc(count * (ids * sizeof(id) + 5)), *at = bytes;

        assert_non_null(bytes);
        for (size_t i = 0; i < count; i++) {
                size_t size = ids * sizeof(id);

                *at++ = 0x0a;
                for (; size > 0x7f; size >>= 7)
                        *at++ = (uint8_t) (0x80 | (size & 0x7f));
                *at++ = (uint8_t) size;
                for (size_t k = 0; k < ids; k++)
                        at = (uint8_t *) memcpy(at, id, sizeof(id)) + sizeof(id);
        }
        *ret_size = (size_t) (at - bytes);
        return bytes;
}

/* clang-format off */
static const struct {
        size_t containers, ids;
        const char *method;
        enum grpc_status status;
        const char *says;
} crowds[] = {
        { 3,      2,      ALLOCATE, GRPC_OK, "" },
        { 400000, 0,      ALLOCATE, GRPC_INVALID_ARGUMENT, "malformed or too large" },
        { 1,      120000, ALLOCATE, GRPC_RESOURCE_EXHAUSTED, "the request is too large" },
        { 9000,   1,      ALLOCATE, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer" },
        { 3,      2,      "/v1beta1.DevicePlugin/GetPreferredAllocation", GRPC_OK, "" },
        { 400000, 0,      "/v1beta1.DevicePlugin/GetPreferredAllocation", GRPC_OK, "" }, /* a hint is no error */
        { 1,      120000, "/v1beta1.DevicePlugin/GetPreferredAllocation", GRPC_OK, "" },
};
/* clang-format on */

static void what_is_too_much_is_refused_as_a_whole(void **state)
{
        struct place *p = *state;
        struct plugin_config config;

        plugin_config_default(&config);
        config.cdi_names = true;
        (void) text_copy(config.launch_socket_directory, sizeof(config.launch_socket_directory),
                         "/run/remuda");
        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "a", "g1", "huawei");
        start(p, &config);
        update(p);
        for (size_t i = 0; i < ARRAY_SIZE(crowds); i++) {
                size_t size = 0;
                CLEANUP(free_p) uint8_t *bytes = many(crowds[i].containers, crowds[i].ids, &size);
                struct reply reply;

                ask(p, crowds[i].method, bytes, size, &reply);
                if (reply.status != crowds[i].status || strstr(reply.sentence, crowds[i].says) == NULL)
                        fail_msg("%zu of %zu: %s '%s'", crowds[i].containers, crowds[i].ids,
                                 grpc_status_name(reply.status), reply.sentence);
                pb_arena_free(&reply.arena);
        }
}

static bool file_says(const char *directory, const char *name, const char *words)
{
        char path[256], bytes[16384];
        FILE *file;
        size_t n;

        assert_true(text_format(path, sizeof(path), "%s/%s", directory, name));
        file = fopen(path, "r");
        if (file == NULL)
                return false;
        n = fread(bytes, 1, sizeof(bytes) - 1, file);
        (void) fclose(file);
        bytes[n] = '\0';
        return strstr(bytes, words) != NULL;
}

static void a_spec_is_written_as_long_as_there_are_devices(void **state)
{
        struct place *p = *state;
        struct plugin_config config;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_group(p, "g2", "huawei", "example.com/other", 1);
        add_device(p, "npu-0", "g1", "huawei");
        add_device(p, "npu_1.x:2", "g2", "huawei");
        add_device(p, "npu/3", "g1", "huawei");
        add_device(p, "npu-4", "g1", "huawei")->node_count = 0;
        plugin_config_default(&config);
        (void) text_copy(config.cdi_directory, sizeof(config.cdi_directory), p->directory);
        start(p, &config);
        update(p);
        assert_true(file_says(p->directory, "remuda.dev-huawei.json", "\"npu-0\""));
        assert_true(file_says(p->directory, "remuda.dev-huawei.json", "\"npu_1.x:2\""));
        assert_true(file_says(p->directory, "remuda.dev-huawei.json", "\"/usr/local/Ascend/driver/lib64\""));
        assert_false(file_says(p->directory, "remuda.dev-huawei.json", "npu/3"));
        assert_false(file_says(p->directory, "remuda.dev-huawei.json", "npu-4"));
        assert_false(file_says(p->directory, "remuda.dev-huawei.json", "/host/dev"));
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0); /* nothing is written again */
        (void) text_copy(config.device_root, sizeof(config.device_root), "/");
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
        (void) text_copy(config.device_root, sizeof(config.device_root), "/host");
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
        assert_true(file_says(p->directory, "remuda.dev-huawei.json", "\"/host/dev/davinci0\""));
        assert_true(
                file_says(p->directory, "remuda.dev-huawei.json", "\"/host/usr/local/Ascend/driver/lib64\""));
        p->inventory.device_count = 0;
        update(p);
        assert_false(file_says(p->directory, "remuda.dev-huawei.json", ""));
        add_device(p, "npu-0", "g1", "huawei");
        (void) text_copy(config.cdi_directory, sizeof(config.cdi_directory), "/proc/none");
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
        update(p);
        assert_non_null(strstr(p->logged, "CDI spec"));
}

static void the_way_to_register_changes_with_the_configuration(void **state)
{
        struct place *p = *state;
        struct plugin_config config;
        char registry[80];

        plugin_config_default(&config);
        assert_true(text_format(registry, sizeof(registry), "%s/registry", p->directory));
        assert_int_equal(mkdir(registry, 0700), 0);
        (void) text_copy(config.plugins_registry, sizeof(config.plugins_registry), registry);
        start(p, &config);
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0); /* before any update */
        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "a", "g1", "huawei");
        update(p);
        assert_null(strstr(status_of(p, RESOURCE)->socket, "/registry/"));
        config.watcher = true;
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
        assert_non_null(strstr(status_of(p, RESOURCE)->socket, "/registry/"));
        config.watcher = false;
        assert_int_equal(plugin_configure(p->plugin, &config, NULL), 0);
        assert_null(strstr(status_of(p, RESOURCE)->socket, "/registry/"));
        (void) text_copy(config.plugins_registry, sizeof(config.plugins_registry), "/proc/none");
        config.watcher = true;
        (void) plugin_configure(p->plugin, &config, NULL);
        assert_string_equal(status_of(p, RESOURCE)->socket, "");
}

static void a_directory_leaves_room_for_a_socket(void **state)
{
        struct place *p = *state;
        char directory[128];
        struct plugin_options options = { .kubelet_directory = directory };
        struct plugin *plugin = NULL;
        struct err err = { 0 };

        assert_true(text_format(directory, sizeof(directory), "%s///", p->directory));
        assert_int_equal(plugin_new(p->loop, &options, &plugin, &err), 0);
        plugin_free(plugin);
        plugin_free(NULL);
        directory[0] = '\0';
        assert_int_equal(plugin_new(p->loop, &options, &plugin, &err), -ENAMETOOLONG);
        memset(directory, 'x', 91);
        directory[91] = '\0';
        assert_int_equal(plugin_new(p->loop, &options, &plugin, &err), -ENAMETOOLONG);
        assert_non_null(strstr(err.msg, "must have 1 to 90 bytes"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_told_apart_is_not_offered),
                cmocka_unit_test_setup_teardown(a_container_gets_what_the_configuration_says, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_is_not_to_be_used_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_too_much_is_refused_as_a_whole, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_spec_is_written_as_long_as_there_are_devices, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(the_way_to_register_changes_with_the_configuration, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_directory_leaves_room_for_a_socket, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
