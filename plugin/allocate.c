/* Allocate: from the snapshot, from nothing else. The answer names physical devices by what does not change
 * while they exist, because the kubelet keeps it and replays it for the pod's whole life. */
#include "plugin/allocate.h"

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "plugin/cdi.h"
#include "plugin/device_plugin.pb-c.h"
#include "plugin/plugin_internal.h"
#include "plugin/resource.h"

#define LAUNCH_SOCKET_DIRECTORY "/run/remuda" /* where remuda-launch looks for the agent */

#define FILES_PER_DEVICE_MAX (DEVICE_NODES_MAX)
#define VARIABLES_MAX        5

/* One container's devices in canonical order, each once, and where its answer is put together. */
struct grant {
        const struct resource *resource;
        struct pb_arena *arena;
        const struct device **devices;
        size_t count;
        DevicePlugin__ContainerAllocateResponse *answer;
};

static int by_position(const void *a, const void *b)
{
        size_t x = *(const size_t *) a, y = *(const size_t *) b;

        return x < y ? -1 : x > y;
}

static const struct device *member(const struct resource *resource, size_t position)
{
        return &resource->plugin->inventory.devices[resource->members[position]];
}

/* Return: 0, or the gRPC status that refuses the ids, with the sentence. */
static enum grpc_status resolve(struct grant *grant, char **ids, size_t count, char *sentence,
                                size_t sentence_bytes)
{
        const struct resource *resource = grant->resource;
        size_t *positions = pb_arena_take(grant->arena, (count + 1) * sizeof(*positions));

        grant->devices = pb_arena_take(grant->arena, (count + 1) * sizeof(const struct device *));
        if (grant->arena->failed) {
                (void) text_copy(sentence, sentence_bytes, "the request is too large");
                return GRPC_RESOURCE_EXHAUSTED;
        }
        for (size_t i = 0; i < count; i++) {
                ssize_t position = resource_find(resource, ids[i]);
                const struct device *device;

                if (position < 0) {
                        (void) text_format(sentence, sentence_bytes,
                                           "device '%.100s' is not one of %s on this node", ids[i],
                                           resource->name);
                        return GRPC_NOT_FOUND;
                }
                device = member(resource, (size_t) position);
                if (!device->usable) {
                        (void) text_format(
                                sentence, sentence_bytes, "device '%s' is %s%s%s%s%s", ids[i],
                                device_health_name(device->health), device->reason[0] == '\0' ? "" : " (",
                                device->reason, device->reason[0] == '\0' ? "" : "): ",
                                device->reason[0] == '\0' ? " and must not be used" : device->message);
                        return GRPC_FAILED_PRECONDITION;
                }
                positions[i] = (size_t) position;
        }
        if (count > 0)
                qsort(positions, count, sizeof(*positions), by_position);
        for (size_t i = 0; i < count; i++)
                if (i == 0 || positions[i] != positions[i - 1]) /* replicas of one chip are one chip */
                        grant->devices[grant->count++] = member(resource, positions[i]);
        return GRPC_OK;
}

/* What is added below, an arena that has not given all of it is told by `failed` at the end. */
static void add_file(struct grant *grant, const char *path)
{
        DevicePlugin__ContainerAllocateResponse *answer = grant->answer;
        const char *root = grant->resource->plugin->config.device_root;
        DevicePlugin__DeviceSpec *spec;
        char host[DEVICE_NODE_BYTES + 200];

        for (size_t i = 0; i < answer->n_devices; i++)
                if (strcmp(answer->devices[i]->container_path, path) == 0)
                        return;
        spec = pb_arena_take(grant->arena, sizeof(*spec));
        (void) text_format(host, sizeof(host), "%s%s", strcmp(root, "/") == 0 ? "" : root, path);
        if (spec == NULL)
                return;
        device_plugin__device_spec__init(spec);
        spec->container_path = pb_arena_copy(grant->arena, path);
        spec->host_path = pb_arena_copy(grant->arena, host);
        spec->permissions = pb_arena_copy(grant->arena, "rw");
        answer->devices[answer->n_devices] = spec;
        answer->n_devices += !grant->arena->failed;
}

static void add_files(struct grant *grant)
{
        const struct resource_shared *shared = &grant->resource->shared;
        size_t most = grant->count * FILES_PER_DEVICE_MAX + RESOURCE_FILES_MAX;

        grant->answer->devices = pb_arena_take(grant->arena, most * sizeof(DevicePlugin__DeviceSpec *));
        for (size_t i = 0; i < grant->count; i++)
                for (size_t j = 0; j < grant->devices[i]->node_count; j++)
                        add_file(grant, grant->devices[i]->nodes[j]);
        for (size_t i = 0; i < shared->file_count; i++)
                add_file(grant, shared->files[i]);
}

static void add_variable(struct grant *grant, const char *name, const char *value)
{
        DevicePlugin__Pair *pair = pb_arena_take(grant->arena, sizeof(*pair));

        if (pair == NULL)
                return;
        device_plugin__pair__init(pair);
        pair->key = pb_arena_copy(grant->arena, name);
        pair->value = pb_arena_copy(grant->arena, value);
        grant->answer->environment[grant->answer->n_environment++] = pair;
}

/* REMUDA_DEVICES_NVIDIA_COM_GPU: a container with several resources gets all of them, where the kubelet would
 * keep only one REMUDA_DEVICES. */
static void variable_of_resource(const char *resource, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "REMUDA_DEVICES_%s", resource);
        for (char *c = ret + strlen("REMUDA_DEVICES_"); *c != '\0'; c++)
                if (*c >= 'a' && *c <= 'z')
                        *c = (char) (*c - 'a' + 'A');
                else if (!(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9'))
                        *c = '_';
}

static void add_variables(struct grant *grant)
{
        const struct vendor_variable *variable = grant->resource->shared.variable;
        struct text ids = { 0 }, visible = { 0 }, places = { 0 };
        bool placed = true;
        char name[DEVICE_RESOURCE_BYTES + 16], one[DEVICE_ID_BYTES];

        grant->answer->environment =
                pb_arena_take(grant->arena, VARIABLES_MAX * sizeof(DevicePlugin__Pair *));
        for (size_t i = 0; i < grant->count; i++) {
                text_printf(&ids, "%s%s", i == 0 ? "" : ",", grant->devices[i]->id);
                text_printf(&places, "%s%s", i == 0 ? "" : ",", grant->devices[i]->pci);
                placed = placed && grant->devices[i]->pci[0] != '\0';
                if (variable != NULL) {
                        vendor_visible_name(variable->by, grant->devices[i], one, sizeof(one));
                        text_printf(&visible, "%s%s", i == 0 ? "" : ",", one);
                }
        }
        variable_of_resource(grant->resource->name, name, sizeof(name));
        add_variable(grant, "REMUDA_DEVICES", ids.data == NULL ? "" : ids.data);
        add_variable(grant, name, ids.data == NULL ? "" : ids.data);
        add_variable(grant, "REMUDA_VENDOR", grant->resource->vendor);
        if (placed && places.data != NULL)
                add_variable(grant, "REMUDA_PCI", places.data);
        if (visible.data != NULL)
                add_variable(grant, variable->name, visible.data);
        grant->arena->failed |= ids.failed || visible.failed || places.failed;
        text_free(&places);
        text_free(&ids);
        text_free(&visible);
}

static void add_mount(struct grant *grant, const char *inside, const char *root, const char *path,
                      bool read_only)
{
        DevicePlugin__Mount *mount = pb_arena_take(grant->arena, sizeof(*mount));
        char host[512];

        if (mount == NULL)
                return;
        (void) text_format(host, sizeof(host), "%s%s", strcmp(root, "/") == 0 ? "" : root, path);
        device_plugin__mount__init(mount);
        mount->container_path = pb_arena_copy(grant->arena, inside);
        mount->host_path = pb_arena_copy(grant->arena, host);
        mount->read_only = read_only;
        grant->answer->mounts[grant->answer->n_mounts++] = mount;
}

static void add_mounts(struct grant *grant)
{
        const struct resource_shared *shared = &grant->resource->shared;
        const struct plugin_config *config = &grant->resource->plugin->config;

        grant->answer->mounts =
                pb_arena_take(grant->arena, (RESOURCE_MOUNTS_MAX + 1) * sizeof(DevicePlugin__Mount *));
        for (size_t i = 0; i < shared->mount_count; i++)
                add_mount(grant, shared->mounts[i]->path, config->device_root, shared->mounts[i]->path,
                          !shared->mounts[i]->writable);
        if (config->launch_socket_directory[0] != '\0')
                add_mount(grant, LAUNCH_SOCKET_DIRECTORY, "", config->launch_socket_directory, true);
}

static void add_cdi(struct grant *grant)
{
        char name[DEVICE_ID_BYTES + 64];

        if (!grant->resource->plugin->config.cdi_names)
                return;
        grant->answer->cdi_devices =
                pb_arena_take(grant->arena, (grant->count + 1) * sizeof(DevicePlugin__CdiDevice *));
        for (size_t i = 0; i < grant->count; i++) {
                DevicePlugin__CdiDevice *device;

                if (!cdi_name(grant->devices[i], name, sizeof(name)))
                        continue; /* its files are in the answer in any case */
                device = pb_arena_take(grant->arena, sizeof(*device));
                if (device == NULL)
                        return;
                device_plugin__cdi_device__init(device);
                device->name = pb_arena_copy(grant->arena, name);
                grant->answer->cdi_devices[grant->answer->n_cdi_devices++] = device;
        }
}

static enum grpc_status answer_container(struct resource *resource, struct pb_arena *arena,
                                         const DevicePlugin__ContainerAllocateRequest *request,
                                         DevicePlugin__ContainerAllocateResponse **ret, char *sentence,
                                         size_t sentence_bytes)
{
        struct grant grant = { .resource = resource, .arena = arena };
        enum grpc_status status = resolve(&grant, request->ids, request->n_ids, sentence, sentence_bytes);

        if (status != GRPC_OK)
                return status;
        grant.answer = pb_arena_take(arena, sizeof(*grant.answer));
        if (grant.answer != NULL) {
                device_plugin__container_allocate_response__init(grant.answer);
                add_files(&grant);
                add_variables(&grant);
                add_mounts(&grant);
                add_cdi(&grant);
        }
        if (arena->failed) {
                (void) text_copy(sentence, sentence_bytes, "no memory for the answer");
                return GRPC_RESOURCE_EXHAUSTED;
        }
        *ret = grant.answer;
        return GRPC_OK;
}

static enum grpc_status answer_request(struct resource *resource, struct pb_arena *arena,
                                       const uint8_t *message, size_t size_bytes, uint8_t **ret,
                                       size_t *ret_bytes, char *sentence, size_t sentence_bytes)
{
        DevicePlugin__AllocateRequest *request =
                pb_unpack(arena, &device_plugin__allocate_request__descriptor, message, size_bytes);
        DevicePlugin__AllocateResponse response = DEVICE_PLUGIN__ALLOCATE_RESPONSE__INIT;
        enum grpc_status status = GRPC_OK;

        if (request == NULL) {
                (void) text_copy(sentence, sentence_bytes, "the AllocateRequest is malformed or too large");
                return GRPC_INVALID_ARGUMENT;
        }
        response.containers =
                pb_arena_take(arena, (request->n_containers + 1) * sizeof(*response.containers));
        for (size_t i = 0; response.containers != NULL && i < request->n_containers && status == GRPC_OK;
             i++) {
                status = answer_container(resource, arena, request->containers[i], &response.containers[i],
                                          sentence, sentence_bytes);
                response.n_containers = i + 1;
        }
        if (status == GRPC_OK) {
                *ret = response.containers == NULL ? NULL : pb_pack(&response, ret_bytes);
                if (*ret == NULL) {
                        (void) text_copy(sentence, sentence_bytes, "no memory for the answer");
                        return GRPC_RESOURCE_EXHAUSTED;
                }
        }
        return status;
}

void allocate_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        uint64_t begin = plugin_now_usec();
        CLEANUP(free_p) uint8_t *bytes = NULL;
        char sentence[400] = "";
        struct pb_arena arena;
        enum grpc_status status;
        size_t size = 0;

        pb_arena_init(&arena, RESOURCE_ARENA_BYTES);
        status = answer_request(resource, &arena, message, size_bytes, &bytes, &size, sentence,
                                sizeof(sentence));
        if (status == GRPC_OK) {
                resource->status.allocations_total++;
                FAILPOINT("plugin.allocate");
                grpc_call_reply(call, bytes, size);
                FAILPOINT("plugin.allocated");
        } else {
                resource->status.refusals_total++;
                grpc_call_finish(call, status, sentence);
                plugin_log(resource->plugin, LOG_WARNING, "resource %s: Allocate refused: %s", resource->name,
                           sentence);
        }
        pb_arena_free(&arena);
        histogram_observe(&resource->status.allocate, (double) (plugin_now_usec() - begin) / 1e6);
        if (status == GRPC_OK && resource->plugin->on_allocate != NULL)
                resource->plugin->on_allocate(resource->plugin->userdata);
}

void allocate_options(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        DevicePlugin__Options options = DEVICE_PLUGIN__OPTIONS__INIT;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        (void) userdata;
        (void) message;
        (void) size_bytes;
        options.get_preferred_allocation_available = true;
        bytes = pb_pack(&options, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory");
        else
                grpc_call_reply(call, bytes, size);
}

/* Not asked for by our options; a kubelet that calls it anyway is not to be disappointed. */
void allocate_pre_start(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        (void) userdata;
        (void) message;
        (void) size_bytes;
        grpc_call_reply(call, NULL, 0);
}
