/* AMD SMI (libamd_smi): where ROCm SMI is not installed. Asked is only what has one layout in every release:
 * bytes, percent, Celsius, counts. Power is left to sysfs: its structure has changed three times. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/probe/probe_driver.h"

enum { AMDSMI_OK = 0, AMDSMI_GPUS = 2, VRAM = 0, EDGE = 0, HOTSPOT = 1, MEMORY = 2, CURRENT = 0, MAX = 64 };

struct usage {
        uint32_t gfx, memory, media, room[61];
};
struct ecc {
        uint64_t correctable, uncorrectable, deferred, room[29];
};

struct amd_smi {
        int (*init)(uint64_t flags);
        int (*sockets)(uint32_t *, void **);
        int (*processors)(void *, uint32_t *, void **);
        int (*bdf)(void *, uint64_t *); /* function 3 bits, device 5, bus 8, domain 48 */
        int (*memory_total)(void *, int, uint64_t *);
        int (*memory_used)(void *, int, uint64_t *);
        int (*usage)(void *, struct usage *);
        int (*temperature)(void *, int, int, int64_t *);
        int (*ecc)(void *, struct ecc *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "amdsmi_init", offsetof(struct amd_smi, init), true },
        { "amdsmi_get_socket_handles", offsetof(struct amd_smi, sockets), true },
        { "amdsmi_get_processor_handles", offsetof(struct amd_smi, processors), true },
        { "amdsmi_get_gpu_device_bdf", offsetof(struct amd_smi, bdf), true },
        { "amdsmi_get_gpu_memory_total", offsetof(struct amd_smi, memory_total), false },
        { "amdsmi_get_gpu_memory_usage", offsetof(struct amd_smi, memory_used), false },
        { "amdsmi_get_gpu_activity", offsetof(struct amd_smi, usage), false },
        { "amdsmi_get_temp_metric", offsetof(struct amd_smi, temperature), false },
        { "amdsmi_get_gpu_total_ecc_count", offsetof(struct amd_smi, ecc), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct amd_smi *) state)->init(AMDSMI_GPUS);
}

static void ask(const struct amd_smi *s, void *device, struct probe_sample *sample)
{
        struct usage usage = { 0 };
        struct ecc ecc = { 0 };
        uint64_t bytes;
        int64_t celsius;

        if (s->memory_total != NULL && s->memory_total(device, VRAM, &bytes) == AMDSMI_OK)
                sample->values[PROBE_MEMORY_TOTAL] = (double) bytes;
        if (s->memory_used != NULL && s->memory_used(device, VRAM, &bytes) == AMDSMI_OK)
                sample->values[PROBE_MEMORY_USED] = (double) bytes;
        if (s->usage != NULL && s->usage(device, &usage) == AMDSMI_OK) {
                sample->values[PROBE_UTILIZATION_COMPUTE] = usage.gfx / 100.0;
                sample->values[PROBE_UTILIZATION_MEMORY] = usage.memory / 100.0;
        }
        if (s->temperature != NULL && (s->temperature(device, EDGE, CURRENT, &celsius) == AMDSMI_OK ||
                                       s->temperature(device, HOTSPOT, CURRENT, &celsius) == AMDSMI_OK))
                sample->values[PROBE_TEMPERATURE_CORE] = (double) celsius;
        if (s->temperature != NULL && s->temperature(device, MEMORY, CURRENT, &celsius) == AMDSMI_OK)
                sample->values[PROBE_TEMPERATURE_MEMORY] = (double) celsius;
        if (s->ecc != NULL && s->ecc(device, &ecc) == AMDSMI_OK) {
                sample->values[PROBE_ECC_CORRECTABLE] = (double) ecc.correctable;
                sample->values[PROBE_ECC_UNCORRECTABLE] = (double) ecc.uncorrectable;
        }
}

static void sample_socket(const struct amd_smi *s, void *socket, probe_driver_take take, void *userdata)
{
        void *devices[MAX] = { NULL };
        uint32_t count = MAX;

        if (s->processors(socket, &count, devices) != AMDSMI_OK)
                return;
        for (uint32_t i = 0; i < count && i < MAX; i++) {
                struct probe_sample sample;
                uint64_t bdf;
                char pci[20];

                if (s->bdf(devices[i], &bdf) != AMDSMI_OK)
                        continue;
                probe_driver_pci_format((unsigned) (bdf >> 16), (unsigned) (bdf >> 8), (unsigned) (bdf >> 3),
                                        (unsigned) bdf, pci);
                probe_sample_init(&sample, pci);
                ask(s, devices[i], &sample);
                take(userdata, &sample);
        }
}

static int amd_smi_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct amd_smi *s = state;
        void *sockets[MAX] = { NULL };
        uint32_t count = MAX;
        int r = s->sockets(&count, sockets);

        if (r != AMDSMI_OK)
                return err_set(err, -EIO, "amdsmi_get_socket_handles says %d", r);
        for (uint32_t i = 0; i < count && i < MAX; i++)
                sample_socket(s, sockets[i], take, userdata);
        return 0;
}

const struct probe_driver_calls amd_smi_calls = { .functions = functions,
                                                  .state_bytes = sizeof(struct amd_smi),
                                                  .start = start,
                                                  .sample = amd_smi_sample };
