/* The kubelet's plugin watcher: it finds our socket in its plugins_registry directory, asks who we are and
 * says what it made of it. The same socket serves the device plugin service. */
#include "plugin/watcher.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/plugin_watcher.pb-c.h"
#include "plugin/registration.h"
#include "plugin/resource.h"

void watcher_info(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        PluginWatcher__PluginInfo info = PLUGIN_WATCHER__PLUGIN_INFO__INIT;
        char *versions[] = { (char *) REGISTRATION_API_VERSION };
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        (void) message;
        (void) size_bytes;
        info.type = (char *) "DevicePlugin";
        info.name = resource->name;
        info.endpoint = resource->status.socket;
        info.supported_versions = versions;
        info.n_supported_versions = ARRAY_SIZE(versions);
        bytes = pb_pack(&info, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory");
        else
                grpc_call_reply(call, bytes, size);
}

void watcher_status(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        PluginWatcher__RegistrationStatus *status;
        char why[200];
        struct pb_arena arena;

        pb_arena_init(&arena, 65536);
        status = pb_unpack(&arena, &plugin_watcher__registration_status__descriptor, message, size_bytes);
        if (status == NULL) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, "malformed RegistrationStatus");
                pb_arena_free(&arena);
                return;
        }
        if (status->plugin_registered) {
                registration_accepted(resource);
        } else {
                (void) text_format(why, sizeof(why), "the kubelet's plugin watcher refused: %s",
                                   status->error);
                registration_refused(resource, why);
        }
        pb_arena_free(&arena);
        grpc_call_reply(call, NULL, 0);
}
