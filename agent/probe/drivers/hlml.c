/* HLML (libhlml): Intel Gaudi. After NVML's manner, with its own order of the memory structure. Power in mW.
 */
#include <errno.h>
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

static int hlml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err)
{
        struct hlml *h = calloc(1, sizeof(*h));
        int r;

        if (h == NULL)
                return err_set(err, -ENOMEM, "no memory");
        (void) driver;
        (void) probe_driver_symbol(library, "hlml_device_get_memory_info", &h->memory);
        (void) probe_driver_symbol(library, "hlml_device_get_utilization_rates", &h->utilization);
        (void) probe_driver_symbol(library, "hlml_device_get_temperature", &h->temperature);
        (void) probe_driver_symbol(library, "hlml_device_get_power_usage", &h->power);
        (void) probe_driver_symbol(library, "hlml_device_get_pcie_replay_counter", &h->replay);
        if (!probe_driver_symbol(library, "hlml_init", &h->init) ||
            !probe_driver_symbol(library, "hlml_device_get_count", &h->count) ||
            !probe_driver_symbol(library, "hlml_device_get_handle_by_index", &h->handle) ||
            !probe_driver_symbol(library, "hlml_device_get_pci_info", &h->pci)) {
                free(h);
                return err_set(err, -ENOENT,
                               "the library has no hlml_init, device_get_count, handle, pci_info");
        }
        r = h->init();
        if (r != HLML_OK) {
                free(h);
                return err_set(err, -EIO, "hlml_init says %d", r);
        }
        *ret_state = h;
        return 0;
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

const struct probe_driver_calls hlml_calls = { .open = hlml_open, .sample = hlml_sample };
