/* MTML (libmtml): Moore Threads. Objects are pointers that live as long as the child. Power in mW, memory in
 * bytes. */
#include <stddef.h>
#include <stdlib.h>

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

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "mtmlLibraryInit", offsetof(struct mtml, init), true },
        { "mtmlLibraryCountDevice", offsetof(struct mtml, count), true },
        { "mtmlLibraryInitDeviceByIndex", offsetof(struct mtml, device), true },
        { "mtmlDeviceGetPciInfo", offsetof(struct mtml, pci), true },
        { "mtmlDeviceGetPowerUsage", offsetof(struct mtml, power), false },
        { "mtmlDeviceInitGpu", offsetof(struct mtml, gpu), false },
        { "mtmlGpuGetUtilization", offsetof(struct mtml, utilization), false },
        { "mtmlGpuGetTemperature", offsetof(struct mtml, temperature), false },
        { "mtmlDeviceInitMemory", offsetof(struct mtml, memory), false },
        { "mtmlMemoryGetTotal", offsetof(struct mtml, total), false },
        { "mtmlMemoryGetUsed", offsetof(struct mtml, used), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        struct mtml *m = state;
        void *object = NULL;
        int r = m->init(&object);

        if (r == MTML_OK)
                open_devices(m, object);
        return r;
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

const struct probe_driver_calls mtml_calls = {
        .functions = functions, .state_bytes = sizeof(struct mtml), .start = start, .sample = mtml_sample
};
