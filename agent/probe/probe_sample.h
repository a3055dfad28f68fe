/* Probe sample: what a vendor library said about one device, as a line of JSON between the child that asked
 * and the agent that listens.
 *
 * The agent trusts no child: a line is decoded field by field, and a figure outside its bounds is left out
 * and counted. One table owns the names, the bounds and the metric each field is shown as. */
#pragma once

#include <stddef.h>

#include "agent/health/health.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/text.h"

#define PROBE_LINE_MAX_BYTES 4096

enum probe_sample_value {
        PROBE_UTILIZATION_COMPUTE, /* 0..1 */
        PROBE_UTILIZATION_MEMORY,
        PROBE_UTILIZATION_ENCODE,
        PROBE_UTILIZATION_DECODE,
        PROBE_MEMORY_TOTAL, /* bytes */
        PROBE_MEMORY_USED,
        PROBE_MEMORY_RESERVED,  /* by driver and firmware, in no program's hands; not among the used */
        PROBE_TEMPERATURE_CORE, /* Celsius */
        PROBE_TEMPERATURE_MEMORY,
        PROBE_POWER, /* watts */
        PROBE_POWER_LIMIT,
        PROBE_ENERGY,     /* joules since the driver was loaded */
        PROBE_CLOCK_CORE, /* hertz */
        PROBE_CLOCK_MEMORY,
        PROBE_THROTTLE_POWER, /* seconds below its clock since the driver was loaded */
        PROBE_THROTTLE_THERMAL,
        PROBE_ECC_CORRECTABLE, /* errors since the driver was loaded */
        PROBE_ECC_UNCORRECTABLE,
        PROBE_ROW_REMAP,
        PROBE_PCIE_REPLAY,
        PROBE_LINK_ERRORS,
        PROBE_VALUE_COUNT
};

struct probe_sample {
        char pci[20];                     /* which device: its function's address */
        double values[PROBE_VALUE_COUNT]; /* NAN = not known */
        struct finding finding;           /* what the library makes of it */
};

struct probe_sample_field {
        const char *key; /* in the line */
        double minimum, maximum;
        const char *metric; /* its family; fields of one family stand together */
        enum metric_type type;
        const char *help;
        const char *label, *label_value; /* NULL = none */
        const char *dcgm;                /* the name under --compat dcgm; NULL = none */
        double dcgm_scale;               /* its unit in ours */
};

extern const struct probe_sample_field probe_sample_fields[PROBE_VALUE_COUNT];

void probe_sample_init(struct probe_sample *sample, const char *pci);

/* probe_sample_encode() - append one line with its newline. */
void probe_sample_encode(const struct probe_sample *sample, struct text *out);

/* probe_sample_decode() - @ret_refused: figures that were outside their bounds; may be NULL.
 * Return: 0, or -EBADMSG (the line is none of ours; *ret is undefined). */
int probe_sample_decode(const char *line, size_t size_bytes, struct probe_sample *ret, unsigned *ret_refused,
                        struct err *err);
