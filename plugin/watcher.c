/* Watcher: what the kubelet's plugin watcher is told, and what it says. */
#include "plugin/watcher.h"

#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "plugin/plugin_watcher.pb-c.h"

#define ARENA_BYTES ((size_t) 1 << 16)

void watcher_tell(struct grpc_call *call, const struct watcher_plugin *plugin)
{
        PluginWatcher__PluginInfo info = PLUGIN_WATCHER__PLUGIN_INFO__INIT;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        info.type = (char *) plugin->type;
        info.name = (char *) plugin->name;
        info.endpoint = (char *) plugin->endpoint;
        info.supported_versions = (char **) plugin->versions;
        info.n_supported_versions = plugin->version_count;
        bytes = pb_pack(&info, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory");
        else
                grpc_call_reply(call, bytes, size);
}

enum watcher_verdict watcher_hear(struct grpc_call *call, const uint8_t *message, size_t size_bytes,
                                  char ret_why[400])
{
        PluginWatcher__RegistrationStatus *status;
        enum watcher_verdict verdict = WATCHER_MALFORMED;
        struct pb_arena arena;

        pb_arena_init(&arena, ARENA_BYTES);
        status = pb_unpack(&arena, &plugin_watcher__registration_status__descriptor, message, size_bytes);
        if (status == NULL) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, "malformed RegistrationStatus");
        } else {
                verdict = status->plugin_registered ? WATCHER_REGISTERED : WATCHER_REFUSED;
                (void) text_format(ret_why, 400, "the kubelet's plugin watcher refused: %s", status->error);
                grpc_call_reply(call, NULL, 0);
        }
        pb_arena_free(&arena);
        return verdict;
}
