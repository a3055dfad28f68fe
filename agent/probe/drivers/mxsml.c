/* MXSML (libmxsml): MetaX. The count is the return value of a function without arguments. Units: KiB of
 * memory, hundredths of a degree, mW (the sum of the board's ways). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int mxsml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err)
{
        struct mxsml *m = calloc(1, sizeof(*m));
        int r;

        if (m == NULL)
                return err_set(err, -ENOMEM, "no memory");
        (void) driver;
        (void) probe_driver_symbol(library, "mxSmlGetMemoryInfo", &m->memory);
        (void) probe_driver_symbol(library, "mxSmlGetDeviceIpUsage", &m->usage);
        (void) probe_driver_symbol(library, "mxSmlGetTemperatureInfo", &m->temperature);
        (void) probe_driver_symbol(library, "mxSmlGetBoardPowerInfo", &m->power);
        if (!probe_driver_symbol(library, "mxSmlInit", &m->init) ||
            !probe_driver_symbol(library, "mxSmlGetDeviceCount", &m->count) ||
            !probe_driver_symbol(library, "mxSmlGetDeviceInfo", &m->info)) {
                free(m);
                return err_set(err, -ENOENT, "the library has no mxSmlInit, GetDeviceCount, GetDeviceInfo");
        }
        r = m->init();
        if (r != 0) {
                free(m);
                return err_set(err, -EIO, "mxSmlInit says %d", r);
        }
        *ret_state = m;
        return 0;
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

const struct probe_driver_calls mxsml_calls = { .open = mxsml_open, .sample = mxsml_sample };
