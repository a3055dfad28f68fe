/* Plugin: from a snapshot to what each resource offers, and the plugin's life. */
#include "plugin/plugin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "io/stale_socket.h"
#include "plugin/allocate.h"
#include "plugin/cdi.h"
#include "plugin/environment.h"
#include "plugin/kubelet_watch.h"
#include "plugin/list_and_watch.h"
#include "plugin/plugin_internal.h"
#include "plugin/preferred.h"
#include "plugin/registration.h"
#include "plugin/resource.h"

#define MOVE_DELAY_USEC ((uint64_t) 100000) /* from the old resource's list to the new one's */

uint64_t plugin_now_usec(void)
{
        return clock_monotonic_usec();
}

void plugin_log(struct plugin *plugin, int priority, const char *fmt, ...)
{
        char line[700];
        va_list list;

        if (plugin->log == NULL)
                return;
        va_start(list, fmt);
        (void) vsnprintf(line, sizeof(line), fmt, list);
        va_end(list);
        plugin->log(plugin->userdata, priority, line);
}

static struct resource *find_resource(const struct plugin *plugin, const char *name)
{
        for (struct resource *r = plugin->resources; r != NULL; r = r->next)
                if (strcmp(r->name, name) == 0)
                        return r;
        return NULL;
}

static int get_resource(struct plugin *plugin, const char *name, struct resource **ret, struct err *err)
{
        struct resource **link = &plugin->resources;
        int r;

        *ret = find_resource(plugin, name);
        r = *ret == NULL ? resource_new(plugin, name, ret, err) : 1;
        if (r != 0)
                return r < 0 ? r : 0;
        while (*link != NULL)
                link = &(*link)->next;
        *link = *ret;
        plugin->resource_count++;
        return 0;
}

/* Ids travel as protobuf strings: what is not clean text would end the kubelet's stream. */
static bool clean_id(const char *id)
{
        if (id[0] == '\0')
                return false;
        for (const char *c = id; *c != '\0'; c++)
                if (*c <= 0x20 || *c >= 0x7f)
                        return false;
        return true;
}

static int compare_by_id(const void *a, const void *b, void *inventory)
{
        const struct inventory *of = inventory;
        size_t x = *(const size_t *) a, y = *(const size_t *) b;
        int order = strcmp(of->devices[x].id, of->devices[y].id);

        return order != 0 ? order : x < y ? -1 : x > y;
}

/* Every device of the inventory, sorted by id; the first of equals is the first in the inventory. */
static size_t *sort_by_id(const struct inventory *inventory)
{
        size_t *sorted = calloc(inventory->device_count + 1, sizeof(*sorted));

        for (size_t i = 0; sorted != NULL && i < inventory->device_count; i++)
                sorted[i] = i;
        if (sorted != NULL && inventory->device_count > 0)
                qsort_r(sorted, inventory->device_count, sizeof(*sorted), compare_by_id, (void *) inventory);
        return sorted;
}

/* Return: the place in `sorted` of the first device whose id is id[0..n), or device_count. */
static size_t find_by_id(const struct inventory *inventory, const size_t *sorted, const char *id, size_t n)
{
        size_t low = 0, high = inventory->device_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const char *own = inventory->devices[sorted[middle]].id;
                int order = strncmp(own, id, n);

                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < inventory->device_count; low++) { /* "ab" sorts before "abc", and both begin with "ab" */
                const char *own = inventory->devices[sorted[low]].id;

                if (strncmp(own, id, n) != 0)
                        return inventory->device_count;
                if (own[n] == '\0')
                        return low;
        }
        return low;
}

ssize_t plugin_find(const struct plugin *plugin, const char *id, size_t n)
{
        size_t at;

        if (plugin->by_id == NULL) /* no device yet */
                return -1;
        at = find_by_id(&plugin->inventory, plugin->by_id, id, n);
        /* doubles are offered once, by the first that is offered at all */
        for (; at < plugin->inventory.device_count; at++) {
                size_t index = plugin->by_id[at];

                if (strncmp(plugin->inventory.devices[index].id, id, n) != 0 ||
                    plugin->inventory.devices[index].id[n] != '\0')
                        return -1;
                if (plugin->owners[index].resource != NULL)
                        return (ssize_t) index;
        }
        return -1;
}

/* The resource that a device of this snapshot belongs to, made if need be; NULL = offered nowhere. 0, or a
 * negative errno where it cannot be made. */
static int resource_of(struct plugin *plugin, const struct inventory *inventory, size_t index,
                       struct resource **ret, struct err *err)
{
        const struct device *device = &inventory->devices[index];
        const struct device_group *group =
                device->group[0] == '\0' ? NULL : inventory_find_group(inventory, device->group);
        struct resource *resource;
        struct err why = { 0 };
        int r;

        *ret = NULL;
        if (group == NULL || group->resource[0] == '\0' || !clean_id(device->id))
                return 0;
        if (resource_map_check_name(group->resource, &why) < 0) {
                plugin_log(plugin, LOG_ERR, "group %s is not offered: %s", group->name, why.msg);
                return 0;
        }
        r = get_resource(plugin, group->resource, &resource, err);
        if (r < 0)
                return r;
        if (resource->incoming.count == 0) { /* the first device sets the tone */
                (void) text_copy(resource->incoming.vendor, sizeof(resource->incoming.vendor), group->vendor);
                resource->incoming.shares = group->shares > 1 ? group->shares : 1;
        }
        if (strcmp(resource->incoming.vendor, group->vendor) != 0 ||
            resource->incoming.shares != (group->shares > 1 ? group->shares : 1)) {
                char why_not[200];

                (void) text_format(
                        why_not, sizeof(why_not),
                        "group %s is not offered: another group of the same resource has another vendor or "
                        "another number of shares",
                        group->name);
                resource_trouble(resource, why_not);
                return 0;
        }
        *ret = resource;
        return 0;
}

/* Is this device of the last snapshot offered no more? */
static bool leaves(const struct inventory *next, const size_t *sorted, const struct device *device)
{
        size_t at = find_by_id(next, sorted, device->id, strlen(device->id));

        return at == next->device_count || next->devices[sorted[at]].group[0] == '\0';
}

/* Was the same chip cut in another way, and is a piece that goes still in the kubelet's list? */
static bool recut(const struct plugin *plugin, const struct inventory *next, const size_t *sorted,
                  const struct device *device)
{
        for (size_t i = 0; i < plugin->inventory.device_count; i++) {
                const struct device *before = &plugin->inventory.devices[i];

                if (plugin->owners[i].resource == NULL || plugin->owners[i].held || device->pci[0] == '\0' ||
                    strcmp(before->pci, device->pci) != 0 || strcmp(before->vendor, device->vendor) != 0)
                        continue;
                if (strcmp(before->partition, device->partition) != 0 && leaves(next, sorted, before))
                        return true;
        }
        return false;
}

/* Was the chip offered under another name until now, under another id or as a whole where it is now in parts?
 * Then it waits until that list has gone out: a kubelet reads each resource's list in a stream of its own. */
static bool moves(const struct plugin *plugin, const struct inventory *next, const size_t *sorted,
                  const struct device *device, const struct resource *resource)
{
        ssize_t before = plugin_find(plugin, device->id, strlen(device->id));

        if (before >= 0) /* what is held goes on waiting, whatever else is told meanwhile */
                return plugin->owners[before].held || plugin->owners[before].resource != resource;
        return recut(plugin, next, sorted, device);
}

/* A device of the same id that comes before this one and is offered? */
static bool is_double(const struct inventory *inventory, const struct plugin_owner *owners,
                      const size_t *sorted, size_t at)
{
        for (size_t i = at; i-- > 0;) {
                if (strcmp(inventory->devices[sorted[i]].id, inventory->devices[sorted[at]].id) != 0)
                        return false;
                if (owners[sorted[i]].resource != NULL)
                        return true;
        }
        return false;
}

static int add_member(struct resource_members *incoming, size_t index)
{
        size_t *member =
                array_add(&incoming->members, &incoming->count, &incoming->capacity, sizeof(*member));

        if (member == NULL)
                return -ENOMEM;
        *member = index;
        return 0;
}

static void forget_incoming(struct plugin *plugin)
{
        for (struct resource *r = plugin->resources; r != NULL; r = r->next) {
                free(r->incoming.members);
                prefer_map_free(&r->incoming.prefer);
                r->incoming = (struct resource_members){ .shares = 1 };
        }
}

/* Puts every resource's next membership together; nothing in use changes. */
static int collect(struct plugin *plugin, const struct inventory *inventory, const size_t *sorted,
                   struct plugin_owner *owners, bool hold, struct err *err)
{
        for (size_t at = 0; at < inventory->device_count; at++) {
                size_t i = sorted[at];
                struct resource *resource = NULL;
                int r = is_double(inventory, owners, sorted, at)
                                ? 0
                                : resource_of(plugin, inventory, i, &resource, err);

                if (r < 0)
                        return r;
                owners[i].resource = resource;
                if (resource == NULL)
                        continue;
                owners[i].held = hold && moves(plugin, inventory, sorted, &inventory->devices[i], resource);
                if (!owners[i].held && add_member(&resource->incoming, i) < 0)
                        return err_set(err, -ENOMEM, "no memory for the devices of %s", resource->name);
        }
        for (struct resource *r = plugin->resources; r != NULL; r = r->next) {
                if (r->incoming.count > 0)
                        qsort_r(r->incoming.members, r->incoming.count, sizeof(size_t), prefer_map_order,
                                (void *) inventory);
                for (size_t i = 0; i < r->incoming.count; i++)
                        owners[r->incoming.members[i]].position = i;
                if (prefer_map_init(&r->incoming.prefer, inventory, r->incoming.members, r->incoming.count,
                                    r->incoming.shares) < 0)
                        return err_set(err, -ENOMEM, "no memory for the topology of %s", r->name);
        }
        return 0;
}

static void commit(struct resource *r)
{
        if (r->incoming.count > 0) { /* an empty resource keeps its vendor and its way to name ids */
                (void) text_copy(r->vendor, sizeof(r->vendor), r->incoming.vendor);
                r->shares = r->incoming.shares;
        }
        free(r->members);
        r->members = TAKE(r->incoming.members);
        r->member_count = r->incoming.count;
        prefer_map_free(&r->prefer);
        r->prefer = r->incoming.prefer;
        r->incoming = (struct resource_members){ .shares = 1 };
        environment_find_shared(r->plugin->tree, r->vendor, &r->shared);
}

static void publish(struct plugin *plugin)
{
        struct err err = { 0 };

        if (cdi_write(plugin, &err) < 0)
                plugin_log(plugin, LOG_ERR, "%s", err.msg);
        for (struct resource *r = plugin->resources; r != NULL; r = r->next) {
                struct list_and_watch_list *list;

                if (list_and_watch_build(r, &list) < 0) {
                        resource_trouble(r, "no memory for a new list; the last one stands");
                        continue;
                }
                if (list->truncated)
                        resource_trouble(
                                r, "the list is longer than the 4 MiB that a kubelet accepts; ids at its end "
                                   "are not offered: lower `replicas`");
                list_and_watch_update(r, list);
                resource_check(r);
        }
}

static void settle_moves(struct plugin *plugin)
{
        bool any = false;

        for (size_t i = 0; i < plugin->inventory.device_count; i++)
                any = any || plugin->owners[i].held;
        if (any)
                loop_rearm(plugin->moves, MOVE_DELAY_USEC);
}

/* Takes the copy over when it could be made sense of. */
static int apply_copy(struct plugin *plugin, struct inventory *copy, bool hold, struct err *err)
{
        struct plugin_owner *owners = calloc(copy->device_count + 1, sizeof(*owners));
        size_t *sorted = sort_by_id(copy);
        int r;

        forget_incoming(plugin);
        r = owners == NULL || sorted == NULL
                    ? err_set(err, -ENOMEM, "no memory for %zu devices", copy->device_count)
                    : collect(plugin, copy, sorted, owners, hold, err);
        if (r < 0) {
                forget_incoming(plugin);
                free(owners);
                free(sorted);
                return r;
        }
        inventory_free(&plugin->inventory);
        free(plugin->owners);
        free(plugin->by_id);
        plugin->inventory = *copy;
        plugin->owners = owners;
        plugin->by_id = sorted;
        inventory_init(copy);
        for (struct resource *resource = plugin->resources; resource != NULL; resource = resource->next)
                commit(resource);
        publish(plugin);
        settle_moves(plugin);
        return 0;
}

static int apply(struct plugin *plugin, const struct inventory *inventory, bool hold, struct err *err)
{
        struct inventory copy;
        int r;

        if (inventory_copy(inventory, &copy) < 0)
                return err_set(err, -ENOMEM, "no memory for a snapshot of %zu devices",
                               inventory->device_count);
        r = apply_copy(plugin, &copy, hold, err);
        inventory_free(&copy);
        return r;
}

/* What cannot be taken over now is tried again: the chips are held back until then. */
static void on_moves(void *userdata)
{
        struct plugin *plugin = userdata;

        if (apply(plugin, &plugin->inventory, false, NULL) < 0)
                loop_rearm(plugin->moves, MOVE_DELAY_USEC);
}

int plugin_update(struct plugin *plugin, const struct inventory *inventory, struct err *err)
{
        if (plugin->owners != NULL && inventory_same(inventory, &plugin->inventory) &&
            inventory_wired_same(inventory, &plugin->inventory))
                return 0;
        return apply(plugin, inventory, true, err);
}

int plugin_configure(struct plugin *plugin, const struct plugin_config *config, struct err *err)
{
        bool before = plugin->config.watcher;

        plugin->config = *config;
        if (before != config->watcher)
                for (struct resource *resource = plugin->resources; resource != NULL;
                     resource = resource->next)
                        if (resource_serve(resource, err) == 0)
                                registration_begin(resource, 0);
        return plugin->owners == NULL ? 0 : apply(plugin, &plugin->inventory, false, err);
}

void plugin_set_tree(struct plugin *plugin, const struct tree *tree)
{
        plugin->tree = tree;
        for (struct resource *resource = plugin->resources; resource != NULL; resource = resource->next)
                environment_find_shared(tree, resource->vendor, &resource->shared);
}

static const struct grpc_method methods[] = {
        { "/v1beta1.DevicePlugin/GetDevicePluginOptions", allocate_options },
        { "/v1beta1.DevicePlugin/ListAndWatch", list_and_watch_handle },
        { "/v1beta1.DevicePlugin/GetPreferredAllocation", preferred_handle },
        { "/v1beta1.DevicePlugin/Allocate", allocate_handle },
        { "/v1beta1.DevicePlugin/PreStartContainer", allocate_pre_start },
        { "/pluginregistration.Registration/GetInfo", registration_tell },
        { "/pluginregistration.Registration/NotifyRegistrationStatus", registration_hear },
        { NULL, NULL },
};

static void on_kubelet(void *userdata)
{
        struct plugin *plugin = userdata;

        plugin_log(plugin, LOG_INFO, "a kubelet is at %s/kubelet.sock", plugin->directory);
        for (struct resource *r = plugin->resources; r != NULL; r = r->next) {
                r->failures = 0;
                if (r->member_count > 0 && !plugin->config.watcher)
                        registration_begin(r, 0);
        }
        grpc_client_disconnect(plugin->kubelet);
}

static void on_kubelet_left(void *userdata)
{
        plugin_log(userdata, LOG_NOTICE, "the kubelet's socket is gone; waiting for it to come back");
}

static void on_check(void *userdata)
{
        const struct plugin *plugin = userdata;

        for (struct resource *r = plugin->resources; r != NULL; r = r->next)
                resource_check(r);
}

static int watch_kubelet(struct plugin *plugin, struct err *err)
{
        const struct kubelet_watch_options options = { .directory = plugin->directory,
                                                       .arrived = on_kubelet,
                                                       .left = on_kubelet_left,
                                                       .check = on_check,
                                                       .userdata = plugin };

        return kubelet_watch_new(plugin->loop, &options, &plugin->watch, err);
}

static int name_instance(struct plugin *plugin, struct err *err)
{
        uint32_t random;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return err_set(err, -errno, "getrandom: %m");
        (void) text_format(plugin->instance, sizeof(plugin->instance), "%08x", random);
        return 0;
}

static int new_client(struct plugin *plugin, struct err *err)
{
        char address[256];
        struct grpc_client_options options = { .address = address, .message_max_bytes = 65536 };

        (void) text_format(address, sizeof(address), "unix:%s/kubelet.sock", plugin->directory);
        return grpc_client_new(plugin->loop, &options, &plugin->kubelet, err);
}

int plugin_new(sd_event *loop, const struct plugin_options *options, struct plugin **ret, struct err *err)
{
        const char *directory =
                options->kubelet_directory == NULL ? PLUGIN_KUBELET_DIRECTORY : options->kubelet_directory;
        struct plugin *plugin = calloc(1, sizeof(*plugin));
        size_t n = strlen(directory);
        int r;

        if (plugin == NULL)
                return err_set(err, -ENOMEM, "no memory for the plugin");
        inventory_init(&plugin->inventory);
        while (n > 1 && directory[n - 1] == '/')
                n--;
        if (n == 0 || n > 90 ||
            !text_format(plugin->directory, sizeof(plugin->directory), "%.*s", (int) n, directory)) {
                free(plugin);
                return err_set(err, -ENAMETOOLONG,
                               "kubelet directory '%s' must have 1 to 90 bytes: the sockets in it have paths "
                               "of at most "
                               "107",
                               directory);
        }
        plugin->loop = sd_event_ref(loop);
        if (options->config != NULL)
                plugin->config = *options->config;
        else
                plugin_config_default(&plugin->config);
        plugin->methods = methods;
        plugin->tree = options->tree;
        plugin->log = options->log;
        plugin->on_allocate = options->on_allocate;
        plugin->on_grant = options->on_grant;
        plugin->on_registered = options->on_registered;
        plugin->userdata = options->userdata;
        stale_socket_sweep(plugin->directory, "remuda-");
        stale_socket_sweep(plugin->config.plugins_registry, "remuda-");
        r = name_instance(plugin, err);
        if (r >= 0)
                r = new_client(plugin, err);
        if (r >= 0)
                r = watch_kubelet(plugin, err);
        if (r >= 0 && loop_timer(plugin->loop, on_moves, plugin, &plugin->moves) < 0)
                r = err_set(err, -ENOMEM, "no memory for the plugin's timer");
        if (r < 0) {
                plugin_free(plugin);
                return r;
        }
        *ret = plugin;
        return 0;
}

void plugin_free(struct plugin *plugin)
{
        if (plugin == NULL)
                return;
        kubelet_watch_free(plugin->watch);
        (void) sd_event_source_disable_unref(plugin->moves);
        while (plugin->resources != NULL) {
                struct resource *next = plugin->resources->next;

                resource_free(plugin->resources);
                plugin->resources = next;
        }
        grpc_client_free(plugin->kubelet);
        inventory_free(&plugin->inventory);
        free(plugin->owners);
        free(plugin->by_id);
        free(plugin->statuses);
        (void) sd_event_unref(plugin->loop);
        free(plugin);
}

void plugin_status(struct plugin *plugin, struct plugin_status *ret)
{
        struct plugin_status_resource *statuses =
                realloc(plugin->statuses, (plugin->resource_count + 1) * sizeof(*statuses));

        *ret = (struct plugin_status){ .kubelet_present = kubelet_watch_is_present(plugin->watch),
                                       .kubelet_seen_total = kubelet_watch_seen_total(plugin->watch) };
        if (statuses == NULL)
                return;
        plugin->statuses = statuses;
        ret->resources = statuses;
        ret->ready = true;
        for (const struct resource *r = plugin->resources; r != NULL; r = r->next) {
                statuses[ret->resource_count++] = r->status;
                if (r->member_count > 0 && !(r->status.registered && r->status.streaming))
                        ret->ready = false;
        }
}
