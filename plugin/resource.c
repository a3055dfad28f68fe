/* Resource: sockets with names of their own, and the servers behind them. */
#include "plugin/resource.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/plugin_internal.h"
#include "plugin/registration.h"

#define REQUEST_MAX_BYTES ((size_t) 1 << 20) /* 1,024 devices x 256 replicas do not ask for more at once */

void resource_trouble(struct resource *resource, const char *sentence)
{
        bool news = strcmp(resource->status.trouble, sentence) != 0;

        (void) text_copy(resource->status.trouble, sizeof(resource->status.trouble), sentence);
        if (news && sentence[0] != '\0')
                plugin_log(resource->plugin, LOG_WARNING, "resource %s: %s", resource->name, sentence);
}

/* The file name says what it is for; instance and serial make it unlike any other, before and after. */
static int name_socket(struct resource *resource, const char *directory, char *path, size_t path_bytes,
                       struct err *err)
{
        const char *part = strchr(resource->name, '/');
        size_t room = 107, fixed = strlen(directory) + strlen("/remuda--12345678-1234-reg.sock"), n = 0;
        char word[25];

        if (fixed > room)
                return err_set(
                        err, -ENAMETOOLONG,
                        "the path of directory '%s' is too long for a socket in it (%zu bytes at most)",
                        directory, room - (fixed - strlen(directory)));
        room = room - fixed < sizeof(word) - 1 ? room - fixed : sizeof(word) - 1;
        part = part == NULL ? resource->name : part + 1;
        for (; *part != '\0' && n < room; part++)
                word[n++] = (char) (isalnum((unsigned char) *part) ? tolower((unsigned char) *part) : '-');
        word[n] = '\0';
        (void) text_format(resource->endpoint, sizeof(resource->endpoint), "remuda-%s-%s-%u%s.sock", word,
                           resource->plugin->instance, ++resource->plugin->serial % 10000,
                           resource->plugin->config.watcher ? "-reg" : "");
        (void) text_format(path, path_bytes, "unix:%s/%s", directory, resource->endpoint);
        return 0;
}

/* Keeps an old server for the streams that it still feeds. */
static void retire(struct resource *resource, struct grpc_server *server)
{
        size_t slot = 0;

        if (server == NULL)
                return;
        grpc_server_retire(server);
        while (slot < RESOURCE_SERVERS_MAX && resource->retired[slot] != NULL)
                slot++;
        if (slot == RESOURCE_SERVERS_MAX) {
                grpc_server_free(TAKE(resource->retired[0]));
                for (slot = 0; slot + 1 < RESOURCE_SERVERS_MAX; slot++)
                        resource->retired[slot] = resource->retired[slot + 1];
        }
        resource->retired[slot] = server;
}

int resource_serve(struct resource *resource, struct err *err)
{
        struct plugin *plugin = resource->plugin;
        const char *directory = plugin->config.watcher ? plugin->config.plugins_registry : plugin->directory;
        char address[160];
        struct grpc_server_options options = {
                .address = address,
                .methods = plugin->methods,
                .userdata = resource,
                .message_max_bytes = REQUEST_MAX_BYTES,
        };
        struct grpc_server *server;
        int r = name_socket(resource, directory, address, sizeof(address), err);

        if (r >= 0)
                r = grpc_server_new(plugin->loop, &options, &server, err);
        if (r < 0) {
                resource->status.socket[0] = '\0';
                return r;
        }
        retire(resource, TAKE(resource->server));
        resource->server = server;
        (void) text_copy(resource->status.socket, sizeof(resource->status.socket), address + strlen("unix:"));
        return 0;
}

static void free_silent_servers(struct resource *resource)
{
        for (size_t i = 0; i < RESOURCE_SERVERS_MAX; i++)
                if (resource->retired[i] != NULL && grpc_server_connections(resource->retired[i]) == 0)
                        grpc_server_free(TAKE(resource->retired[i]));
}

void resource_check(struct resource *resource)
{
        struct err err = { 0 };

        free_silent_servers(resource);
        if (resource->server != NULL && grpc_server_listening(resource->server))
                return;
        if (resource->server == NULL && resource->member_count == 0)
                return;
        if (resource_serve(resource, &err) < 0) {
                /* the directory may not be there before the kubelet's first start: no news */
                if (err.code != -ENOENT)
                        resource_trouble(resource, err.msg);
                return;
        }
        registration_begin(resource, 0);
}

/* "id::k" of a shared device, k without leading zeros and below `shares`. Return: length of "id", or 0. */
static size_t base_length(const struct resource *resource, const char *id)
{
        const char *mark = NULL;
        uint64_t replica;

        if (resource->shares <= 1)
                return strlen(id);
        for (const char *p = strstr(id, "::"); p != NULL; p = strstr(p + 1, "::"))
                mark = p;
        if (mark == NULL || text_parse_uint64(mark + 2, &replica) < 0 || replica >= resource->shares ||
            (mark[2] == '0' && mark[3] != '\0'))
                return 0;
        return (size_t) (mark - id);
}

ssize_t resource_find(const struct resource *resource, const char *id)
{
        const struct plugin *plugin = resource->plugin;
        size_t n = base_length(resource, id);
        ssize_t index = n == 0 || n >= DEVICE_ID_BYTES ? -1 : plugin_find(plugin, id, n);

        return index < 0 || plugin->owners[index].resource != resource || plugin->owners[index].held
                       ? -1
                       : (ssize_t) plugin->owners[index].position;
}

static const double allocate_bounds_seconds[] = { 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                                  0.0025,  0.005,  0.01,    0.1 };

int resource_new(struct plugin *plugin, const char *name, struct resource **ret, struct err *err)
{
        struct resource *resource = calloc(1, sizeof(*resource));
        int r;

        if (resource == NULL)
                return err_set(err, -ENOMEM, "no memory for resource %s", name);
        resource->plugin = plugin;
        resource->shares = 1;
        resource->status.allocate.bounds = allocate_bounds_seconds;
        resource->status.allocate.bound_count = ARRAY_SIZE(allocate_bounds_seconds);
        (void) text_copy(resource->name, sizeof(resource->name), name);
        (void) text_copy(resource->status.resource, sizeof(resource->status.resource), name);
        r = registration_open(resource);
        if (r == 0)
                r = list_and_watch_open(resource);
        if (r < 0) {
                resource_free(resource);
                return err_set(err, r, "make the timers of resource %s: %s", name, strerrordesc_np(-r));
        }
        *ret = resource;
        return 0;
}

void resource_free(struct resource *resource)
{
        if (resource == NULL)
                return;
        registration_free(resource);
        grpc_server_free(TAKE(resource->server));
        for (size_t i = 0; i < RESOURCE_SERVERS_MAX; i++)
                grpc_server_free(TAKE(resource->retired[i]));
        list_and_watch_close(resource);
        (void) sd_event_source_disable_unref(resource->list_timer);
        list_and_watch_unref(resource->list);
        prefer_map_free(&resource->prefer);
        prefer_map_free(&resource->incoming.prefer);
        free(resource->members);
        free(resource->incoming.members);
        free(resource);
}
