/* What may be measured of a device, as a table; a line of it holds what a probe could read. */
#include "agent/probe/probe_sample.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/json/json_line.h"

#define PETABYTE 1125899906842624.0

/* clang-format off */
const struct probe_sample_field probe_sample_fields[PROBE_VALUE_COUNT] = {
        [PROBE_UTILIZATION_COMPUTE] = { "utilizationCompute", 0, 1, "remuda_device_utilization_ratio",
                METRIC_GAUGE, "How busy a part of the device is", "engine", "compute", "DCGM_FI_DEV_GPU_UTIL", 100 },
        [PROBE_UTILIZATION_MEMORY] = { "utilizationMemory", 0, 1, "remuda_device_utilization_ratio",
                METRIC_GAUGE, "How busy a part of the device is", "engine", "memory", "DCGM_FI_DEV_MEM_COPY_UTIL", 100 },
        [PROBE_UTILIZATION_ENCODE] = { "utilizationEncode", 0, 1, "remuda_device_utilization_ratio",
                METRIC_GAUGE, "How busy a part of the device is", "engine", "encode", "DCGM_FI_DEV_ENC_UTIL", 100 },
        [PROBE_UTILIZATION_DECODE] = { "utilizationDecode", 0, 1, "remuda_device_utilization_ratio",
                METRIC_GAUGE, "How busy a part of the device is", "engine", "decode", "DCGM_FI_DEV_DEC_UTIL", 100 },
        [PROBE_MEMORY_TOTAL] = { "memoryTotal", 0, PETABYTE, NULL, /* discovery tells it */
                METRIC_GAUGE, "Memory of a device", NULL, NULL, NULL, 0 },
        [PROBE_MEMORY_USED] = { "memoryUsed", 0, PETABYTE, "remuda_device_memory_used_bytes",
                METRIC_GAUGE, "Memory of the device that is in use", "type", "device", "DCGM_FI_DEV_FB_USED", 1.0 / 1048576 },
        [PROBE_MEMORY_RESERVED] = { "memoryReserved", 0, PETABYTE, "remuda_device_memory_reserved_bytes",
                METRIC_GAUGE, "Memory of the device that its driver keeps to itself", "type", "device", "DCGM_FI_DEV_FB_RESERVED", 1.0 / 1048576 },
        [PROBE_TEMPERATURE_CORE] = { "temperatureCore", -60, 250, "remuda_device_temperature_celsius",
                METRIC_GAUGE, "Temperature of a part of the device", "sensor", "core", "DCGM_FI_DEV_GPU_TEMP", 1 },
        [PROBE_TEMPERATURE_MEMORY] = { "temperatureMemory", -60, 250, "remuda_device_temperature_celsius",
                METRIC_GAUGE, "Temperature of a part of the device", "sensor", "memory", "DCGM_FI_DEV_MEMORY_TEMP", 1 },
        [PROBE_POWER] = { "power", 0, 100000, "remuda_device_power_watts",
                METRIC_GAUGE, "Power that the device draws", NULL, NULL, "DCGM_FI_DEV_POWER_USAGE", 1 },
        [PROBE_POWER_LIMIT] = { "powerLimit", 0, 100000, "remuda_device_power_limit_watts",
                METRIC_GAUGE, "Power that the device may draw", NULL, NULL, NULL, 0 },
        [PROBE_ENERGY] = { "energy", 0, 1e15, "remuda_device_energy_joules_total",
                METRIC_COUNTER, "Energy used since the driver was loaded", NULL, NULL,
                "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000 },
        [PROBE_CLOCK_CORE] = { "clockCore", 0, 1e11, "remuda_device_clock_hertz",
                METRIC_GAUGE, "Clock of a part of the device", "domain", "core", "DCGM_FI_DEV_SM_CLOCK", 1e-6 },
        [PROBE_CLOCK_MEMORY] = { "clockMemory", 0, 1e11, "remuda_device_clock_hertz",
                METRIC_GAUGE, "Clock of a part of the device", "domain", "memory", "DCGM_FI_DEV_MEM_CLOCK", 1e-6 },
        [PROBE_THROTTLE_POWER] = { "throttlePower", 0, 1e12, "remuda_device_throttle_seconds_total",
                METRIC_COUNTER, "Time that the device ran slower than it could, since the driver was loaded", "reason", "power",
                "DCGM_FI_DEV_POWER_VIOLATION", 1e6 },
        [PROBE_THROTTLE_THERMAL] = { "throttleThermal", 0, 1e12, "remuda_device_throttle_seconds_total",
                METRIC_COUNTER, "Time that the device ran slower than it could, since the driver was loaded", "reason", "thermal",
                "DCGM_FI_DEV_THERMAL_VIOLATION", 1e6 },
        [PROBE_ECC_CORRECTABLE] = { "eccCorrectable", 0, 1e18, "remuda_device_errors_total",
                METRIC_COUNTER, "Errors of a device", "class", "ecc_correctable", NULL, 0 },
        [PROBE_ECC_UNCORRECTABLE] = { "eccUncorrectable", 0, 1e18, "remuda_device_errors_total",
                METRIC_COUNTER, "Errors of a device", "class", "ecc_uncorrectable", NULL, 0 },
        [PROBE_ROW_REMAP] = { "rowRemap", 0, 1e9, "remuda_device_errors_total",
                METRIC_COUNTER, "Errors of a device", "class", "row_remap", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1 },
        [PROBE_PCIE_REPLAY] = { "pcieReplay", 0, 1e18, "remuda_device_errors_total",
                METRIC_COUNTER, "Errors of a device", "class", "pcie_replay", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1 },
        [PROBE_LINK_ERRORS] = { "linkErrors", 0, 1e18, "remuda_device_errors_total",
                METRIC_COUNTER, "Errors of a device", "class", "link", NULL, 0 },
};

static const char *const level_names[] = {
        [FINDING_GOOD] = "good", [FINDING_DEGRADED] = "degraded", [FINDING_SILENT] = "silent",
        [FINDING_BAD] = "bad", [FINDING_COUNT] = NULL,
};
/* clang-format on */

void probe_sample_init(struct probe_sample *sample, const char *pci)
{
        *sample = (struct probe_sample){ .pci = "" };
        (void) text_copy(sample->pci, sizeof(sample->pci), pci);
        for (size_t i = 0; i < PROBE_VALUE_COUNT; i++)
                sample->values[i] = NAN;
}

void probe_sample_encode(const struct probe_sample *sample, struct text *out)
{
        const struct finding *f = &sample->finding;
        json_t *object = json_pack("{s:s}", "pci", sample->pci);

        for (size_t i = 0; object != NULL && i < PROBE_VALUE_COUNT; i++)
                if (isfinite(sample->values[i]))
                        (void) json_object_set_new(object, probe_sample_fields[i].key,
                                                   json_real(sample->values[i]));
        if (object != NULL && f->level != FINDING_GOOD)
                (void) json_object_update_new(object, json_pack("{s:s, s:s, s:s, s:s}", "level",
                                                                level_names[f->level], "rule", f->rule,
                                                                "reason", f->reason, "message", f->message));
        json_line_append(out, object);
}

/* A reason is shown to people and machines: letters and digits, or it is none. */
static bool is_word(const char *s, const char *more)
{
        if (*s == '\0')
                return false;
        for (; *s != '\0'; s++)
                if (!isalnum((unsigned char) *s) && strchr(more, *s) == NULL)
                        return false;
        return true;
}

static int decode_finding(const struct json_field *root, struct finding *f, struct err *err)
{
        char rule[sizeof(f->rule)] = "", reason[sizeof(f->reason)] = "", message[sizeof(f->message)] = "";
        unsigned level = FINDING_GOOD;
        int r;

        if ((r = json_field_choice(root, "level", level_names, &level, err)) < 0 ||
            (r = json_field_text(root, "rule", rule, sizeof(rule), err)) < 0 ||
            (r = json_field_text(root, "reason", reason, sizeof(reason), err)) < 0 ||
            (r = json_field_text(root, "message", message, sizeof(message), err)) < 0)
                return r;
        if (level != FINDING_GOOD && (!is_word(rule, "-") || !is_word(reason, "")))
                return json_field_error(root, err, "a finding needs a rule and a reason");
        for (char *s = message; *s != '\0'; s++)
                if ((unsigned char) *s < 0x20)
                        *s = '?';
        finding_add(f, (enum finding_level) level, rule, reason, "%s", message);
        return 0;
}

int probe_sample_decode(const char *line, size_t size_bytes, struct probe_sample *ret, unsigned *ret_refused,
                        struct err *err)
{
        struct json_field root;
        unsigned refused = 0;
        json_t *object;
        int r;

        probe_sample_init(ret, "");
        object = json_line_load(line, size_bytes, PROBE_LINE_MAX_BYTES, err);
        if (object == NULL)
                return -EBADMSG;
        root = json_field_root(object);
        r = json_field_is_object(&root, err);
        if (r == 0)
                r = json_field_require(&root, "pci", err);
        if (r == 0)
                r = json_field_text(&root, "pci", ret->pci, sizeof(ret->pci), err);
        for (size_t i = 0; r >= 0 && i < PROBE_VALUE_COUNT; i++) {
                const struct probe_sample_field *field = &probe_sample_fields[i];

                refused += json_field_double(&root, field->key, field->minimum, field->maximum,
                                             &ret->values[i], NULL) < 0;
        }
        if (r >= 0)
                r = decode_finding(&root, &ret->finding, err);
        json_decref(object);
        if (ret_refused != NULL)
                *ret_refused = refused;
        return r < 0 ? r : 0;
}
