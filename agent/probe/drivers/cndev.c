/* CNDEV (libcndev): Cambricon. Most structures begin with their version, those with V2 in their name do not;
 * all are given more room than the header says. Units: megabytes, percent, degrees, watts. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/probe/probe_driver.h"

#define VERSION  6
#define MEGABYTE 1048576.0
#define RUNNING  4

struct count {
        int version;
        uint32_t number;
        char room[64];
};
struct pcie {
        uint32_t subsystem, device_id;
        uint16_t vendor, subvendor;
        uint32_t domain, bus, device, function;
        char room[128];
};
struct memory {
        int64_t total, used;
        char room[512];
};
struct utilization {
        int version, average;
        char room[1024];
};
struct temperature {
        int version, board;
        char room[1024];
};
struct power {
        int usage;
        char room[256];
};
struct card_health {
        int version, health, device, driver;
        char room[256];
};

struct cndev {
        int (*init)(int);
        int (*count)(struct count *);
        int (*handle)(int, int32_t *);
        int (*pcie)(struct pcie *, int32_t);
        int (*memory)(struct memory *, int32_t);
        int (*utilization)(struct utilization *, int32_t);
        int (*temperature)(struct temperature *, int32_t);
        int (*power)(struct power *, int32_t);
        int (*health)(struct card_health *, int32_t);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "cndevInit", offsetof(struct cndev, init), true },
        { "cndevGetDeviceCount", offsetof(struct cndev, count), true },
        { "cndevGetDeviceHandleByIndex", offsetof(struct cndev, handle), true },
        { "cndevGetPCIeInfoV2", offsetof(struct cndev, pcie), true },
        { "cndevGetMemoryUsageV2", offsetof(struct cndev, memory), false },
        { "cndevGetDeviceUtilizationInfo", offsetof(struct cndev, utilization), false },
        { "cndevGetTemperatureInfo", offsetof(struct cndev, temperature), false },
        { "cndevGetDevicePowerInfo", offsetof(struct cndev, power), false },
        { "cndevGetCardHealthState", offsetof(struct cndev, health), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct cndev *) state)->init(0);
}

static void ask(const struct cndev *c, int32_t handle, struct probe_sample *s)
{
        struct temperature temperature = { .version = VERSION };
        struct utilization utilization = { .version = VERSION };
        struct card_health health = { .version = VERSION };
        struct memory memory = { .total = 0 };
        struct power power = { .usage = 0 };

        if (c->memory != NULL && c->memory(&memory, handle) == 0) {
                s->values[PROBE_MEMORY_TOTAL] = (double) memory.total * MEGABYTE;
                s->values[PROBE_MEMORY_USED] = (double) memory.used * MEGABYTE;
        }
        if (c->utilization != NULL && c->utilization(&utilization, handle) == 0)
                s->values[PROBE_UTILIZATION_COMPUTE] = utilization.average / 100.0;
        if (c->temperature != NULL && c->temperature(&temperature, handle) == 0)
                s->values[PROBE_TEMPERATURE_CORE] = temperature.board;
        if (c->power != NULL && c->power(&power, handle) == 0)
                s->values[PROBE_POWER] = power.usage;
        if (c->health == NULL || c->health(&health, handle) != 0)
                return;
        if (health.health == 0 || health.device == 0)
                finding_add(&s->finding, FINDING_BAD, "cndev-health", "LibraryHealth",
                            "CNDEV says that it is sick");
        else if (health.driver != RUNNING)
                finding_add(&s->finding, FINDING_SILENT, "cndev-driver", "NotStarted",
                            "CNDEV says that its driver is not running yet");
}

static int cndev_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct cndev *c = state;
        struct count count = { .version = VERSION };
        int r = c->count(&count);

        if (r != 0)
                return err_set(err, -EIO, "cndevGetDeviceCount says %d", r);
        for (uint32_t i = 0; i < count.number && i < 1024; i++) {
                struct pcie pcie = { 0 };
                struct probe_sample s;
                int32_t handle = 0;
                char pci[20];

                if (c->handle((int) i, &handle) != 0 || c->pcie(&pcie, handle) != 0)
                        continue;
                probe_driver_pci_format(pcie.domain, pcie.bus, pcie.device, pcie.function, pci);
                probe_sample_init(&s, pci);
                ask(c, handle, &s);
                take(userdata, &s);
        }
        return 0;
}

const struct probe_driver_calls cndev_calls = {
        .functions = functions, .state_bytes = sizeof(struct cndev), .start = start, .sample = cndev_sample
};
