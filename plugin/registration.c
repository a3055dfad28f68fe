/* Registration: one small state machine a resource. The kubelet dials back from inside Register, so that the
 * call is asynchronous and our own server answers meanwhile. A kubelet that is not there yet is asked again
 * in milliseconds, one that refuses in seconds; a list stream that ends is a reason to register again. */
#include "plugin/registration.h"

#include <stdlib.h>
#include <syslog.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/loop.h"
#include "plugin/device_plugin.pb-c.h"
#include "plugin/kubelet_watch.h"
#include "plugin/plugin_internal.h"
#include "plugin/resource.h"
#include "plugin/watcher.h"

#define REGISTER_TIMEOUT_USEC ((uint64_t) 15000000) /* the kubelet gives itself 10 s to dial back */
#define STREAM_WAIT_USEC      ((uint64_t) 5000000)  /* registered, but nobody reads: register again */

#define CONNECT_RETRY_USEC     ((uint64_t) 5000) /* bound before it listens: a moment only */
#define CONNECT_RETRY_MAX_USEC ((uint64_t) 1000000)
#define REFUSED_RETRY_USEC     ((uint64_t) 100000)
#define REFUSED_RETRY_MAX_USEC ((uint64_t) 5000000)
#define STREAM_GOOD_USEC       ((uint64_t) 1000000) /* a stream that lived this long was no misunderstanding */

static void attempt(struct resource *resource);

static void forget_call(struct resource *resource)
{
        if (resource->registration_call != NULL)
                grpc_client_cancel(TAKE(resource->registration_call));
}

static void on_timer(void *userdata)
{
        struct resource *resource = userdata;

        if (resource->state == REGISTRATION_DONE) {
                resource->failures++;
                resource->status.registration_failures_total++;
                resource_trouble(resource,
                                 "the kubelet accepted the registration but does not read the list");
        }
        attempt(resource);
}

/* Both together are what whoever looks on calls registered. */
static void set(struct resource *resource, bool registered, bool streaming)
{
        struct plugin_status_resource *status = &resource->status;
        bool before = status->registered && status->streaming;

        status->registered = registered;
        status->streaming = streaming;
        if (before != (registered && streaming) && resource->plugin->on_registered != NULL)
                resource->plugin->on_registered(resource->plugin->userdata);
}

int registration_open(struct resource *resource)
{
        return loop_timer(resource->plugin->loop, on_timer, resource, &resource->registration_timer);
}

void registration_begin(struct resource *resource, uint64_t delay_usec)
{
        forget_call(resource);
        set(resource, false, resource->status.streaming);
        resource->state = REGISTRATION_BACKOFF;
        loop_rearm(resource->registration_timer, delay_usec);
}

static void retry(struct resource *resource, uint64_t first_usec, uint64_t most_usec)
{
        resource->failures++;
        resource->state = REGISTRATION_BACKOFF;
        loop_rearm(resource->registration_timer, backoff_usec(resource->failures, first_usec, most_usec));
}

static void accepted(struct resource *resource)
{
        set(resource, true, resource->status.streaming);
        resource->status.registrations_total++;
        resource->state = REGISTRATION_DONE;
        if (resource->status.streaming)
                loop_rest(resource->registration_timer);
        else
                loop_rearm(resource->registration_timer, STREAM_WAIT_USEC);
        plugin_log(resource->plugin, LOG_INFO,
                   "resource %s: registered with the kubelet, %u devices, %u healthy", resource->name,
                   resource->status.devices, resource->status.healthy);
}

static void refused(struct resource *resource, const char *sentence)
{
        set(resource, false, resource->status.streaming);
        resource->status.registration_failures_total++;
        resource_trouble(resource, sentence);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct resource *resource = userdata;
        char why[GRPC_SENTENCE_BYTES + 64];

        resource->registration_call = NULL;
        if (status == GRPC_OK) {
                accepted(resource);
                return;
        }
        if (status == GRPC_UNAVAILABLE) { /* nobody there, or leaving: no one's fault */
                (void) text_format(why, sizeof(why), "the kubelet cannot be reached: %s", sentence);
                resource->status.registration_failures_total++;
                (void) text_copy(resource->status.trouble, sizeof(resource->status.trouble), why);
                retry(resource, CONNECT_RETRY_USEC, CONNECT_RETRY_MAX_USEC);
                return;
        }
        (void) text_format(why, sizeof(why), "the kubelet refused the registration (%s): %s",
                           grpc_status_name(status), sentence);
        refused(resource, why);
        retry(resource, REFUSED_RETRY_USEC, REFUSED_RETRY_MAX_USEC);
}

static void call_register(struct resource *resource)
{
        DevicePlugin__Options options = DEVICE_PLUGIN__OPTIONS__INIT;
        DevicePlugin__RegisterRequest request = DEVICE_PLUGIN__REGISTER_REQUEST__INIT;
        struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = resource };
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        options.get_preferred_allocation_available = true;
        request.version = (char *) REGISTRATION_API_VERSION;
        request.endpoint = resource->endpoint;
        request.resource_name = resource->name;
        request.options = &options;
        bytes = pb_pack(&request, &size);
        if (bytes == NULL ||
            grpc_client_call(resource->plugin->kubelet, "/v1beta1.Registration/Register", bytes, size,
                             REGISTER_TIMEOUT_USEC, &handlers, &resource->registration_call) < 0) {
                refused(resource, "no memory for the registration");
                retry(resource, REFUSED_RETRY_USEC, REFUSED_RETRY_MAX_USEC);
                return;
        }
        resource->state = REGISTRATION_CALLING;
        FAILPOINT("plugin.register");
}

/* The kubelet's end of a path-keyed registration: never the same name while an old stream is open. */
static bool needs_fresh_socket(const struct resource *resource)
{
        if (resource->server == NULL || !grpc_server_listening(resource->server))
                return true;
        for (const struct list_and_watch_stream *s = resource->streams; s != NULL; s = s->next)
                if (s->server == resource->server)
                        return true;
        return false;
}

static void attempt(struct resource *resource)
{
        struct plugin *plugin = resource->plugin;
        struct err err = { 0 };

        resource->state = REGISTRATION_IDLE;
        if (!plugin->config.watcher && !kubelet_watch_is_present(plugin->watch))
                return;
        if (needs_fresh_socket(resource) && resource_serve(resource, &err) < 0) {
                refused(resource, err.msg);
                retry(resource, REFUSED_RETRY_USEC, REFUSED_RETRY_MAX_USEC);
                return;
        }
        set(resource, resource->status.registered, false);
        if (!plugin->config.watcher) /* otherwise the kubelet finds the socket */
                call_register(resource);
}

void registration_stream_opened(struct resource *resource)
{
        set(resource, resource->status.registered, true);
        resource->status.trouble[0] = '\0';
        if (resource->state == REGISTRATION_DONE)
                loop_rest(resource->registration_timer);
}

void registration_stream_lost(struct resource *resource, uint64_t lived_usec)
{
        set(resource, resource->status.registered, false);
        if (resource->plugin->config.watcher || resource->state == REGISTRATION_CALLING)
                return;
        /* at once after a good stream; slower and slower when somebody keeps ending it, or two instances
         * would push each other out for ever */
        if (lived_usec >= STREAM_GOOD_USEC)
                resource->failures = 0;
        registration_begin(resource, resource->failures == 0
                                             ? 0
                                             : backoff_usec(resource->failures, REFUSED_RETRY_USEC,
                                                            REFUSED_RETRY_MAX_USEC));
        resource->failures++;
}

void registration_free(struct resource *resource)
{
        forget_call(resource);
        resource->registration_timer = sd_event_source_disable_unref(resource->registration_timer);
}

void registration_tell(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        static const char *const versions[] = { REGISTRATION_API_VERSION };
        const struct resource *resource = userdata;
        const struct watcher_plugin plugin = { .type = "DevicePlugin",
                                               .name = resource->name,
                                               .endpoint = resource->status.socket,
                                               .versions = versions,
                                               .version_count = ARRAY_SIZE(versions) };

        (void) message;
        (void) size_bytes;
        watcher_tell(call, &plugin);
}

void registration_hear(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        char why[400];
        enum watcher_verdict verdict = watcher_hear(call, message, size_bytes, why);

        if (verdict == WATCHER_REGISTERED)
                accepted(resource);
        else if (verdict == WATCHER_REFUSED)
                refused(resource, why);
}
