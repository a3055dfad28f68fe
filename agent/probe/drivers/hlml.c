/* HLML (libhlml): Intel Gaudi. After NVML's manner, with its own order of the memory structure. Power in mW.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_driver.h"

enum { HLML_OK = 0, HLML_LOST = 15 };

struct pci_info {
        uint32_t bus;
        char bus_id[15];
        uint32_t device, domain, pci_device_id;
        char room[256];
};
struct memory {
        unsigned long long free, total, used;
};
struct utilization {
        uint32_t aip, room[15];
};

struct hlml {
        int (*init)(void);
        int (*count)(unsigned *);
        int (*handle)(unsigned, void **);
        int (*pci)(void *, struct pci_info *);
        int (*memory)(void *, struct memory *);
        int (*utilization)(void *, struct utilization *);
        int (*temperature)(void *, int, unsigned *);
        int (*power)(void *, unsigned *);
        int (*replay)(void *, unsigned *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "hlml_init", offsetof(struct hlml, init), true },
        { "hlml_device_get_count", offsetof(struct hlml, count), true },
        { "hlml_device_get_handle_by_index", offsetof(struct hlml, handle), true },
        { "hlml_device_get_pci_info", offsetof(struct hlml, pci), true },
        { "hlml_device_get_memory_info", offsetof(struct hlml, memory), false },
        { "hlml_device_get_utilization_rates", offsetof(struct hlml, utilization), false },
        { "hlml_device_get_temperature", offsetof(struct hlml, temperature), false },
        { "hlml_device_get_power_usage", offsetof(struct hlml, power), false },
        { "hlml_device_get_pcie_replay_counter", offsetof(struct hlml, replay), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct hlml *) state)->init();
}

static bool is_ok(struct probe_sample *s, int r)
{
        if (r == HLML_LOST)
                finding_add(&s->finding, FINDING_BAD, "library-lost", "DeviceLost",
                            "the vendor's library says that it is lost");
        return r == HLML_OK;
}

static void ask(const struct hlml *h, void *device, struct probe_sample *s)
{
        struct utilization utilization = { 0 };
        struct memory memory = { 0 };
        unsigned value;

        if (h->memory != NULL && is_ok(s, h->memory(device, &memory))) {
                s->values[PROBE_MEMORY_TOTAL] = (double) memory.total;
                s->values[PROBE_MEMORY_USED] = (double) memory.used;
        }
        if (h->utilization != NULL && is_ok(s, h->utilization(device, &utilization)))
                s->values[PROBE_UTILIZATION_COMPUTE] = utilization.aip / 100.0;
        if (h->temperature != NULL && is_ok(s, h->temperature(device, 0, &value)))
                s->values[PROBE_TEMPERATURE_CORE] = value;
        if (h->power != NULL && is_ok(s, h->power(device, &value)))
                s->values[PROBE_POWER] = value / 1000.0;
        if (h->replay != NULL && is_ok(s, h->replay(device, &value)))
                s->values[PROBE_PCIE_REPLAY] = value;
}

static int hlml_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct hlml *h = state;
        unsigned count = 0;
        int r = h->count(&count);

        if (r != HLML_OK)
                return err_set(err, -EIO, "hlml_device_get_count says %d", r);
        for (unsigned i = 0; i < count && i < 1024; i++) {
                struct pci_info info = { .bus = 0 };
                struct probe_sample s;
                void *device = NULL;
                char id[16], pci[20];

                if (h->handle(i, &device) != HLML_OK || h->pci(device, &info) != HLML_OK)
                        continue;
                memcpy(id, info.bus_id, sizeof(info.bus_id)); /* 15 bytes, perhaps without a NUL */
                id[sizeof(info.bus_id)] = '\0';
                probe_driver_pci_parse(id, pci);
                if (pci[0] == '\0')
                        continue;
                probe_sample_init(&s, pci);
                ask(h, device, &s);
                take(userdata, &s);
        }
        return 0;
}

const struct probe_driver_calls hlml_calls = {
        .functions = functions, .state_bytes = sizeof(struct hlml), .start = start, .sample = hlml_sample
};
