/* DRA registration: the socket that the kubelet's plugin watcher finds, and the driver's own. */
#include "plugin/dra/dra_registration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "io/grpc/grpc_server.h"
#include "io/loop.h"
#include "io/make_folders.h"
#include "io/stale_socket.h"
#include "plugin/dra/dra_internal.h"
#include "plugin/plugin_watcher.pb-c.h"

#define SOCKET_PATH_BYTES 108
#define REQUEST_MAX_BYTES ((size_t) 1 << 20)
#define CHECK_USEC        UINT64_C(1000000)

struct dra_registration {
        struct dra *dra;
        const struct grpc_method *methods;
        char registry[SOCKET_PATH_BYTES], endpoint[SOCKET_PATH_BYTES]; /* paths of the two sockets */
        struct grpc_server *registry_server, *endpoint_server;
        sd_event_source *check;
        char trouble[256]; /* said last */
};

static void on_info(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        const struct dra_registration *registration = userdata;
        PluginWatcher__PluginInfo info = PLUGIN_WATCHER__PLUGIN_INFO__INIT;
        char *versions[] = { (char *) "v1.DRAPlugin", (char *) "v1beta1.DRAPlugin",
                             (char *) "v1.DRAResourceHealth", (char *) "v1alpha1.DRAResourceHealth" };
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        (void) message;
        (void) size_bytes;
        info.type = (char *) "DRAPlugin";
        info.name = (char *) DRA_NAME_DRIVER;
        info.endpoint = (char *) registration->endpoint;
        info.supported_versions = versions;
        info.n_supported_versions = ARRAY_SIZE(versions);
        bytes = pb_pack(&info, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory");
        else
                grpc_call_reply(call, bytes, size);
}

static void on_status(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        const struct dra_registration *registration = userdata;
        PluginWatcher__RegistrationStatus *status;
        struct pb_arena arena;

        pb_arena_init(&arena, 65536);
        status = pb_unpack(&arena, &plugin_watcher__registration_status__descriptor, message, size_bytes);
        if (status == NULL) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, "malformed RegistrationStatus");
        } else {
                if (status->plugin_registered)
                        dra_log(registration->dra, LOG_INFO,
                                "driver " DRA_NAME_DRIVER ": registered with the kubelet");
                else
                        dra_log(registration->dra, LOG_ERR,
                                "driver " DRA_NAME_DRIVER ": the kubelet's plugin watcher refused: %.300s",
                                status->error);
                grpc_call_reply(call, NULL, 0);
        }
        pb_arena_free(&arena);
}

static const struct grpc_method registry_methods[] = {
        { "/pluginregistration.Registration/GetInfo", on_info },
        { "/pluginregistration.Registration/NotifyRegistrationStatus", on_status },
        { NULL, NULL },
};

static int serve(const struct dra_registration *registration, const char *path,
                 const struct grpc_method *methods, void *userdata, struct grpc_server **server,
                 struct err *err)
{
        char address[SOCKET_PATH_BYTES + 8];
        const struct grpc_server_options options = { .address = address,
                                                     .methods = methods,
                                                     .userdata = userdata,
                                                     .message_max_bytes = REQUEST_MAX_BYTES };

        if (*server != NULL && grpc_server_listening(*server))
                return 0;
        grpc_server_free(TAKE(*server));
        if (stale_socket_is(path)) /* of an agent that was killed */
                (void) unlink(path);
        make_folders(path);
        (void) text_format(address, sizeof(address), "unix:%s", path);
        return grpc_server_new(registration->dra->loop, &options, server, err);
}

/* The driver's first: once the other is there the kubelet dials it. */
static int serve_both(struct dra_registration *registration, struct err *err)
{
        int r = serve(registration, registration->endpoint, registration->methods, registration->dra,
                      &registration->endpoint_server, err);

        return r < 0 ? r
                     : serve(registration, registration->registry, registry_methods, registration,
                             &registration->registry_server, err);
}

static void on_check(void *userdata)
{
        struct dra_registration *registration = userdata;
        struct err err = { 0 };

        if (serve_both(registration, &err) < 0 && strcmp(err.msg, registration->trouble) != 0) {
                dra_log(registration->dra, LOG_WARNING, "driver " DRA_NAME_DRIVER ": %.400s", err.msg);
                (void) text_copy(registration->trouble, sizeof(registration->trouble), err.msg);
        }
}

/* Of instances that were killed and never come back under their uid. */
static void sweep(const char *root)
{
        char folder[SOCKET_PATH_BYTES];

        if (text_format(folder, sizeof(folder), "%s/plugins_registry", root))
                stale_socket_sweep(folder, DRA_NAME_DRIVER);
        if (text_format(folder, sizeof(folder), "%s/plugins/" DRA_NAME_DRIVER, root))
                stale_socket_sweep(folder, "dra");
}

static bool name_sockets(struct dra_registration *registration, const char *root, const char *pod_uid)
{
        const char *dash = pod_uid != NULL ? "-" : "", *uid = pod_uid != NULL ? pod_uid : "";

        return text_format(registration->registry, sizeof(registration->registry),
                           "%s/plugins_registry/" DRA_NAME_DRIVER "%s%s-reg.sock", root, dash, uid) &&
               text_format(registration->endpoint, sizeof(registration->endpoint),
                           "%s/plugins/" DRA_NAME_DRIVER "/dra%s%s.sock", root, dash, uid);
}

int dra_registration_new(struct dra *dra, const char *kubelet_root, const char *pod_uid,
                         const struct grpc_method *methods, struct dra_registration **ret, struct err *err)
{
        struct dra_registration *registration = calloc(1, sizeof(*registration));
        struct err why = { 0 };
        int r = 0;

        if (registration == NULL)
                return err_set(err, -ENOMEM, "no memory for the registration");
        *ret = registration;
        registration->dra = dra;
        registration->methods = methods;
        if (!name_sockets(registration, kubelet_root, pod_uid))
                return err_set(
                        err, -ENAMETOOLONG,
                        "--kubelet-root %.100s: too long: the sockets in it have paths of at most 107 bytes",
                        kubelet_root);
        sweep(kubelet_root);
        r = loop_every(dra->loop, CHECK_USEC, CHECK_USEC, on_check, registration, &registration->check);
        if (r < 0)
                return err_set(err, r, "no timer for the registration");
        if (serve_both(registration, &why) < 0) /* is looked at again */
                dra_log(dra, LOG_WARNING, "driver " DRA_NAME_DRIVER ": %.400s", why.msg);
        (void) text_copy(registration->trouble, sizeof(registration->trouble), why.msg);
        return 0;
}

void dra_registration_free(struct dra_registration *registration)
{
        if (registration == NULL)
                return;
        (void) sd_event_source_disable_unref(registration->check);
        grpc_server_free(registration->registry_server);
        grpc_server_free(registration->endpoint_server);
        free(registration);
}
