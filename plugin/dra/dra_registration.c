/* DRA registration: the socket that the kubelet's plugin watcher finds, and the driver's own. */
#include "plugin/dra/dra_registration.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/grpc/grpc_server.h"
#include "io/loop.h"
#include "io/make_folders.h"
#include "io/stale_socket.h"
#include "plugin/dra/dra_internal.h"
#include "plugin/watcher.h"

#define SOCKET_PATH_BYTES 108
#define REQUEST_MAX_BYTES ((size_t) 1 << 20)
#define CHECK_USEC        UINT64_C(1000000)
#define DIAL_USEC         UINT64_C(2000000) /* from its word that we are registered to its connection */

struct dra_registration {
        struct dra *dra;
        const struct grpc_method *methods;
        char registry[SOCKET_PATH_BYTES], endpoint[SOCKET_PATH_BYTES]; /* paths of the two sockets */
        struct grpc_server *registry_server, *endpoint_server;
        char kubelet[SOCKET_PATH_BYTES]; /* path of its own socket, of the other API */
        uint64_t registered_usec;        /* when the kubelet said so last; 0 = never */
        bool followed;                   /* as it was a second ago */
        sd_event_source *check;
        char trouble[256]; /* said last */
};

static void on_info(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        static const char *const versions[] = { "v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                                                "v1alpha1.DRAResourceHealth" };
        const struct dra_registration *registration = userdata;
        const struct watcher_plugin plugin = { .type = "DRAPlugin",
                                               .name = DRA_NAME_DRIVER,
                                               .endpoint = registration->endpoint,
                                               .versions = versions,
                                               .version_count = ARRAY_SIZE(versions) };

        (void) message;
        (void) size_bytes;
        watcher_tell(call, &plugin);
}

bool dra_registration_is_awaited(const struct dra_registration *registration)
{
        if (registration->endpoint_server != NULL &&
            grpc_server_connections(registration->endpoint_server) > 0)
                return false;
        if (registration->registered_usec == 0)
                return access(registration->kubelet, F_OK) == 0 && !stale_socket_is(registration->kubelet);
        return loop_now_usec(registration->dra->loop) > registration->registered_usec + DIAL_USEC;
}

/* When a file was made; of one that is gone, before all others. Files of one moment follow their names. */
static bool is_later(const char *path, const char *than)
{
        struct stat a = { .st_mtim = { 0 } }, b = { .st_mtim = { 0 } };

        (void) lstat(path, &a);
        (void) lstat(than, &b);
        if (a.st_mtim.tv_sec != b.st_mtim.tv_sec)
                return a.st_mtim.tv_sec > b.st_mtim.tv_sec;
        if (a.st_mtim.tv_nsec != b.st_mtim.tv_nsec)
                return a.st_mtim.tv_nsec > b.st_mtim.tv_nsec;
        return strcmp(path, than) > 0;
}

bool dra_registration_is_followed(const struct dra_registration *registration)
{
        const char *slash = strrchr(registration->registry, '/');
        char folder[SOCKET_PATH_BYTES], path[SOCKET_PATH_BYTES];
        const struct dirent *entry;
        bool found = false;
        DIR *open;

        (void) text_format(folder, sizeof(folder), "%.*s", (int) (slash - registration->registry),
                           registration->registry);
        open = opendir(folder);
        while (open != NULL && !found && (entry = readdir(open)) != NULL)
                found = text_starts_with(entry->d_name, DRA_NAME_DRIVER "-") &&
                        text_ends_with(entry->d_name, "-reg.sock") &&
                        text_format(path, sizeof(path), "%s/%s", folder, entry->d_name) &&
                        strcmp(path, registration->registry) != 0 && is_later(path, registration->registry) &&
                        !stale_socket_is(path);
        if (open != NULL)
                (void) closedir(open);
        return found;
}

static void look_for_others(struct dra_registration *registration)
{
        bool before = registration->followed;

        registration->followed = dra_registration_is_followed(registration);
        if (before && !registration->followed)
                dra_reached(registration->dra);
}

static void look_for_kubelet(const struct dra_registration *registration)
{
        if (!dra_registration_is_awaited(registration))
                dra_reached(registration->dra);
}

static void on_status(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct dra_registration *registration = userdata;
        char why[400];
        enum watcher_verdict verdict = watcher_hear(call, message, size_bytes, why);

        if (verdict == WATCHER_MALFORMED)
                return;
        registration->dra->status.registered = verdict == WATCHER_REGISTERED;
        if (registration->dra->options.on_registered != NULL)
                registration->dra->options.on_registered(registration->dra->options.userdata);
        if (verdict == WATCHER_REGISTERED) {
                dra_log(registration->dra, LOG_INFO,
                        "driver " DRA_NAME_DRIVER ": registered with the kubelet");
                registration->registered_usec = loop_now_usec(registration->dra->loop);
                look_for_kubelet(registration);
        } else {
                dra_log(registration->dra, LOG_ERR, "driver " DRA_NAME_DRIVER ": %s", why);
        }
}

static const struct grpc_method registry_methods[] = {
        { "/pluginregistration.Registration/GetInfo", on_info },
        { "/pluginregistration.Registration/NotifyRegistrationStatus", on_status },
        { NULL, NULL },
};

/* A kubelet that was killed says nothing: its connection has ended, and its own socket is dead. One that
 * lives may keep none (before 1.34). Its successor registers the driver anew. */
static void look_for_loss(const struct dra_registration *registration)
{
        struct dra *dra = registration->dra;

        if (!dra->status.registered || grpc_server_connections(registration->endpoint_server) > 0 ||
            !stale_socket_is(registration->kubelet))
                return;
        dra->status.registered = false;
        dra_log(dra, LOG_WARNING, "driver " DRA_NAME_DRIVER ": the kubelet that registered it is gone");
        if (dra->options.on_registered != NULL)
                dra->options.on_registered(dra->options.userdata);
}

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
        registration->dra->status.registered = false;
        grpc_server_free(TAKE(*server));
        if (stale_socket_is(path)) /* of an agent that was killed */
                (void) unlink(path);
        make_folders(path);
        (void) text_format(address, sizeof(address), "unix:%s", path);
        return grpc_server_new(registration->dra->loop, &options, server, err);
}

/* The driver's first: once the other is there the kubelet dials it, and asks anew who we are where that was
 * gone. */
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
        look_for_kubelet(registration);
        look_for_loss(registration);
        look_for_others(registration);
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

        return text_format(registration->kubelet, sizeof(registration->kubelet),
                           "%s/device-plugins/kubelet.sock", root) &&
               text_format(registration->registry, sizeof(registration->registry),
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
