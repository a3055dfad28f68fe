/* Plugin: which devices are offered, what a container gets with them in each configuration, and what is
 * written for CDI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/pb.h"
#include "io/grpc/grpc_client.h"
#include "io/loop.h"
#include "plugin/device_plugin.pb-c.h"
#include "plugin/plugin.h"

#define RESOURCE "example.com/Npu_x.9"
#define MACHINE                                                                                              \
        "# remuda machine 1\n/dev/davinci_manager char 1 1\n/dev/devmm_svm char 1 2\n"                       \
        "/usr/local/Ascend/driver/lib64/x = 1\n"

struct place {
        char directory[64];
        sd_event *loop;
        struct tree *tree;
        struct inventory inventory;
        struct plugin *plugin;
        char logged[1024];
};

static void on_log(void *userdata, int priority, const char *line)
{
        struct place *p = userdata;

        (void) priority;
        (void) text_copy(p->logged, sizeof(p->logged), line);
}

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) text_copy(p->directory, sizeof(p->directory), "/tmp/test_plugin.XXXXXX");
        assert_non_null(mkdtemp(p->directory));
        assert_int_equal(loop_new(&p->loop, NULL), 0);
        assert_int_equal(tree_machine_open_bytes("f", MACHINE, strlen(MACHINE), &p->tree, NULL), 0);
        inventory_init(&p->inventory);
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
        (void) st;
        (void) type;
        (void) walk;
        return remove(path);
}

static int tear_down(void **state)
{
        struct place *p = *state;

        plugin_free(p->plugin);
        tree_close(p->tree);
        inventory_free(&p->inventory);
        sd_event_unref(p->loop);
        (void) nftw(p->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(p);
        return 0;
}

static struct device_group *add_group(struct place *p, const char *name, const char *vendor,
                                      const char *resource, unsigned shares)
{
        struct device_group *group = inventory_add_group(&p->inventory);

        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), name);
        (void) text_copy(group->vendor, sizeof(group->vendor), vendor);
        (void) text_copy(group->resource, sizeof(group->resource), resource);
        group->shares = shares;
        return group;
}

static struct device *add_device(struct place *p, const char *id, const char *group, const char *vendor)
{
        struct device *device = inventory_add_device(&p->inventory);
        size_t number = p->inventory.device_count - 1;

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        (void) text_copy(device->vendor, sizeof(device->vendor), vendor);
        (void) text_format(device->pci, sizeof(device->pci), "0000:%02zx:00.0", number);
        (void) text_format(device->nodes[0], sizeof(device->nodes[0]), "/dev/davinci%zu", number);
        device->node_count = 1;
        device->index = (unsigned) number;
        device->numa = -1;
        device->health = HEALTH_HEALTHY;
        device->usable = true;
        return device;
}

static void start(struct place *p, const struct plugin_config *config)
{
        const struct plugin_options options = { .kubelet_directory = p->directory,
                                                .config = config,
                                                .tree = p->tree,
                                                .log = on_log,
                                                .userdata = p };
        struct err err = { 0 };

        if (plugin_new(p->loop, &options, &p->plugin, &err) < 0)
                fail_msg("%s", err.msg);
}

static void update(struct place *p)
{
        inventory_count(&p->inventory);
        assert_int_equal(plugin_update(p->plugin, &p->inventory, NULL), 0);
}

static const struct plugin_status_resource *status_of(struct place *p, const char *resource)
{
        struct plugin_status status;

        plugin_status(p->plugin, &status);
        for (size_t i = 0; i < status.resource_count; i++)
                if (strcmp(status.resources[i].resource, resource) == 0)
                        return &status.resources[i];
        return NULL;
}

static unsigned offered(struct place *p, const char *resource)
{
        const struct plugin_status_resource *status = status_of(p, resource);

        return status == NULL ? 0 : status->devices;
}

static void turn(struct place *p, unsigned milliseconds)
{
        for (unsigned i = 0; i < milliseconds; i += 10)
                assert_true(sd_event_run(p->loop, 10000) >= 0);
}

struct reply {
        bool done;
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
        struct pb_arena arena;
        DevicePlugin__AllocateResponse *allocated;
};

static void on_answer(void *userdata, const uint8_t *message, size_t size)
{
        struct reply *reply = userdata;

        reply->allocated =
                pb_unpack(&reply->arena, &device_plugin__allocate_response__descriptor, message, size);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct reply *reply = userdata;

        reply->done = true;
        reply->status = status;
        (void) text_copy(reply->sentence, sizeof(reply->sentence), sentence);
}

/* What the resource's socket answers to bytes. */
static void ask(struct place *p, const uint8_t *bytes, size_t size, struct reply *ret)
{
        const struct grpc_client_handlers handlers = { .on_message = on_answer,
                                                       .on_done = on_done,
                                                       .userdata = ret };
        char address[160];
        const struct grpc_client_options options = { .address = address };
        struct grpc_client *client = NULL;

        *ret = (struct reply){ .done = false };
        pb_arena_init(&ret->arena, 1 << 20);
        assert_true(text_format(address, sizeof(address), "unix:%s", status_of(p, RESOURCE)->socket));
        assert_int_equal(grpc_client_new(p->loop, &options, &client, NULL), 0);
        assert_int_equal(
                grpc_client_call(client, "/v1beta1.DevicePlugin/Allocate", bytes, size, 0, &handlers, NULL),
                0);
        for (unsigned turns = 0; !ret->done && turns < 2000; turns++)
                assert_true(sd_event_run(p->loop, 10000) >= 0);
        grpc_client_free(client);
}

static void allocate(struct place *p, const char *first, const char *second, struct reply *ret)
{
        char *ids[] = { (char *) first, (char *) second };
        DevicePlugin__ContainerAllocateRequest container = DEVICE_PLUGIN__CONTAINER_ALLOCATE_REQUEST__INIT,
                                               *containers[] = { &container };
        DevicePlugin__AllocateRequest request = DEVICE_PLUGIN__ALLOCATE_REQUEST__INIT;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size = 0;

        container.ids = ids;
        container.n_ids = second == NULL ? 1 : 2;
        request.containers = containers;
        request.n_containers = 1;
        bytes = pb_pack(&request, &size);
        assert_non_null(bytes);
        ask(p, bytes, size, ret);
}

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

static bool has_file(const struct reply *reply, const char *inside, const char *host)
{
        const DevicePlugin__ContainerAllocateResponse *one = reply->allocated->containers[0];

        for (size_t i = 0; i < one->n_devices; i++)
                if (strcmp(one->devices[i]->container_path, inside) == 0)
                        return strcmp(one->devices[i]->host_path, host) == 0;
        return false;
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
        ask(p, (const uint8_t *) "\x0a\xff", 2, &reply);
        assert_int_equal(reply.status, GRPC_INVALID_ARGUMENT);
        pb_arena_free(&reply.arena);
        assert_int_equal(status_of(p, RESOURCE)->refusals_total, ARRAY_SIZE(asked));
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

static void a_chip_moves_once_its_old_list_has_gone_out(void **state)
{
        struct place *p = *state;
        struct device *part;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_group(p, "g2", "huawei", "example.com/other", 1);
        add_device(p, "a", "g1", "huawei");
        add_device(p, "b", "g1", "huawei");
        start(p, NULL);
        update(p);
        assert_int_equal(offered(p, RESOURCE), 2);
        (void) text_copy(p->inventory.devices[1].group, DEVICE_GROUP_BYTES, "g2");
        update(p);
        assert_int_equal(offered(p, RESOURCE), 1);
        assert_int_equal(offered(p, "example.com/other"), 0);
        for (unsigned i = 0; offered(p, "example.com/other") == 0 && i < 100; i++)
                turn(p, 100);
        assert_int_equal(offered(p, "example.com/other"), 1);
        p->inventory.device_count = 1; /* b's chip is cut in two */
        for (unsigned i = 0; i < 2; i++) {
                part = add_device(p, i == 0 ? "b0" : "b1", "g1", "huawei");
                (void) text_copy(part->pci, sizeof(part->pci), "0000:01:00.0");
                (void) text_format(part->partition, sizeof(part->partition), "half-%u", i);
        }
        update(p);
        assert_int_equal(offered(p, RESOURCE), 1);
        for (unsigned i = 0; offered(p, RESOURCE) == 1 && i < 100; i++)
                turn(p, 100);
        assert_int_equal(offered(p, RESOURCE), 3);
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
                cmocka_unit_test_setup_teardown(a_spec_is_written_as_long_as_there_are_devices, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_chip_moves_once_its_old_list_has_gone_out, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(the_way_to_register_changes_with_the_configuration, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_directory_leaves_room_for_a_socket, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
