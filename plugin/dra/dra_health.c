/* DRA health: NodeWatchResources: every device's health and sentence, the whole list each time. */
#include "plugin/dra/dra_health.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "io/loop.h"
#include "plugin/dra/dra.pb-c.h"
#include "plugin/dra/dra_internal.h"

struct dra_health_stream {
        struct dra *dra;
        struct grpc_call *call;
        bool due;
        struct dra_health_stream *next;
};

struct entry {
        Dra__DeviceHealth health;
        Dra__DeviceIdentifier identifier;
        char message[sizeof(((struct device *) NULL)->message) + 64];
};

static Dra__Health health_of(const struct device *device)
{
        if (device->health == HEALTH_UNKNOWN)
                return DRA__HEALTH__UNKNOWN;
        return device->usable ? DRA__HEALTH__HEALTHY : DRA__HEALTH__UNHEALTHY;
}

/* @device: whose health it is, of a bundle the sick one. */
static void fill_entry(const struct dra *dra, const char *name, const struct device *device,
                       struct entry *entry)
{
        dra__device_health__init(&entry->health);
        dra__device_identifier__init(&entry->identifier);
        entry->identifier.pool = (char *) dra->node;
        entry->identifier.device = (char *) name;
        entry->health.device = &entry->identifier;
        entry->health.health = health_of(device);
        entry->health.last_updated_time = (int64_t) (loop_realtime_usec(dra->loop) / 1000000);
        if (device->reason[0] != '\0')
                (void) text_format(entry->message, sizeof(entry->message), "%s: %s", device->reason,
                                   device->message);
        text_harmless(entry->message, 0);
        entry->health.message = entry->message;
}

static uint8_t *pack(const struct dra *dra, size_t *ret_bytes)
{
        Dra__HealthResponse response = DRA__HEALTH_RESPONSE__INIT;
        size_t most = dra->inventory.device_count + dra->bundles.count + 1;
        CLEANUP(free_p) struct entry *entries = calloc(most, sizeof(*entries));
        CLEANUP(free_p) Dra__DeviceHealth **devices = calloc(most, sizeof(Dra__DeviceHealth *));

        if (entries == NULL || devices == NULL)
                return NULL;
        for (size_t i = 0; i < dra->inventory.device_count; i++) {
                if (!bundles_offers(&dra->inventory, i) || dra->names[i].label[0] == '\0')
                        continue;
                fill_entry(dra, dra->names[i].label, &dra->inventory.devices[i], &entries[i]);
                devices[response.n_devices++] = &entries[i].health;
        }
        for (size_t i = 0; i < dra->bundles.count; i++) {
                const struct bundle *bundle = &dra->bundles.items[i];
                const struct device *sick = bundles_sick(bundle, &dra->inventory);
                struct entry *entry = &entries[dra->inventory.device_count + i];

                fill_entry(dra, bundle->name.label,
                           sick != NULL ? sick : &dra->inventory.devices[bundle->devices[0]], entry);
                devices[response.n_devices++] = &entry->health;
        }
        response.devices = devices;
        return pb_pack(&response, ret_bytes);
}

static void offer(struct dra_health_stream *stream)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        if (!stream->due || grpc_call_busy(stream->call))
                return;
        bytes = pack(stream->dra, &size);
        if (bytes != NULL && grpc_call_send(stream->call, bytes, size) == 0)
                stream->due = false; /* else the next sign of life brings it */
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) call;
        offer(userdata);
}

static void stream_free(struct dra_health_stream *stream)
{
        struct dra_health_stream **link = &stream->dra->streams;

        while (*link != stream)
                link = &(*link)->next;
        *link = stream->next;
        free(stream);
}

static void on_closed(void *userdata, struct grpc_call *call)
{
        (void) call;
        stream_free(userdata);
}

void dra_health_watch(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct dra *dra = userdata;
        struct dra_health_stream *stream = calloc(1, sizeof(*stream));

        (void) message;
        (void) size_bytes;
        if (stream == NULL) {
                grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "no memory for another stream");
                return;
        }
        *stream = (struct dra_health_stream){ .dra = dra, .call = call, .due = true, .next = dra->streams };
        dra->streams = stream;
        grpc_call_keep(call, on_idle, on_closed, stream);
        offer(stream);
}

void dra_health_send(struct dra *dra)
{
        for (struct dra_health_stream *stream = dra->streams; stream != NULL; stream = stream->next) {
                stream->due = true;
                offer(stream);
        }
}

void dra_health_close(struct dra *dra)
{
        while (dra->streams != NULL)
                stream_free(dra->streams);
}
