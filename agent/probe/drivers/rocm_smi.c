/* ROCm SMI (librocm_smi64): AMD and Hygon. Units: bytes, percent, millidegrees, microwatts, hertz. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_driver.h"

enum { RSMI_OK = 0, RSMI_VRAM = 0, RSMI_CURRENT = 0, RSMI_EDGE = 0, RSMI_MEMORY = 2, RSMI_UMC = 1 };
enum { RSMI_CLOCK_CORE = 0, RSMI_CLOCK_MEMORY = 4, CLOCKS_MAX = 33, CLOCK_WORDS = 128 };

struct ecc {
        uint64_t corrected, uncorrected;
};

struct rocm_smi {
        int (*init)(uint64_t);
        int (*count)(uint32_t *);
        int (*pci)(uint32_t, uint64_t *);
        int (*memory_total)(uint32_t, int, uint64_t *);
        int (*memory_used)(uint32_t, int, uint64_t *);
        int (*busy)(uint32_t, uint32_t *);
        int (*temperature)(uint32_t, uint32_t, int, int64_t *);
        int (*power)(uint32_t, uint32_t, uint64_t *);
        int (*ecc)(uint32_t, int, struct ecc *);
        int (*clock)(uint32_t, int, void *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "rsmi_init", offsetof(struct rocm_smi, init), true },
        { "rsmi_num_monitor_devices", offsetof(struct rocm_smi, count), true },
        { "rsmi_dev_pci_id_get", offsetof(struct rocm_smi, pci), true },
        { "rsmi_dev_memory_total_get", offsetof(struct rocm_smi, memory_total), false },
        { "rsmi_dev_memory_usage_get", offsetof(struct rocm_smi, memory_used), false },
        { "rsmi_dev_busy_percent_get", offsetof(struct rocm_smi, busy), false },
        { "rsmi_dev_temp_metric_get", offsetof(struct rocm_smi, temperature), false },
        { "rsmi_dev_power_ave_get", offsetof(struct rocm_smi, power), false },
        { "rsmi_dev_ecc_count_get", offsetof(struct rocm_smi, ecc), false },
        { "rsmi_dev_gpu_clk_freq_get", offsetof(struct rocm_smi, clock), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct rocm_smi *) state)->init(0);
}

/* The current one of a clock's frequencies. Their structure is { u32 count, current; u64 hertz[] }; later
 * releases have a flag in front: { bool; u32 count, current; u64 hertz[] }. Where the third word is too large
 * for a place in the list it is the low half of the first frequency: the old one. Return: hertz; not a
 * number: it does not say. */
static double clock_hertz(const struct rocm_smi *s, uint32_t i, int clock)
{
        _Alignas(uint64_t) uint32_t words[CLOCK_WORDS] = { 0 };
        uint32_t count, current;
        uint64_t hertz;
        bool old;

        if (s->clock == NULL || s->clock(i, clock, words) != RSMI_OK)
                return NAN;
        old = words[2] > CLOCKS_MAX;
        count = words[old ? 0 : 1];
        current = words[old ? 1 : 2];
        if (count > CLOCKS_MAX || current >= count)
                return NAN;
        memcpy(&hertz, &words[(old ? 2 : 4) + 2 * current], sizeof(hertz));
        return (double) hertz;
}

static void ask(const struct rocm_smi *s, uint32_t i, struct probe_sample *sample)
{
        struct ecc ecc = { 0 };
        uint64_t value;
        uint32_t percent;
        int64_t millidegrees;

        if (s->memory_total != NULL && s->memory_total(i, RSMI_VRAM, &value) == RSMI_OK)
                sample->values[PROBE_MEMORY_TOTAL] = (double) value;
        if (s->memory_used != NULL && s->memory_used(i, RSMI_VRAM, &value) == RSMI_OK)
                sample->values[PROBE_MEMORY_USED] = (double) value;
        if (s->busy != NULL && s->busy(i, &percent) == RSMI_OK)
                sample->values[PROBE_UTILIZATION_COMPUTE] = percent / 100.0;
        if (s->temperature != NULL && s->temperature(i, RSMI_EDGE, RSMI_CURRENT, &millidegrees) == RSMI_OK)
                sample->values[PROBE_TEMPERATURE_CORE] = (double) millidegrees / 1000;
        if (s->temperature != NULL && s->temperature(i, RSMI_MEMORY, RSMI_CURRENT, &millidegrees) == RSMI_OK)
                sample->values[PROBE_TEMPERATURE_MEMORY] = (double) millidegrees / 1000;
        if (s->power != NULL && s->power(i, 0, &value) == RSMI_OK)
                sample->values[PROBE_POWER] = (double) value / 1e6;
        sample->values[PROBE_CLOCK_CORE] = clock_hertz(s, i, RSMI_CLOCK_CORE);
        sample->values[PROBE_CLOCK_MEMORY] = clock_hertz(s, i, RSMI_CLOCK_MEMORY);
        if (s->ecc != NULL && s->ecc(i, RSMI_UMC, &ecc) == RSMI_OK) {
                sample->values[PROBE_ECC_CORRECTABLE] = (double) ecc.corrected;
                sample->values[PROBE_ECC_UNCORRECTABLE] = (double) ecc.uncorrected;
        }
}

static int rocm_smi_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct rocm_smi *s = state;
        uint32_t count = 0;
        int r = s->count(&count);

        if (r != RSMI_OK)
                return err_set(err, -EIO, "rsmi_num_monitor_devices says %d", r);
        for (uint32_t i = 0; i < count && i < 1024; i++) {
                struct probe_sample sample;
                uint64_t id;
                char pci[20];

                if (s->pci(i, &id) != RSMI_OK)
                        continue;
                probe_driver_pci_format((unsigned) (id >> 32), (unsigned) (id >> 8), (unsigned) (id >> 3),
                                        (unsigned) id, pci);
                probe_sample_init(&sample, pci);
                ask(s, i, &sample);
                take(userdata, &sample);
        }
        return 0;
}

const struct probe_driver_calls rocm_smi_calls = { .functions = functions,
                                                   .state_bytes = sizeof(struct rocm_smi),
                                                   .start = start,
                                                   .sample = rocm_smi_sample };
