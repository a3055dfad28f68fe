/* ListAndWatch: packing, and who has been sent what. */
#include "plugin/list_and_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/loop.h"
#include "plugin/device_plugin.pb-c.h"
#include "plugin/plugin_internal.h"
#include "plugin/registration.h"
#include "plugin/resource.h"

#define LIST_MAX_BYTES     (GRPC_MESSAGE_MAX_BYTES - 4096) /* the kubelet receives no more than 4 MiB */
#define LIST_COALESCE_USEC ((uint64_t) 50000) /* the kubelet writes its checkpoint for every list */

void list_and_watch_unref(struct list_and_watch_list *list)
{
        if (list == NULL || --list->references > 0)
                return;
        free(list->bytes);
        free(list);
}

static bool same(const struct list_and_watch_list *a, const struct list_and_watch_list *b)
{
        return a != NULL && b != NULL && a->size_bytes == b->size_bytes &&
               memcmp(a->bytes, b->bytes, a->size_bytes) == 0;
}

/* Everything that one id needs, side by side, so that a list is one allocation. */
struct entry {
        DevicePlugin__Device device;
        DevicePlugin__Topology topology;
        DevicePlugin__NumaNode node, *nodes[1];
        char id[DEVICE_ID_BYTES + 12];
};

static void fill_entry(struct entry *entry, const struct device *device, unsigned shares, unsigned replica)
{
        device_plugin__device__init(&entry->device);
        device_plugin__topology__init(&entry->topology);
        device_plugin__numa_node__init(&entry->node);
        if (shares > 1)
                (void) text_format(entry->id, sizeof(entry->id), "%s::%u", device->id, replica);
        else
                (void) text_copy(entry->id, sizeof(entry->id), device->id);
        entry->device.id = entry->id;
        entry->device.health = (char *) (device->usable ? "Healthy" : "Unhealthy");
        if (device->numa < 0) /* not known is said by silence: -1 breaks the kubelet's hints */
                return;
        entry->node.id = device->numa;
        entry->nodes[0] = &entry->node;
        entry->topology.nodes = entry->nodes;
        entry->topology.n_nodes = 1;
        entry->device.topology = &entry->topology;
}

static int pack(struct entry *entries, size_t count, struct list_and_watch_list *list)
{
        DevicePlugin__DeviceList message = DEVICE_PLUGIN__DEVICE_LIST__INIT;
        CLEANUP(free_p) DevicePlugin__Device **devices = calloc(count + 1, sizeof(DevicePlugin__Device *));
        size_t packed = 0;

        if (devices == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                size_t size = device_plugin__device__get_packed_size(&entries[i].device);

                packed += size + 1 + (size < 128 ? 1 : 2);
                if (packed > LIST_MAX_BYTES) {
                        list->truncated = true;
                        break;
                }
                devices[i] = &entries[i].device;
                message.n_devices = i + 1;
                list->devices++;
                list->healthy += strcmp(entries[i].device.health, "Healthy") == 0;
        }
        message.devices = devices;
        list->bytes = pb_pack(&message, &list->size_bytes);
        return list->bytes == NULL ? -ENOMEM : 0;
}

int list_and_watch_build(struct resource *resource, struct list_and_watch_list **ret)
{
        size_t count = resource->member_count * resource->shares;
        CLEANUP(free_p) struct entry *entries = calloc(count + 1, sizeof(*entries));
        struct list_and_watch_list *list = calloc(1, sizeof(*list));
        size_t n = 0;

        if (entries == NULL || list == NULL) {
                free(list);
                return -ENOMEM;
        }
        list->references = 1;
        for (unsigned replica = 0; replica < resource->shares; replica++)
                for (size_t i = 0; i < resource->member_count; i++)
                        fill_entry(&entries[n++], &resource->plugin->inventory.devices[resource->members[i]],
                                   resource->shares, replica);
        if (pack(entries, n, list) < 0) {
                list_and_watch_unref(list);
                return -ENOMEM;
        }
        *ret = list;
        return 0;
}

static void offer_later(struct resource *resource, uint64_t delay_usec)
{
        if (!loop_is_armed(resource->list_timer))
                loop_rearm(resource->list_timer, delay_usec);
}

static void offer(struct list_and_watch_stream *stream)
{
        struct resource *resource = stream->resource;
        struct list_and_watch_list *list = resource->list;

        /* a busy stream asks again through on_idle, and then gets what is true by then */
        if (list == NULL || grpc_call_busy(stream->call) || same(stream->sent, list))
                return;
        if (grpc_call_send(stream->call, list->bytes, list->size_bytes) < 0) {
                offer_later(resource, LIST_COALESCE_USEC);
                return;
        }
        list_and_watch_unref(stream->sent);
        stream->sent = list;
        list->references++;
        resource->status.lists_total++;
        resource->list_sent_usec = plugin_now_usec();
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) call;
        offer(userdata);
}

static void stream_free(struct list_and_watch_stream *stream)
{
        struct list_and_watch_stream **link = &stream->resource->streams;

        while (*link != stream)
                link = &(*link)->next;
        *link = stream->next;
        list_and_watch_unref(stream->sent);
        free(stream);
}

static void on_closed(void *userdata, struct grpc_call *call)
{
        struct list_and_watch_stream *stream = userdata;
        struct resource *resource = stream->resource;
        bool current = stream->server == resource->server;
        uint64_t lived = plugin_now_usec() - stream->since_usec;

        (void) call;
        stream_free(stream);
        for (stream = resource->streams; stream != NULL; stream = stream->next)
                if (stream->server == resource->server)
                        return;
        if (current && resource->server != NULL)
                registration_stream_lost(resource, lived);
}

void list_and_watch_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        struct list_and_watch_stream *stream = calloc(1, sizeof(*stream));

        (void) message;
        (void) size_bytes;
        if (stream == NULL) {
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory for another stream");
                return;
        }
        stream->resource = resource;
        stream->server = grpc_call_server(call);
        stream->call = call;
        stream->since_usec = plugin_now_usec();
        stream->next = resource->streams;
        resource->streams = stream;
        grpc_call_keep(call, on_idle, on_closed, stream);
        FAILPOINT("plugin.list");
        offer(stream);
        if (stream->server == resource->server)
                registration_stream_opened(resource);
}

void list_and_watch_close(struct resource *resource)
{
        while (resource->streams != NULL)
                stream_free(resource->streams);
}

static void offer_all(void *userdata)
{
        struct resource *resource = userdata;

        for (struct list_and_watch_stream *stream = resource->streams; stream != NULL; stream = stream->next)
                offer(stream);
}

int list_and_watch_open(struct resource *resource)
{
        return loop_timer(resource->plugin->loop, offer_all, resource, &resource->list_timer);
}

void list_and_watch_update(struct resource *resource, struct list_and_watch_list *list)
{
        uint64_t since = plugin_now_usec() - resource->list_sent_usec;

        if (same(resource->list, list)) {
                list_and_watch_unref(list);
                return;
        }
        list_and_watch_unref(resource->list);
        resource->list = list;
        resource->status.devices = list->devices;
        resource->status.healthy = list->healthy;
        if (since >= LIST_COALESCE_USEC)
                offer_all(resource);
        else
                offer_later(resource, LIST_COALESCE_USEC - since);
}
