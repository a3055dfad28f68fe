/* MTML (libmtml): Moore Threads. Objects are pointers that live as long as the child. Power in mW, memory in
 * bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_driver.h"

#define DEVICES 64

enum { MTML_OK = 0, MTML_LOST = 669 };

struct pci_info {
        char sbdf[32];
        char room[256];
};

struct opened {
        void *device, *gpu, *memory;
        char pci[20];
};

struct mtml {
        int (*init)(void **);
        int (*count)(void *, unsigned *);
        int (*device)(void *, unsigned, void **);
        int (*pci)(void *, struct pci_info *);
        int (*power)(void *, unsigned *);
        int (*gpu)(void *, void **);
        int (*utilization)(void *, unsigned *);
        int (*temperature)(void *, unsigned *);
        int (*memory)(void *, void **);
        int (*total)(void *, unsigned long long *);
        int (*used)(void *, unsigned long long *);
        struct opened opened[DEVICES];
        unsigned opened_count;
};

static void open_devices(struct mtml *m, void *library)
{
        unsigned count = 0;

        if (m->count(library, &count) != MTML_OK)
                return;
        for (unsigned i = 0; i < count && m->opened_count < DEVICES; i++) {
                struct opened *o = &m->opened[m->opened_count];
                struct pci_info info = { .sbdf = "" };

                if (m->device(library, i, &o->device) != MTML_OK || m->pci(o->device, &info) != MTML_OK)
                        continue;
                info.sbdf[sizeof(info.sbdf) - 1] = '\0';
                probe_driver_pci_parse(info.sbdf, o->pci);
                if (o->pci[0] == '\0')
                        continue;
                if (m->gpu == NULL || m->gpu(o->device, &o->gpu) != MTML_OK)
                        o->gpu = NULL;
                if (m->memory == NULL || m->memory(o->device, &o->memory) != MTML_OK)
                        o->memory = NULL;
                m->opened_count++;
        }
}

static int mtml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err)
{
        struct mtml *m = calloc(1, sizeof(*m));
        void *object = NULL;
        int r;

        if (m == NULL)
                return err_set(err, -ENOMEM, "no memory");
        (void) driver;
        (void) probe_driver_symbol(library, "mtmlDeviceGetPowerUsage", &m->power);
        (void) probe_driver_symbol(library, "mtmlDeviceInitGpu", &m->gpu);
        (void) probe_driver_symbol(library, "mtmlGpuGetUtilization", &m->utilization);
        (void) probe_driver_symbol(library, "mtmlGpuGetTemperature", &m->temperature);
        (void) probe_driver_symbol(library, "mtmlDeviceInitMemory", &m->memory);
        (void) probe_driver_symbol(library, "mtmlMemoryGetTotal", &m->total);
        (void) probe_driver_symbol(library, "mtmlMemoryGetUsed", &m->used);
        if (!probe_driver_symbol(library, "mtmlLibraryInit", &m->init) ||
            !probe_driver_symbol(library, "mtmlLibraryCountDevice", &m->count) ||
            !probe_driver_symbol(library, "mtmlLibraryInitDeviceByIndex", &m->device) ||
            !probe_driver_symbol(library, "mtmlDeviceGetPciInfo", &m->pci)) {
                free(m);
                return err_set(err, -ENOENT,
                               "the library has no mtmlLibraryInit, CountDevice, DeviceGetPciInfo");
        }
        r = m->init(&object);
        if (r != MTML_OK) {
                free(m);
                return err_set(err, -EIO, "mtmlLibraryInit says %d", r);
        }
        open_devices(m, object);
        *ret_state = m;
        return 0;
}

static bool is_ok(struct probe_sample *s, int r)
{
        if (r == MTML_LOST)
                finding_add(&s->finding, FINDING_BAD, "library-lost", "DeviceLost",
                            "the vendor's library says that it is lost");
        return r == MTML_OK;
}

static int mtml_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct mtml *m = state;

        (void) err;
        for (unsigned i = 0; i < m->opened_count; i++) {
                const struct opened *o = &m->opened[i];
                unsigned long long bytes;
                struct probe_sample s;
                unsigned value;

                probe_sample_init(&s, o->pci);
                if (m->power != NULL && is_ok(&s, m->power(o->device, &value)))
                        s.values[PROBE_POWER] = value / 1000.0;
                if (o->gpu != NULL && m->utilization != NULL && is_ok(&s, m->utilization(o->gpu, &value)))
                        s.values[PROBE_UTILIZATION_COMPUTE] = value / 100.0;
                if (o->gpu != NULL && m->temperature != NULL && is_ok(&s, m->temperature(o->gpu, &value)))
                        s.values[PROBE_TEMPERATURE_CORE] = value;
                if (o->memory != NULL && m->total != NULL && is_ok(&s, m->total(o->memory, &bytes)))
                        s.values[PROBE_MEMORY_TOTAL] = (double) bytes;
                if (o->memory != NULL && m->used != NULL && is_ok(&s, m->used(o->memory, &bytes)))
                        s.values[PROBE_MEMORY_USED] = (double) bytes;
                take(userdata, &s);
        }
        return 0;
}

const struct probe_driver_calls mtml_calls = { .open = mtml_open, .sample = mtml_sample };
