/* Metrics: the families of the page, each from the part that counts it. */
#include "agent/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/health/foreign.h"
#include "agent/health/repair.h"
#include "agent/kubelet.h"
#include "agent/metrics_otel.h"
#include "agent/node_report.h"
#include "agent/probe/vendor_probe.h"
#include "agent/watch.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/version.h"
#include "io/process_metrics.h"

#define DEVICE_LABELS(r)                                                                                     \
        { "vendor", (r)->device.vendor }, { "device", (r)->index },                                          \
        {                                                                                                    \
                "uuid", (r)->device.id                                                                       \
        }

static void device_info(struct text *page, const struct metrics_row *rows, size_t n)
{
        metrics_family(page, "remuda_device_info", METRIC_GAUGE,
                       "What a device is; join on vendor, device and uuid");
        for (size_t i = 0; i < n; i++)
                metrics_sample(page, "remuda_device_info",
                               METRIC_LABELS(DEVICE_LABELS(&rows[i]), { "model", rows[i].device.model },
                                             { "group", rows[i].device.group },
                                             { "pci_address", rows[i].device.pci },
                                             { "numa_node", rows[i].numa },
                                             { "driver_version", rows[i].record->driver_version },
                                             { "partition", rows[i].device.partition }),
                               1);
}

static void device_health(struct text *page, const struct metrics_row *rows, size_t n)
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

static void device_memory(struct text *page, const struct metrics_row *rows, size_t n)
{
        metrics_family(page, "remuda_device_memory_total_bytes", METRIC_GAUGE, "Memory of a device");
        for (size_t i = 0; i < n; i++) {
                double bytes = (double) rows[i].device.memory_bytes;

                if (rows[i].sample != NULL && isfinite(rows[i].sample->values[PROBE_MEMORY_TOTAL]))
                        bytes = rows[i].sample->values[PROBE_MEMORY_TOTAL];
                if (bytes > 0)
                        metrics_sample(page, "remuda_device_memory_total_bytes",
                                       METRIC_LABELS(DEVICE_LABELS(&rows[i]), { "type", "device" }), bytes);
        }
}

static void sample_line(struct text *page, const struct metrics_row *row,
                        const struct probe_sample_field *field, double value)
{
        if (field->label != NULL)
                metrics_sample(page, field->metric,
                               METRIC_LABELS(DEVICE_LABELS(row), { field->label, field->label_value }),
                               value);
        else
                metrics_sample(page, field->metric, METRIC_LABELS(DEVICE_LABELS(row)), value);
}

static void errors_from_sysfs(struct text *page, const struct metrics_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct judge_record *r = rows[i].record;
                const struct {
                        const char *class;
                        uint64_t value;
                        bool known;
                } classes[] = {
                        { "kernel_log", r->kernel_errors, true },
                        { "pcie_correctable", r->counters.aer_correctable, r->counters.known },
                        { "pcie_nonfatal", r->counters.aer_nonfatal, r->counters.known },
                        { "pcie_fatal", r->counters.aer_fatal, r->counters.known },
                        { "ras_correctable", r->counters.ras_correctable, r->counters.known },
                        { "ras_uncorrectable", r->counters.ras_uncorrectable, r->counters.known },
                };

                for (size_t c = 0; c < sizeof(classes) / sizeof(classes[0]) && r->device.pci[0] != '\0'; c++)
                        if (classes[c].known)
                                metrics_sample_uint64(
                                        page, "remuda_device_errors_total",
                                        METRIC_LABELS(DEVICE_LABELS(&rows[i]), { "class", classes[c].class }),
                                        classes[c].value);
        }
}

/* What the vendors' libraries say, a family at a time. */
static void device_samples(struct text *page, const struct metrics_row *rows, size_t n)
{
        const char *family = "";

        for (size_t f = 0; f < PROBE_VALUE_COUNT; f++) {
                const struct probe_sample_field *field = &probe_sample_fields[f];

                if (field->metric == NULL)
                        continue;
                if (strcmp(field->metric, family) != 0) {
                        family = field->metric;
                        metrics_family(page, family, field->type, field->help);
                        if (strcmp(family, "remuda_device_errors_total") == 0)
                                errors_from_sysfs(page, rows, n);
                }
                for (size_t i = 0; i < n; i++)
                        if (rows[i].sample != NULL && isfinite(rows[i].sample->values[f]))
                                sample_line(page, &rows[i], field, rows[i].sample->values[f]);
        }
}

static void last_errors(struct text *page, const struct metrics_row *rows, size_t n)
{
        metrics_family(page, "remuda_device_last_error_code", METRIC_GAUGE,
                       "Code of the last fault in the kernel log");
        for (size_t i = 0; i < n; i++)
                if (rows[i].record->last_error_usec != 0)
                        metrics_sample_uint64(
                                page, "remuda_device_last_error_code",
                                METRIC_LABELS(DEVICE_LABELS(&rows[i]),
                                              { "code_space", rows[i].record->last_error_space }),
                                rows[i].record->last_error_code);
        metrics_family(page, "remuda_device_last_error_timestamp_seconds", METRIC_GAUGE,
                       "When the last fault in the kernel log was seen, in seconds since 1970");
        for (size_t i = 0; i < n; i++)
                if (rows[i].record->last_error_usec != 0)
                        metrics_sample(page, "remuda_device_last_error_timestamp_seconds",
                                       METRIC_LABELS(DEVICE_LABELS(&rows[i])),
                                       (double) rows[i].record->last_error_usec / 1e6);
}

static void dcgm_sample(struct text *page, const struct agent *agent, const struct metrics_row *row,
                        const char *name, double value)
{
        metrics_sample(page, name,
                       METRIC_LABELS({ "gpu", row->index }, { "UUID", row->device.id },
                                     { "device", metrics_row_file(row) }, { "modelName", row->device.model },
                                     { "Hostname", agent->node }, { "pci_bus_id", row->device.pci },
                                     HOLDER_LABELS(row->holder)),
                       value);
}

/* The names that DCGM's dashboards use, for every vendor. */
static void dcgm_families(struct text *page, const struct agent *agent, const struct metrics_row *rows,
                          size_t n)
{
        for (size_t f = 0; f < PROBE_VALUE_COUNT; f++) {
                const struct probe_sample_field *field = &probe_sample_fields[f];

                if (field->dcgm == NULL)
                        continue;
                metrics_family(page, field->dcgm, METRIC_GAUGE, field->help);
                for (size_t i = 0; i < n; i++)
                        if (rows[i].sample != NULL && isfinite(rows[i].sample->values[f]))
                                dcgm_sample(page, agent, &rows[i], field->dcgm,
                                            rows[i].sample->values[f] * field->dcgm_scale);
        }
        /* newer DCGM dashboards draw this one; its nearest relative is what the libraries call busy */
        metrics_family(page, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", METRIC_GAUGE,
                       "How busy the compute part of the device is, 0 to 1");
        for (size_t i = 0; i < n; i++)
                if (rows[i].sample != NULL && isfinite(rows[i].sample->values[PROBE_UTILIZATION_COMPUTE]))
                        dcgm_sample(page, agent, &rows[i], "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                                    rows[i].sample->values[PROBE_UTILIZATION_COMPUTE]);
        metrics_family(page, "DCGM_FI_DEV_FB_FREE", METRIC_GAUGE, "Memory of the device that is not in use");
        for (size_t i = 0; i < n; i++) {
                const double *v = rows[i].sample != NULL ? rows[i].sample->values : NULL;

                double reserved =
                        v != NULL && isfinite(v[PROBE_MEMORY_RESERVED]) ? v[PROBE_MEMORY_RESERVED] : 0;

                if (v != NULL && isfinite(v[PROBE_MEMORY_TOTAL]) && isfinite(v[PROBE_MEMORY_USED]))
                        dcgm_sample(page, agent, &rows[i], "DCGM_FI_DEV_FB_FREE",
                                    (v[PROBE_MEMORY_TOTAL] - v[PROBE_MEMORY_USED] - reserved) / 1048576);
        }
        metrics_family(page, "DCGM_FI_DEV_XID_ERRORS", METRIC_GAUGE, "Code of the last fault, 0 = none");
        for (size_t i = 0; i < n; i++)
                if (rows[i].device.pci[0] != '\0')
                        dcgm_sample(page, agent, &rows[i], "DCGM_FI_DEV_XID_ERRORS",
                                    (double) rows[i].record->last_error_code);
}

/* next_holder() - of a device, from the n-th on; a container that holds it by two resources is one.
 * Return: its place in @holders, or @count. */
static size_t next_holder(const struct holder *holders, size_t count, size_t n, const char *device_id)
{
        for (; n < count; n++) {
                const struct holder *h = &holders[n];
                bool said = strcmp(h->device_id, device_id) != 0;

                for (size_t k = 0; k < n && !said; k++)
                        said = strcmp(holders[k].device_id, device_id) == 0 &&
                               strcmp(holders[k].pod_namespace, h->pod_namespace) == 0 &&
                               strcmp(holders[k].pod, h->pod) == 0 &&
                               strcmp(holders[k].container, h->container) == 0;
                if (!said)
                        break;
        }
        return n;
}

static void device_allocated(struct text *page, const struct agent *agent, const struct metrics_row *rows,
                             size_t n)
{
        const struct holder *holders = NULL;
        uint64_t asked = 0;
        size_t count = kubelet_holders(agent->kubelet, &holders, &asked);

        if (asked == 0)
                return; /* never had an answer: nothing is known */
        metrics_family(page, "remuda_device_allocated", METRIC_GAUGE,
                       "Whether a pod holds the device, and which");
        for (size_t i = 0; i < n; i++) {
                const struct metrics_row *row = &rows[i];
                size_t k = next_holder(holders, count, 0, row->device.id);

                if (k == count)
                        metrics_sample(page, "remuda_device_allocated", METRIC_LABELS(DEVICE_LABELS(row)), 0);
                for (; k < count; k = next_holder(holders, count, k + 1, row->device.id))
                        metrics_sample(page, "remuda_device_allocated",
                                       METRIC_LABELS(DEVICE_LABELS(row), HOLDER_LABELS(&holders[k])), 1);
        }
}

static void groups(struct text *page, const struct inventory *published)
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
                for (size_t i = 0; i < published->group_count; i++) {
                        const struct device_group *g = &published->groups[i];

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
        struct node_report_status report;

        metrics_family(page, "remuda_agent_build_info", METRIC_GAUGE, "The version of this agent");
        metrics_sample(page, "remuda_agent_build_info",
                       METRIC_LABELS({ "version", REMUDA_VERSION },
                                     { "watch", agent->watch != NULL ? watch_mode(agent->watch) : "none" }),
                       1);
        metrics_gauge(page, "remuda_agent_inventory_generation", "Changes of the inventory since the start",
                      (double) agent->published.generation);
        metrics_counter(page, "remuda_agent_scans_total", "Scans of the machine", agent->scans_total);
        metrics_counter(page, "remuda_agent_scan_failures_total", "Scans that failed",
                        agent->scan_failures_total);
        metrics_family(page, "remuda_agent_scan_duration_seconds", METRIC_HISTOGRAM,
                       "How long a scan of the machine took");
        metrics_histogram(page, "remuda_agent_scan_duration_seconds", NULL, &agent->scan_seconds);
        node_report_status(agent->report, &report);
        metrics_gauge(page, "remuda_agent_store_in_step", "Whether the store holds what was told last",
                      report.in_step);
        metrics_counter(page, "remuda_agent_store_writes_total", "Inventories written to the store",
                        report.writes_total);
        metrics_counter(page, "remuda_agent_store_failures_total", "Writes to the store that failed",
                        report.failures_total);
        metrics_counter(page, "remuda_agent_events_total", "Events written", report.events_total);
        metrics_counter(page, "remuda_agent_config_reloads_total",
                        "Times that the configuration was read again", agent->reloads_total);
        metrics_counter(page, "remuda_agent_config_reload_failures_total",
                        "Times that a new configuration was refused", agent->reload_failures_total);
}

/* A count of each vendor's library, of each of the kubelet's resources. */
struct counter_family {
        const char *name, *help;
        size_t offset; /* of a uint64_t */
};

/* clang-format off */
static const struct counter_family vendor_counters[] = {
        { "remuda_agent_vendor_call_timeouts_total", "Questions to a vendor's library that hung and were killed",
          offsetof(struct vendor_probe_status, timeouts_total) },
        { "remuda_agent_vendor_call_crashes_total", "Times that a vendor's library crashed or spoke nonsense",
          offsetof(struct vendor_probe_status, crashes_total) },
        { "remuda_agent_vendor_values_refused_total", "Figures of a vendor's library that cannot be true",
          offsetof(struct vendor_probe_status, refused_total) },
};
static const struct counter_family resource_counters[] = {
        { "remuda_agent_kubelet_registrations_total", "Times that the kubelet accepted a resource",
          offsetof(struct plugin_status_resource, registrations_total) },
        { "remuda_agent_kubelet_registration_failures_total", "Times that the kubelet refused or did not answer",
          offsetof(struct plugin_status_resource, registration_failures_total) },
        { "remuda_agent_kubelet_lists_total", "Lists of a resource's devices that the kubelet was sent",
          offsetof(struct plugin_status_resource, lists_total) },
        { "remuda_agent_allocations_total", "Allocate calls that were answered",
          offsetof(struct plugin_status_resource, allocations_total) },
        { "remuda_agent_allocations_refused_total", "Allocate calls that were refused",
          offsetof(struct plugin_status_resource, refusals_total) },
};
/* clang-format on */

static uint64_t counter_at(const void *status, size_t offset)
{
        return *(const uint64_t *) (const void *) ((const char *) status + offset);
}

/* One that is there, and has answered or kept silent. */
static bool has_library(const struct vendor_probe_status *s)
{
        return s->vendor != NULL && (s->state == AGENT_FACTS_ANSWERS || s->state == AGENT_FACTS_SILENT);
}

static void collectors(struct text *page, const struct agent *agent)
{
        struct vendor_probe_status s;

        metrics_family(page, "remuda_collector_success", METRIC_GAUGE,
                       "Whether the last question to a vendor's library was answered");
        for (size_t i = 0; vendor_probe_status(agent->probe, i, &s); i++)
                if (has_library(&s))
                        metrics_sample(page, "remuda_collector_success",
                                       METRIC_LABELS({ "collector", s.vendor }),
                                       s.state == AGENT_FACTS_ANSWERS);
        metrics_family(page, "remuda_collector_last_success_timestamp_seconds", METRIC_GAUGE,
                       "When a vendor's library last answered, in seconds since 1970");
        for (size_t i = 0; vendor_probe_status(agent->probe, i, &s); i++)
                if (s.vendor != NULL && s.last_success_usec != 0)
                        metrics_sample(page, "remuda_collector_last_success_timestamp_seconds",
                                       METRIC_LABELS({ "collector", s.vendor }),
                                       (double) s.last_success_usec / 1e6);
        for (size_t f = 0; f < ARRAY_SIZE(vendor_counters); f++) {
                metrics_family(page, vendor_counters[f].name, METRIC_COUNTER, vendor_counters[f].help);
                for (size_t i = 0; vendor_probe_status(agent->probe, i, &s); i++)
                        if (s.vendor != NULL)
                                metrics_sample_uint64(page, vendor_counters[f].name,
                                                      METRIC_LABELS({ "vendor", s.vendor }),
                                                      counter_at(&s, vendor_counters[f].offset));
        }
        metrics_family(page, "remuda_agent_vendor_call_duration_seconds", METRIC_HISTOGRAM,
                       "How long a vendor's library took to answer");
        for (size_t i = 0; vendor_probe_status(agent->probe, i, &s); i++)
                if (has_library(&s))
                        metrics_histogram(page, "remuda_agent_vendor_call_duration_seconds",
                                          METRIC_LABELS({ "vendor", s.vendor }), s.duration);
}

static void kubelet(struct text *page, struct agent *agent)
{
        struct plugin_status s;

        if (!kubelet_status(agent->kubelet, &s))
                return;
        metrics_gauge(page, "remuda_agent_kubelet_present", "Whether the kubelet's socket is there",
                      s.kubelet_present);
        metrics_counter(page, "remuda_agent_kubelet_seen_total",
                        "Times that a new socket of the kubelet was met", s.kubelet_seen_total);
        metrics_family(page, "remuda_agent_kubelet_registered", METRIC_GAUGE,
                       "Whether the kubelet has accepted a resource and reads its list");
        for (size_t i = 0; i < s.resource_count; i++)
                metrics_sample(page, "remuda_agent_kubelet_registered",
                               METRIC_LABELS({ "resource", s.resources[i].resource }),
                               s.resources[i].registered && s.resources[i].streaming);
        for (size_t f = 0; f < ARRAY_SIZE(resource_counters); f++) {
                metrics_family(page, resource_counters[f].name, METRIC_COUNTER, resource_counters[f].help);
                for (size_t i = 0; i < s.resource_count; i++)
                        metrics_sample_uint64(page, resource_counters[f].name,
                                              METRIC_LABELS({ "resource", s.resources[i].resource }),
                                              counter_at(&s.resources[i], resource_counters[f].offset));
        }
        metrics_family(page, "remuda_agent_allocate_duration_seconds", METRIC_HISTOGRAM,
                       "How long Allocate took");
        for (size_t i = 0; i < s.resource_count; i++)
                metrics_histogram(page, "remuda_agent_allocate_duration_seconds",
                                  METRIC_LABELS({ "resource", s.resources[i].resource }),
                                  &s.resources[i].allocate);
}

static const char *const refusal_words[DRA_STATUS_REFUSALS] = { [DRA_STATUS_HELD] = "held",
                                                                [DRA_STATUS_CLAIM] = "claim",
                                                                [DRA_STATUS_STORE] = "store",
                                                                [DRA_STATUS_FILES] = "files" };

static void claims(struct text *page, const struct agent *agent)
{
        struct dra_status s;

        if (!kubelet_dra_status(agent->kubelet, &s))
                return;
        metrics_gauge(page, "remuda_agent_driver_registered",
                      "Has the kubelet taken the driver of claims: 1 or 0", s.registered ? 1 : 0);
        metrics_gauge(page, "remuda_agent_claims_held", "Claims that are prepared on this node",
                      (double) s.claims);
        metrics_counter(page, "remuda_agent_claims_prepared_total",
                        "Claims that the kubelet was told are prepared", s.prepared_total);
        metrics_family(page, "remuda_agent_claims_refused_total", METRIC_COUNTER,
                       "Claims that were not prepared, by reason");
        for (size_t i = 0; i < DRA_STATUS_REFUSALS; i++)
                metrics_sample_uint64(page, "remuda_agent_claims_refused_total",
                                      METRIC_LABELS({ "reason", refusal_words[i] }), s.refused_total[i]);
        metrics_counter(page, "remuda_agent_claims_unprepared_total", "Claims that were given up",
                        s.unprepared_total);
        metrics_family(page, "remuda_agent_prepare_duration_seconds", METRIC_HISTOGRAM,
                       "How long NodePrepareResources took, the store included");
        metrics_histogram(page, "remuda_agent_prepare_duration_seconds", NULL, &s.prepare);
        metrics_counter(page, "remuda_agent_slice_writes_total",
                        "Writes of ResourceSlices that the store was asked for", s.slice_writes_total);
        metrics_counter(page, "remuda_agent_slice_deletes_total",
                        "Deletions of ResourceSlices that the store was asked for", s.slice_drops_total);
        metrics_counter(page, "remuda_agent_slice_failures_total",
                        "Writes and deletions of ResourceSlices that failed", s.slice_failures_total);
}

static void fill_rows(const struct agent *agent, struct metrics_row *rows, size_t n)
{
        const struct holder *holders = NULL;
        uint64_t asked;
        size_t count = kubelet_holders(agent->kubelet, &holders, &asked), k;

        for (size_t i = 0; i < n; i++) {
                rows[i].record = agent->judge.records[i];
                rows[i].device = rows[i].record->device;
                k = next_holder(holders, count, 0, rows[i].device.id);
                rows[i].holder = k < count ? &holders[k] : NULL;
                rows[i].sample =
                        rows[i].record->present ? vendor_probe_sample(agent->probe, &rows[i].device) : NULL;
                (void) text_format(rows[i].index, sizeof(rows[i].index), "%u", rows[i].device.index);
                if (rows[i].device.numa >= 0)
                        (void) text_format(rows[i].numa, sizeof(rows[i].numa), "%d", rows[i].device.numa);
        }
}

void metrics_page(struct agent *agent, struct text *page)
{
        size_t n = agent->judge.record_count;
        struct metrics_row *rows = calloc(n + 1, sizeof(*rows));

        if (rows != NULL) {
                fill_rows(agent, rows, n);
                device_info(page, rows, n);
                device_health(page, rows, n);
                device_memory(page, rows, n);
                device_samples(page, rows, n);
                last_errors(page, rows, n);
                device_allocated(page, agent, rows, n);
                if (agent->configuration.agent.compat == COMPAT_DCGM)
                        dcgm_families(page, agent, rows, n);
                if (agent->configuration.agent.compat == COMPAT_OTEL)
                        metrics_otel_families(page, agent->node, rows, n);
                free(rows);
        }
        groups(page, &agent->published);
        agent_families(page, agent);
        collectors(page, agent);
        kubelet(page, agent);
        claims(page, agent);
        launch_programs_metrics(agent->launch_api != NULL ? &agent->programs : NULL, page);
        repair_metrics(agent->repair, page);
        foreign_metrics(agent->foreign, page);
        process_metrics_append(page);
}
