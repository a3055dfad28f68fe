/* MXSML (libmxsml): MetaX. The count is the return value of a function without arguments. Units: KiB of
 * memory, hundredths of a degree, mW (the sum of the board's ways). */
#include <stddef.h>
#include <stdlib.h>

#include "agent/probe/probe_driver.h"

#define XCORE    4
#define WAYS_MAX 16

struct device_info {
        uint32_t device_id;
        int type;
        char bdf[32];
        char room[512];
};
struct memory {
        long visible_total, visible_used, total, used, xtt_total, xtt_used;
};
struct way {
        uint32_t voltage, current, power;
};

struct mxsml {
        int (*init)(void);
        unsigned (*count)(void);
        int (*info)(unsigned, struct device_info *);
        int (*memory)(unsigned, struct memory *);
        int (*usage)(unsigned, int, int *);
        int (*temperature)(unsigned, int, int *);
        int (*power)(unsigned, uint32_t *, struct way *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "mxSmlInit", offsetof(struct mxsml, init), true },
        { "mxSmlGetDeviceCount", offsetof(struct mxsml, count), true },
        { "mxSmlGetDeviceInfo", offsetof(struct mxsml, info), true },
        { "mxSmlGetMemoryInfo", offsetof(struct mxsml, memory), false },
        { "mxSmlGetDeviceIpUsage", offsetof(struct mxsml, usage), false },
        { "mxSmlGetTemperatureInfo", offsetof(struct mxsml, temperature), false },
        { "mxSmlGetBoardPowerInfo", offsetof(struct mxsml, power), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct mxsml *) state)->init();
}

static void ask(const struct mxsml *m, unsigned i, struct probe_sample *s)
{
        struct way ways[WAYS_MAX] = { { 0 } };
        struct memory memory = { 0 };
        uint32_t count = WAYS_MAX;
        double power = 0;
        int value;

        if (m->memory != NULL && m->memory(i, &memory) == 0) {
                s->values[PROBE_MEMORY_TOTAL] = (double) memory.total * 1024;
                s->values[PROBE_MEMORY_USED] = (double) memory.used * 1024;
        }
        if (m->usage != NULL && m->usage(i, XCORE, &value) == 0)
                s->values[PROBE_UTILIZATION_COMPUTE] = value / 100.0;
        if (m->temperature != NULL && m->temperature(i, 0, &value) == 0)
                s->values[PROBE_TEMPERATURE_CORE] = value / 100.0;
        if (m->power == NULL || m->power(i, &count, ways) != 0)
                return;
        for (uint32_t k = 0; k < count && k < WAYS_MAX; k++)
                power += ways[k].power / 1000.0;
        s->values[PROBE_POWER] = power;
}

static int mxsml_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct mxsml *m = state;
        unsigned count = m->count();

        (void) err;
        for (unsigned i = 0; i < count && i < 1024; i++) {
                struct device_info info = { .bdf = "" };
                struct probe_sample s;
                char pci[20];

                if (m->info(i, &info) != 0)
                        continue;
                info.bdf[sizeof(info.bdf) - 1] = '\0';
                probe_driver_pci_parse(info.bdf, pci);
                if (pci[0] == '\0')
                        continue;
                probe_sample_init(&s, pci);
                ask(m, i, &s);
                take(userdata, &s);
        }
        return 0;
}

const struct probe_driver_calls mxsml_calls = {
        .functions = functions, .state_bytes = sizeof(struct mxsml), .start = start, .sample = mxsml_sample
};
