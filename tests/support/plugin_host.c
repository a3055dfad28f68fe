/* plugin-host: the device plugin without the rest of the agent, for tests and measurements. Devices are made
 * up, and change by command, so that every moment can be chosen.
 *
 * usage: plugin-host KUBELET_DIR [key=value...]
 *   vendor=nvidia resource=nvidia.com/gpu devices=8 group=8 fabric=nvlink shares=1 watcher=DIR cdi=DIR
 *   pods=SOCKET (pod-resources) second=RESOURCE (of every other group, amd's)
 * stdin, one command a line; each is answered by one line of JSON:
 *   health ID 0|1, drop ID, add ID, rename RESOURCE (all groups), update (the same again), storm N (N updates
 * that toggle the first device), status, holders, stop stderr: the plugin's log. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/text.h"
#include "plugin/plugin.h"
#include "plugin/pod_resources.h"

struct host {
        sd_event *loop;
        struct plugin *plugin;
        struct pod_resources *pods;
        struct inventory inventory;
        char vendor[24], resource[128], fabric[24];
        char second[128]; /* the resource of every other group, another vendor's; "" = none */
        uint64_t devices, group, shares;
        struct plugin_config config;
        char pods_socket[108];
        char line[256];
        size_t line_bytes;
};

static void on_log(void *userdata, int priority, const char *line)
{
        struct timespec now;

        (void) userdata;
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        fprintf(stderr, "%lld.%06ld <%d> %s\n", (long long) now.tv_sec, now.tv_nsec / 1000, priority, line);
}

static void on_allocate(void *userdata)
{
        struct host *host = userdata;

        if (host->pods != NULL)
                pod_resources_poke(host->pods);
}

static void add_device(struct host *host, uint64_t number)
{
        struct device *device = inventory_add_device(&host->inventory);
        uint64_t group = number / host->group;
        bool other = host->second[0] != '\0' && group % 2 == 1;
        const char *vendor = other ? "amd" : host->vendor;
        struct device_group *entry;
        char name[64];

        if (device == NULL)
                return;
        (void) text_format(name, sizeof(name), "%s-%" PRIu64, vendor, group);
        (void) text_format(device->id, sizeof(device->id), "GPU-%08" PRIx64 "-0000-4000-8000-000000000000",
                           number);
        (void) text_copy(device->group, sizeof(device->group), name);
        (void) text_copy(device->vendor, sizeof(device->vendor), vendor);
        (void) text_format(device->pci, sizeof(device->pci), "0000:%02x:00.0", (unsigned) number & 255);
        (void) text_format(device->nodes[0], sizeof(device->nodes[0]), "/dev/%s%" PRIu64, host->vendor,
                           number);
        device->node_count = 1;
        device->index = (unsigned) number;
        device->numa = (int) (number * 2 / host->devices);
        device->health = HEALTH_HEALTHY;
        device->usable = true;
        if (inventory_find_group(&host->inventory, name) != NULL)
                return;
        entry = inventory_add_group(&host->inventory);
        (void) text_copy(entry->name, sizeof(entry->name), name);
        (void) text_copy(entry->vendor, sizeof(entry->vendor), vendor);
        (void) text_copy(entry->resource, sizeof(entry->resource), other ? host->second : host->resource);
        (void) text_copy(entry->fabric, sizeof(entry->fabric), host->fabric);
        entry->shares = (unsigned) host->shares;
}

static void update(struct host *host)
{
        struct err err = { 0 };

        inventory_count(&host->inventory);
        if (plugin_update(host->plugin, &host->inventory, &err) < 0)
                fprintf(stderr, "update: %s\n", err.msg);
}

static void set_health(struct host *host, const char *id, bool usable)
{
        struct device *device = inventory_find_device(&host->inventory, id);

        if (device == NULL)
                return;
        device->usable = usable;
        device->health = usable ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;
        (void) text_copy(device->reason, sizeof(device->reason), usable ? "" : "Gone");
        (void) text_copy(device->message, sizeof(device->message), usable ? "" : "the test says so");
}

static void drop(struct host *host, const char *id)
{
        struct device *device = inventory_find_device(&host->inventory, id);
        size_t at;

        if (device == NULL)
                return;
        at = (size_t) (device - host->inventory.devices);
        memmove(device, device + 1, (host->inventory.device_count - at - 1) * sizeof(*device));
        host->inventory.device_count--;
}

static void print_status(struct host *host)
{
        struct plugin_status status;

        plugin_status(host->plugin, &status);
        printf("{\"ready\":%s,\"kubelet\":%s,\"kubelets\":%" PRIu64 ",\"resources\":[",
               status.ready ? "true" : "false", status.kubelet_present ? "true" : "false",
               status.kubelet_seen_total);
        for (size_t i = 0; i < status.resource_count; i++) {
                const struct plugin_status_resource *r = &status.resources[i];

                printf("%s{\"resource\":\"%s\",\"socket\":\"%s\",\"registered\":%s,\"streaming\":%s,"
                       "\"devices\":%u,"
                       "\"healthy\":%u,\"registrations\":%" PRIu64 ",\"failures\":%" PRIu64
                       ",\"lists\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"refusals\":%" PRIu64 "}",
                       i == 0 ? "" : ",", r->resource, r->socket, r->registered ? "true" : "false",
                       r->streaming ? "true" : "false", r->devices, r->healthy, r->registrations_total,
                       r->registration_failures_total, r->lists_total, r->allocations_total,
                       r->refusals_total);
        }
        printf("]}\n");
}

static void print_holders(struct host *host)
{
        const struct holder *holders = NULL;
        size_t count = host->pods == NULL ? 0 : pod_resources_holders(host->pods, &holders, NULL);

        printf("{\"trouble\":\"%s\",\"holders\":[",
               host->pods == NULL ? "" : pod_resources_trouble(host->pods));
        for (size_t i = 0; i < count; i++)
                printf("%s{\"device\":\"%s\",\"pod\":\"%s/%s\",\"container\":\"%s\",\"shares\":%u}",
                       i == 0 ? "" : ",", holders[i].device_id, holders[i].pod_namespace, holders[i].pod,
                       holders[i].container, holders[i].shares);
        printf("]}\n");
}

static void storm(struct host *host, uint64_t count)
{
        for (uint64_t i = 0; i < count; i++) {
                set_health(host, host->inventory.devices[0].id, i % 2 == 1);
                update(host);
                if (i % 64 == 0) /* the loop goes on in between, as it would between rescans */
                        (void) sd_event_run(host->loop, 0);
        }
}

static void command(struct host *host, char *line)
{
        char *word = strtok_r(line, " ", &line), *first, *second;
        uint64_t number = 0;

        if (word == NULL)
                return;
        first = strtok_r(NULL, " ", &line);
        second = strtok_r(NULL, " ", &line);
        if (strcmp(word, "stop") == 0) {
                (void) sd_event_exit(host->loop, 0);
                return;
        }
        if (strcmp(word, "holders") == 0) {
                print_holders(host);
                (void) fflush(stdout);
                return;
        }
        if (strcmp(word, "health") == 0 && second != NULL)
                set_health(host, first, strcmp(second, "1") == 0);
        else if (strcmp(word, "drop") == 0 && first != NULL)
                drop(host, first);
        else if (strcmp(word, "add") == 0 && first != NULL && text_parse_uint64(first, &number) == 0)
                add_device(host, number);
        else if (strcmp(word, "rename") == 0 && first != NULL)
                for (size_t i = 0; i < host->inventory.group_count; i++)
                        (void) text_copy(host->inventory.groups[i].resource, DEVICE_RESOURCE_BYTES, first);
        if (strcmp(word, "storm") == 0 && first != NULL && text_parse_uint64(first, &number) == 0)
                storm(host, number);
        else if (strcmp(word, "status") != 0)
                update(host);
        print_status(host);
        (void) fflush(stdout);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct host *host = userdata;
        ssize_t n = read(fd, host->line + host->line_bytes, sizeof(host->line) - 1 - host->line_bytes);
        char *end;

        (void) source;
        (void) events;
        if (n <= 0)
                return sd_event_exit(host->loop, 0);
        host->line_bytes += (size_t) n;
        host->line[host->line_bytes] = '\0';
        while ((end = strchr(host->line, '\n')) != NULL) {
                char line[sizeof(host->line)];
                size_t used = (size_t) (end - host->line) + 1;

                *end = '\0';
                (void) text_copy(line, sizeof(line), host->line);
                memmove(host->line, host->line + used, host->line_bytes - used + 1);
                host->line_bytes -= used;
                command(host, line);
        }
        return 0;
}

static bool set_option(struct host *host, const char *option)
{
        const char *value = strchr(option, '=');

        if (value++ == NULL)
                return false;
        if (text_starts_with(option, "vendor="))
                return text_copy(host->vendor, sizeof(host->vendor), value);
        if (text_starts_with(option, "resource="))
                return text_copy(host->resource, sizeof(host->resource), value);
        if (text_starts_with(option, "second="))
                return text_copy(host->second, sizeof(host->second), value);
        if (text_starts_with(option, "fabric="))
                return text_copy(host->fabric, sizeof(host->fabric), value);
        if (text_starts_with(option, "devices="))
                return text_parse_uint64(value, &host->devices) == 0;
        if (text_starts_with(option, "group="))
                return text_parse_uint64(value, &host->group) == 0 && host->group > 0;
        if (text_starts_with(option, "shares="))
                return text_parse_uint64(value, &host->shares) == 0;
        if (text_starts_with(option, "pods="))
                return text_copy(host->pods_socket, sizeof(host->pods_socket), value);
        if (text_starts_with(option, "watcher=")) {
                host->config.watcher = true;
                return text_copy(host->config.plugins_registry, sizeof(host->config.plugins_registry), value);
        }
        if (text_starts_with(option, "cdi=")) {
                host->config.cdi_names = true;
                return text_copy(host->config.cdi_directory, sizeof(host->config.cdi_directory), value);
        }
        return false;
}

static int run(struct host *host, const char *directory)
{
        struct plugin_options options = { .kubelet_directory = directory,
                                          .config = &host->config,
                                          .log = on_log,
                                          .on_allocate = on_allocate,
                                          .userdata = host };
        struct pod_resources_options pods = { .socket = host->pods_socket, .period_usec = 500000 };
        sd_event_source *input = NULL;
        struct err err = { 0 };
        int r = plugin_new(host->loop, &options, &host->plugin, &err);

        if (r >= 0 && host->pods_socket[0] != '\0')
                r = pod_resources_new(host->loop, &pods, &host->pods, &err);
        if (r < 0) {
                fprintf(stderr, "plugin-host: %s\n", err.msg);
                return 1;
        }
        for (uint64_t i = 0; i < host->devices; i++)
                add_device(host, i);
        update(host);
        print_status(host);
        (void) fflush(stdout);
        r = sd_event_add_io(host->loop, &input, STDIN_FILENO, EPOLLIN, on_input, host);
        if (r >= 0)
                r = sd_event_loop(host->loop);
        (void) sd_event_source_unref(input);
        pod_resources_free(host->pods);
        plugin_free(host->plugin);
        inventory_free(&host->inventory);
        return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
        struct host host = { .vendor = "nvidia",
                             .resource = "nvidia.com/gpu",
                             .fabric = "nvlink",
                             .devices = 8,
                             .group = 8,
                             .shares = 1 };
        int r;

        plugin_config_default(&host.config);
        for (int i = 2; i < argc; i++)
                if (!set_option(&host, argv[i])) {
                        fprintf(stderr, "plugin-host: what is '%s'?\n", argv[i]);
                        return 2;
                }
        if (argc < 2 || sd_event_new(&host.loop) < 0)
                return 2;
        inventory_init(&host.inventory);
        r = run(&host, argv[1]);
        (void) sd_event_unref(host.loop);
        return r;
}
