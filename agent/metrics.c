#include "agent/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/report.h"
#include "agent/watch.h"
#include "codec/metrics_text.h"
#include "core/version.h"
#include "io/process_metrics.h"

#define DEVICE_LABELS(r)                                                                                     \
        { "vendor", (r)->device.vendor }, { "device", (r)->index },                                          \
        {                                                                                                    \
                "uuid", (r)->device.id                                                                       \
        }

/* What of a record the families below show, with its numbers as text. */
struct row {
        const struct device_record *record;
        struct device device;
        char index[12], numa[12];
};

static void device_info(struct text *page, const struct row *rows, size_t n)
{
        metrics_family(page, "remuda_device_info", METRIC_GAUGE,
                       "What a device is; join on vendor, device and uuid");
        for (size_t i = 0; i < n; i++)
                metrics_sample(page, "remuda_device_info",
                               METRIC_LABELS(DEVICE_LABELS(&rows[i]), { "model", rows[i].device.model },
                                             { "group", rows[i].device.group },
                                             { "pci_address", rows[i].device.pci },
                                             { "numa_node", rows[i].numa },
                                             { "partition", rows[i].device.partition }),
                               1);
}

static void device_health(struct text *page, const struct row *rows, size_t n)
{
        metrics_family(page, "remuda_device_health", METRIC_GAUGE,
                       "Health of a device: one series per condition, exactly one is 1");
        for (size_t i = 0; i < n; i++)
                for (int h = 0; h < HEALTH_COUNT; h++)
                        metrics_sample(
                                page, "remuda_device_health",
                                METRIC_LABELS(DEVICE_LABELS(&rows[i]),
                                              { "condition", device_health_name((enum device_health) h) }),
                                rows[i].device.health == (enum device_health) h);
        metrics_family(page, "remuda_device_usable", METRIC_GAUGE,
                       "Whether the kubelet is told that the device is Healthy");
        for (size_t i = 0; i < n; i++)
                metrics_sample(page, "remuda_device_usable", METRIC_LABELS(DEVICE_LABELS(&rows[i])),
                               rows[i].device.usable);
        metrics_family(page, "remuda_device_health_since_timestamp_seconds", METRIC_GAUGE,
                       "When the health of a device last changed, in seconds since 1970");
        for (size_t i = 0; i < n; i++)
                if (rows[i].device.since_usec != 0)
                        metrics_sample(page, "remuda_device_health_since_timestamp_seconds",
                                       METRIC_LABELS(DEVICE_LABELS(&rows[i])),
                                       (double) rows[i].device.since_usec / 1e6);
        metrics_family(page, "remuda_device_health_transitions_total", METRIC_COUNTER,
                       "How often the health of a device became this");
        for (size_t i = 0; i < n; i++)
                for (int h = 0; h < HEALTH_COUNT; h++)
                        metrics_sample_uint64(
                                page, "remuda_device_health_transitions_total",
                                METRIC_LABELS(DEVICE_LABELS(&rows[i]),
                                              { "to", device_health_name((enum device_health) h) }),
                                rows[i].record->transitions[h]);
}

static void device_memory(struct text *page, const struct row *rows, size_t n)
{
        metrics_family(page, "remuda_device_memory_total_bytes", METRIC_GAUGE, "Memory of a device");
        for (size_t i = 0; i < n; i++)
                if (rows[i].device.memory_bytes != 0)
                        metrics_sample_uint64(page, "remuda_device_memory_total_bytes",
                                              METRIC_LABELS(DEVICE_LABELS(&rows[i]), { "type", "device" }),
                                              rows[i].device.memory_bytes);
}

static void groups(struct text *page, const struct inventory *told)
{
        static const struct {
                const char *name, *help;
                size_t offset;
        } families[] = {
                { "remuda_group_devices", "Devices of a group, whatever their health",
                  offsetof(struct device_group, total) },
                { "remuda_group_devices_healthy", "Usable devices of a group",
                  offsetof(struct device_group, healthy) },
                { "remuda_group_devices_free", "Usable devices of a group that nobody holds",
                  offsetof(struct device_group, free) },
        };

        for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
                metrics_family(page, families[f].name, METRIC_GAUGE, families[f].help);
                for (size_t i = 0; i < told->group_count; i++) {
                        const struct device_group *g = &told->groups[i];

                        metrics_sample(
                                page, families[f].name,
                                METRIC_LABELS({ "group", g->name }, { "vendor", g->vendor },
                                              { "model", g->model }, { "resource", g->resource },
                                              { "fabric", g->fabric }),
                                *(const unsigned *) (const void *) ((const char *) g + families[f].offset));
                }
        }
}

static void agent_families(struct text *page, struct agent *agent)
{
        struct report_status report;

        metrics_family(page, "remuda_agent_build_info", METRIC_GAUGE, "The version of this agent");
        metrics_sample(page, "remuda_agent_build_info",
                       METRIC_LABELS({ "version", REMUDA_VERSION },
                                     { "watch", agent->watch != NULL ? watch_mode(agent->watch) : "none" }),
                       1);
        metrics_gauge(page, "remuda_agent_inventory_generation", "Changes of the inventory since the start",
                      (double) agent->told.generation);
        metrics_counter(page, "remuda_agent_scans_total", "Scans of the machine", agent->scans_total);
        metrics_counter(page, "remuda_agent_scan_failures_total", "Scans that failed",
                        agent->scan_failures_total);
        metrics_family(page, "remuda_agent_scan_duration_seconds", METRIC_HISTOGRAM,
                       "How long a scan of the machine took");
        metrics_histogram(page, "remuda_agent_scan_duration_seconds", NULL, &agent->scan_seconds);
        report_status(agent->report, &report);
        metrics_gauge(page, "remuda_agent_store_in_step", "Whether the store holds what was told last",
                      report.in_step);
        metrics_counter(page, "remuda_agent_store_writes_total", "Inventories written to the store",
                        report.writes_total);
        metrics_counter(page, "remuda_agent_store_failures_total", "Writes to the store that failed",
                        report.failures_total);
        metrics_counter(page, "remuda_agent_events_total", "Events written", report.events_total);
}

void metrics_page(struct agent *agent, struct text *page)
{
        size_t n = agent->judge.record_count;
        struct row *rows = calloc(n + 1, sizeof(*rows));

        if (rows != NULL) {
                for (size_t i = 0; i < n; i++) {
                        rows[i].record = agent->judge.records[i];
                        rows[i].device = rows[i].record->device;
                        (void) text_format(rows[i].index, sizeof(rows[i].index), "%u", rows[i].device.index);
                        if (rows[i].device.numa >= 0)
                                (void) text_format(rows[i].numa, sizeof(rows[i].numa), "%d",
                                                   rows[i].device.numa);
                }
                device_info(page, rows, n);
                device_health(page, rows, n);
                device_memory(page, rows, n);
                free(rows);
        }
        groups(page, &agent->told);
        agent_families(page, agent);
        process_metrics_append(page);
}
