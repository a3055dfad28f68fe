/* EFML (libefml): Enflame. Devices by index; floats in Celsius, watts and percent. The memory in use is not
 * asked: its unit is not certain. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/probe/probe_driver.h"

enum { EFML_OK = 0, NAME_BYTES = 128 };

struct info {
        char name[NAME_BYTES];
        uint32_t vendor, device, domain, bus, slot, function, logical;
        char room[256];
};
struct power {
        float capability, consumption;
        char room[64];
};
struct memory {
        uint64_t total_bytes;
        uint32_t used;
        char room[64];
};
struct thermal { /* version 2; the one before begins alike: chip, memory, another part of it */
        float chip, memory, board;
        char room[64];
};
struct ecc {
        bool enabled, pending, blacklisting;
        uint32_t single_bit, double_bit;
        char room[64];
};

struct efml {
        int (*init)(bool no_driver);
        int (*count)(uint32_t *);
        int (*info)(uint32_t, struct info *);
        int (*memory)(uint32_t, struct memory *);
        int (*usage)(uint32_t, float *);
        int (*power)(uint32_t, struct power *);
        int (*thermal)(uint32_t, struct thermal *);
        int (*ecc)(uint32_t, struct ecc *);
        int (*health)(uint32_t, bool *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "EfmlInit", offsetof(struct efml, init), true },
        { "EfmlGetDevCount", offsetof(struct efml, count), true },
        { "EfmlGetDevInfo", offsetof(struct efml, info), true },
        { "EfmlGetDevMem", offsetof(struct efml, memory), false },
        { "EfmlGetDevDtuUsage", offsetof(struct efml, usage), false },
        { "EfmlGetDevPwr", offsetof(struct efml, power), false },
        { "EfmlGetDevEccStatus", offsetof(struct efml, ecc), false },
        { "EfmlGetDevHealth", offsetof(struct efml, health), false },
        { "EfmlGetDevTempV2", offsetof(struct efml, thermal), false },
        { "EfmlGetDevTemp", offsetof(struct efml, thermal), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct efml *) state)->init(false);
}

static void ask(const struct efml *e, uint32_t i, struct probe_sample *s)
{
        struct memory memory = { 0 };
        struct thermal thermal = { 0 };
        struct power power = { 0 };
        struct ecc ecc = { 0 };
        float percent = 0;
        bool health = true;

        if (e->memory != NULL && e->memory(i, &memory) == EFML_OK)
                s->values[PROBE_MEMORY_TOTAL] = (double) memory.total_bytes;
        if (e->usage != NULL && e->usage(i, &percent) == EFML_OK)
                s->values[PROBE_UTILIZATION_COMPUTE] = (double) percent / 100;
        if (e->power != NULL && e->power(i, &power) == EFML_OK) {
                s->values[PROBE_POWER] = (double) power.consumption;
                s->values[PROBE_POWER_LIMIT] = (double) power.capability;
        }
        if (e->thermal != NULL && e->thermal(i, &thermal) == EFML_OK) {
                s->values[PROBE_TEMPERATURE_CORE] = (double) thermal.chip;
                s->values[PROBE_TEMPERATURE_MEMORY] = (double) thermal.memory;
        }
        if (e->ecc != NULL && e->ecc(i, &ecc) == EFML_OK && ecc.enabled) {
                s->values[PROBE_ECC_CORRECTABLE] = ecc.single_bit;
                s->values[PROBE_ECC_UNCORRECTABLE] = ecc.double_bit;
        }
        if (e->health != NULL && e->health(i, &health) == EFML_OK && !health)
                finding_add(&s->finding, FINDING_BAD, "efml-health", "LibraryHealth",
                            "EFML calls it unhealthy");
}

static int efml_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct efml *e = state;
        uint32_t count = 0;
        int r = e->count(&count);

        if (r != EFML_OK)
                return err_set(err, -EIO, "EfmlGetDevCount says %d", r);
        for (uint32_t i = 0; i < count && i < 1024; i++) {
                struct info info = { .bus = 0 };
                struct probe_sample s;
                char pci[20];

                if (e->info(i, &info) != EFML_OK)
                        continue;
                probe_driver_pci_format(info.domain, info.bus, info.slot, info.function, pci);
                probe_sample_init(&s, pci);
                ask(e, i, &s);
                take(userdata, &s);
        }
        return 0;
}

const struct probe_driver_calls efml_calls = {
        .functions = functions, .state_bytes = sizeof(struct efml), .start = start, .sample = efml_sample
};
