/* A row says which figure of a probe is a sample of which family; families of two figures, and states, have
 * functions. */
#include "agent/metrics_otel.h"

#include <math.h>
#include <string.h>

#include "base/metrics.h"

#define GPU "gpu"

static void add(struct text *page, const char *node, const struct metrics_row *row, const char *name,
                const char *label, const char *label_value, double value)
{
        metrics_sample(page, name,
                       METRIC_LABELS({ "hw_id", row->device.id }, { "hw_name", metrics_row_file(row) },
                                     { "hw_type", GPU }, { "hw_vendor", row->device.vendor },
                                     { "hw_model", row->device.model },
                                     { "hw_driver_version", row->record->driver_version },
                                     { "host_name", node }, HOLDER_LABELS(row->holder),
                                     { label, label_value }),
                       value);
}

/* NAN = not known. */
static double figure(const struct metrics_row *row, enum probe_sample_value value)
{
        return row->sample != NULL ? row->sample->values[value] : NAN;
}

/* CPUs stand beside the accelerators, and are none. */
static bool is_shown(const struct metrics_row *row)
{
        return row->device.pci[0] != '\0';
}

struct sample {
        const char *family;
        enum metric_type type;
        const char *help;
        enum probe_sample_value figure;
        const char *label, *label_value; /* NULL = none */
};

/* clang-format off */
static const struct sample samples[] = {
        { "hw_gpu_utilization_ratio", METRIC_GAUGE, "Fraction of time spent in a specific task", PROBE_UTILIZATION_COMPUTE, "hw_gpu_task", "general" },
        { "hw_gpu_utilization_ratio", METRIC_GAUGE, "Fraction of time spent in a specific task", PROBE_UTILIZATION_ENCODE, "hw_gpu_task", "encoder" },
        { "hw_gpu_utilization_ratio", METRIC_GAUGE, "Fraction of time spent in a specific task", PROBE_UTILIZATION_DECODE, "hw_gpu_task", "decoder" },
        { "hw_gpu_memory_usage_bytes", METRIC_GAUGE, "GPU memory used", PROBE_MEMORY_USED, NULL, NULL },
        { "hw_temperature_celsius", METRIC_GAUGE, "Temperature of a part of the component", PROBE_TEMPERATURE_CORE, "hw_sensor_location", "core" },
        { "hw_temperature_celsius", METRIC_GAUGE, "Temperature of a part of the component", PROBE_TEMPERATURE_MEMORY, "hw_sensor_location", "memory" },
        { "hw_power_watts", METRIC_GAUGE, "Power drawn by the component", PROBE_POWER, NULL, NULL },
        { "hw_energy_joules_total", METRIC_COUNTER, "Energy consumed by the component", PROBE_ENERGY, NULL, NULL },
};
/* clang-format on */

static void measured(struct text *page, const char *node, const struct metrics_row *rows, size_t n)
{
        const char *family = "";

        for (size_t s = 0; s < sizeof(samples) / sizeof(samples[0]); s++) {
                const struct sample *sample = &samples[s];

                if (strcmp(family, sample->family) != 0)
                        metrics_family(page, sample->family, sample->type, sample->help);
                family = sample->family;
                for (size_t i = 0; i < n; i++)
                        if (is_shown(&rows[i]) && isfinite(figure(&rows[i], sample->figure)))
                                add(page, node, &rows[i], family, sample->label, sample->label_value,
                                    figure(&rows[i], sample->figure));
        }
}

/* As the library says, else discovery. */
static double limit_of(const struct metrics_row *row)
{
        double said = figure(row, PROBE_MEMORY_TOTAL), found = (double) row->device.memory_bytes;

        return isfinite(said) ? said : found > 0 ? found : NAN;
}

static void memory(struct text *page, const char *node, const struct metrics_row *rows, size_t n)
{
        metrics_family(page, "hw_gpu_memory_limit_bytes", METRIC_GAUGE, "Size of the GPU memory");
        for (size_t i = 0; i < n; i++)
                if (is_shown(&rows[i]) && isfinite(limit_of(&rows[i])))
                        add(page, node, &rows[i], "hw_gpu_memory_limit_bytes", NULL, NULL,
                            limit_of(&rows[i]));
        metrics_family(page, "hw_gpu_memory_utilization_ratio", METRIC_GAUGE, "Fraction of GPU memory used");
        for (size_t i = 0; i < n; i++) {
                double used = figure(&rows[i], PROBE_MEMORY_USED) / limit_of(&rows[i]);

                if (is_shown(&rows[i]) && isfinite(used))
                        add(page, node, &rows[i], "hw_gpu_memory_utilization_ratio", NULL, NULL, used);
        }
}

/* Of its memory: what the library counted, else what the driver did. They are the same errors. */
static double errors_of(const struct metrics_row *row, bool corrected)
{
        double said = figure(row, corrected ? PROBE_ECC_CORRECTABLE : PROBE_ECC_UNCORRECTABLE);

        if (isfinite(said) || !row->record->counters.known)
                return said;
        return (double) (corrected ? row->record->counters.ras_correctable
                                   : row->record->counters.ras_uncorrectable);
}

static void errors(struct text *page, const char *node, const struct metrics_row *rows, size_t n)
{
        metrics_family(page, "hw_errors_total", METRIC_COUNTER, "Number of errors encountered");
        for (size_t i = 0; i < n; i++)
                for (int corrected = 1; corrected >= 0; corrected--)
                        if (is_shown(&rows[i]) && isfinite(errors_of(&rows[i], corrected)))
                                add(page, node, &rows[i], "hw_errors_total", "error_type",
                                    corrected ? "corrected" : "uncorrected", errors_of(&rows[i], corrected));
}

/* NULL = nobody knows how it is, and no state is said. */
static const char *state_of(enum device_health health)
{
        switch (health) {
        case HEALTH_HEALTHY:
                return "ok";
        case HEALTH_DEGRADED:
                return "degraded";
        case HEALTH_UNHEALTHY:
        case HEALTH_QUARANTINED:
                return "failed";
        default:
                return NULL;
        }
}

static void states(struct text *page, const char *node, const struct metrics_row *rows, size_t n)
{
        static const char *const names[] = { "ok", "degraded", "failed" };

        metrics_family(page, "hw_status", METRIC_GAUGE, "Operational status: exactly one state is 1");
        for (size_t i = 0; i < n; i++) {
                const char *state = state_of(rows[i].device.health);

                for (size_t s = 0; s < sizeof(names) / sizeof(names[0]); s++)
                        if (is_shown(&rows[i]) && state != NULL)
                                add(page, node, &rows[i], "hw_status", "hw_state", names[s],
                                    strcmp(names[s], state) == 0);
        }
}

void metrics_otel_families(struct text *page, const char *node, const struct metrics_row *rows, size_t n)
{
        measured(page, node, rows, n);
        memory(page, node, rows, n);
        errors(page, node, rows, n);
        states(page, node, rows, n);
}
