/* A device plugin in a folder of its own with an inventory to fill, and what its socket answers. */
#pragma once

#include <errno.h>
#include <ftw.h>
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
#define ALLOCATE "/v1beta1.DevicePlugin/Allocate"
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

static inline void on_log(void *userdata, int priority, const char *line)
{
        struct place *p = userdata;

        (void) priority;
        (void) text_copy(p->logged, sizeof(p->logged), line);
}

static inline int set_up(void **state)
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

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
        (void) st;
        (void) type;
        (void) walk;
        return remove(path);
}

static inline int tear_down(void **state)
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

static inline struct device_group *add_group(struct place *p, const char *name, const char *vendor,
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

static inline struct device *add_device(struct place *p, const char *id, const char *group,
                                        const char *vendor)
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

static inline void start(struct place *p, const struct plugin_config *config)
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

static inline void update(struct place *p)
{
        inventory_count(&p->inventory);
        assert_int_equal(plugin_update(p->plugin, &p->inventory, NULL), 0);
}

static inline const struct plugin_status_resource *status_of(struct place *p, const char *resource)
{
        struct plugin_status status;

        plugin_status(p->plugin, &status);
        for (size_t i = 0; i < status.resource_count; i++)
                if (strcmp(status.resources[i].resource, resource) == 0)
                        return &status.resources[i];
        return NULL;
}

static inline unsigned offered(struct place *p, const char *resource)
{
        const struct plugin_status_resource *status = status_of(p, resource);

        return status == NULL ? 0 : status->devices;
}

static inline void turn(struct place *p, unsigned milliseconds)
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

static inline void on_answer(void *userdata, const uint8_t *message, size_t size)
{
        struct reply *reply = userdata;

        reply->allocated =
                pb_unpack(&reply->arena, &device_plugin__allocate_response__descriptor, message, size);
}

static inline void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct reply *reply = userdata;

        reply->done = true;
        reply->status = status;
        (void) text_copy(reply->sentence, sizeof(reply->sentence), sentence);
}

/* What the resource's socket answers to bytes. */
static inline void ask(struct place *p, const char *method, const uint8_t *bytes, size_t size,
                       struct reply *ret)
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
        assert_int_equal(grpc_client_call(client, method, bytes, size, 0, &handlers, NULL), 0);
        for (unsigned turns = 0; !ret->done && turns < 2000; turns++)
                assert_true(sd_event_run(p->loop, 10000) >= 0);
        grpc_client_free(client);
}

static inline void allocate(struct place *p, const char *first, const char *second, struct reply *ret)
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
        ask(p, ALLOCATE, bytes, size, ret);
}

static inline bool has_file(const struct reply *reply, const char *inside, const char *host)
{
        const DevicePlugin__ContainerAllocateResponse *one = reply->allocated->containers[0];

        for (size_t i = 0; i < one->n_devices; i++)
                if (strcmp(one->devices[i]->container_path, inside) == 0)
                        return strcmp(one->devices[i]->host_path, host) == 0;
        return false;
}
