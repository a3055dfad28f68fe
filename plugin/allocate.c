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
#include "plugin/environment.h"
#include "plugin/plugin_internal.h"
#include "plugin/resource.h"

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
static void tell_files(const struct grant *grant, const struct environment *environment)
{
        DevicePlugin__ContainerAllocateResponse *answer = grant->answer;
        DevicePlugin__DeviceSpec *specs =
                pb_arena_take(grant->arena, (environment->file_count + 1) * sizeof(*specs));

        answer->devices =
                pb_arena_take(grant->arena, (environment->file_count + 1) * sizeof(*answer->devices));
        if (grant->arena->failed)
                return;
        for (size_t i = 0; i < environment->file_count; i++) {
                device_plugin__device_spec__init(&specs[i]);
                specs[i].container_path = (char *) environment->files[i].inside;
                specs[i].host_path = (char *) environment->files[i].outside;
                specs[i].permissions = (char *) "rw";
                answer->devices[answer->n_devices++] = &specs[i];
        }
}

static void tell_variables(const struct grant *grant, const struct environment *environment)
{
        DevicePlugin__ContainerAllocateResponse *answer = grant->answer;
        DevicePlugin__Pair *pairs = pb_arena_take(grant->arena, ENVIRONMENT_VARIABLES_MAX * sizeof(*pairs));

        answer->environment =
                pb_arena_take(grant->arena, ENVIRONMENT_VARIABLES_MAX * sizeof(*answer->environment));
        if (grant->arena->failed)
                return;
        for (size_t i = 0; i < environment->variable_count; i++) {
                device_plugin__pair__init(&pairs[i]);
                pairs[i].key = (char *) environment->variables[i].name;
                pairs[i].value = (char *) environment->variables[i].value;
                answer->environment[answer->n_environment++] = &pairs[i];
        }
}

static void tell_mounts(const struct grant *grant, const struct environment *environment)
{
        DevicePlugin__ContainerAllocateResponse *answer = grant->answer;
        DevicePlugin__Mount *mounts =
                pb_arena_take(grant->arena, (environment->mount_count + 1) * sizeof(*mounts));

        answer->mounts =
                pb_arena_take(grant->arena, (environment->mount_count + 1) * sizeof(*answer->mounts));
        if (grant->arena->failed)
                return;
        for (size_t i = 0; i < environment->mount_count; i++) {
                device_plugin__mount__init(&mounts[i]);
                mounts[i].container_path = (char *) environment->mounts[i].inside;
                mounts[i].host_path = (char *) environment->mounts[i].outside;
                mounts[i].read_only = environment->mounts[i].read_only;
                answer->mounts[answer->n_mounts++] = &mounts[i];
        }
}

static void tell_environment(const struct grant *grant)
{
        const struct resource *resource = grant->resource;
        const struct environment_of of = { .resource = resource->name,
                                           .vendor = resource->vendor,
                                           .devices = grant->devices,
                                           .device_count = grant->count,
                                           .shared = &resource->shared,
                                           .config = &resource->plugin->config };
        struct environment environment;

        environment_build(&of, grant->arena, &environment);
        tell_files(grant, &environment);
        tell_variables(grant, &environment);
        tell_mounts(grant, &environment);
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

/* Others may have the devices by another way to the same chips: whoever keeps the account is asked last. */
static enum grpc_status ask_account(const struct grant *grant, char *sentence, size_t sentence_bytes)
{
        const struct plugin *plugin = grant->resource->plugin;
        const char **ids = pb_arena_take(grant->arena, (grant->count + 1) * sizeof(*ids));
        struct err err = { 0 };

        if (ids == NULL) {
                (void) text_copy(sentence, sentence_bytes, "no memory for the answer");
                return GRPC_RESOURCE_EXHAUSTED;
        }
        if (plugin->on_grant == NULL)
                return GRPC_OK;
        for (size_t i = 0; i < grant->count; i++)
                ids[i] = grant->devices[i]->id;
        if (plugin->on_grant(plugin->userdata, ids, grant->count, &err) == 0)
                return GRPC_OK;
        (void) text_copy(sentence, sentence_bytes, err.msg);
        return GRPC_FAILED_PRECONDITION;
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
                tell_environment(&grant);
                add_cdi(&grant);
        }
        if (arena->failed) {
                (void) text_copy(sentence, sentence_bytes, "no memory for the answer");
                return GRPC_RESOURCE_EXHAUSTED;
        }
        *ret = grant.answer;
        return ask_account(&grant, sentence, sentence_bytes);
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
