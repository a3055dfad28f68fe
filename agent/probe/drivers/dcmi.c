/* DCMI (libdcmi): Huawei Ascend; devices are addressed by card and number on the card. Units: percent,
 * degrees, tenths of a watt, megabytes, megahertz. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/probe/probe_driver.h"

#define CARDS_MAX        64
#define ON_CARD_MAX      4
#define MEGABYTE         1048576.0
#define NOT_STARTED      0xffffffffu
#define UTILIZATION_CORE 2
#define ECC_HBM          2
#define FREQUENCY_CORE   7

struct pcie {
        uint32_t vendor, subvendor, device_id, subdevice;
        int domain;
        uint32_t bus, device, function;
        unsigned char reserved[64];
};
struct hbm {
        uint64_t size;
        uint32_t frequency;
        uint64_t used;
        int temperature;
        uint32_t bandwidth;
        unsigned char reserved[64];
};
struct ecc {
        int enabled;
        uint32_t single, double_, total_single, total_double, reserved[16];
};

struct dcmi {
        int (*init)(void);
        int (*cards)(int *, int *, int);
        int (*on_card)(int, int *);
        int (*pcie)(int, int, struct pcie *);
        int (*utilization)(int, int, int, uint32_t *);
        int (*temperature)(int, int, int *);
        int (*power)(int, int, int *);
        int (*hbm)(int, int, struct hbm *);
        int (*frequency)(int, int, int, uint32_t *);
        int (*ecc)(int, int, int, struct ecc *);
        int (*health)(int, int, uint32_t *);
};

/* clang-format off */
static const struct probe_driver_function functions[] = {
        { "dcmi_init", offsetof(struct dcmi, init), true },
        { "dcmi_get_card_list", offsetof(struct dcmi, cards), true },
        { "dcmi_get_device_num_in_card", offsetof(struct dcmi, on_card), true },
        { "dcmi_get_device_pcie_info_v2", offsetof(struct dcmi, pcie), true },
        { "dcmi_get_device_utilization_rate", offsetof(struct dcmi, utilization), false },
        { "dcmi_get_device_temperature", offsetof(struct dcmi, temperature), false },
        { "dcmi_get_device_power_info", offsetof(struct dcmi, power), false },
        { "dcmi_get_device_hbm_info", offsetof(struct dcmi, hbm), false },
        { "dcmi_get_device_frequency", offsetof(struct dcmi, frequency), false },
        { "dcmi_get_device_ecc_info", offsetof(struct dcmi, ecc), false },
        { "dcmi_get_device_health", offsetof(struct dcmi, health), false },
        { NULL, 0, false },
};
/* clang-format on */

static int start(void *state)
{
        return ((struct dcmi *) state)->init();
}

static void ask(const struct dcmi *d, int card, int device, struct probe_sample *s)
{
        struct hbm hbm = { 0 };
        struct ecc ecc = { 0 };
        uint32_t percent, megahertz;
        int value;

        if (d->utilization != NULL && d->utilization(card, device, UTILIZATION_CORE, &percent) == 0)
                s->values[PROBE_UTILIZATION_COMPUTE] = percent / 100.0;
        if (d->temperature != NULL && d->temperature(card, device, &value) == 0)
                s->values[PROBE_TEMPERATURE_CORE] = value;
        if (d->power != NULL && d->power(card, device, &value) == 0)
                s->values[PROBE_POWER] = value / 10.0;
        if (d->hbm != NULL && d->hbm(card, device, &hbm) == 0 && hbm.size > 0) {
                s->values[PROBE_MEMORY_TOTAL] = (double) hbm.size * MEGABYTE;
                s->values[PROBE_MEMORY_USED] = (double) hbm.used * MEGABYTE;
                s->values[PROBE_TEMPERATURE_MEMORY] = hbm.temperature;
                s->values[PROBE_UTILIZATION_MEMORY] = hbm.bandwidth / 100.0;
                if (hbm.frequency > 0)
                        s->values[PROBE_CLOCK_MEMORY] = hbm.frequency * 1e6;
        }
        if (d->frequency != NULL && d->frequency(card, device, FREQUENCY_CORE, &megahertz) == 0)
                s->values[PROBE_CLOCK_CORE] = megahertz * 1e6;
        if (d->ecc != NULL && d->ecc(card, device, ECC_HBM, &ecc) == 0) {
                s->values[PROBE_ECC_CORRECTABLE] = ecc.single;
                s->values[PROBE_ECC_UNCORRECTABLE] = ecc.double_;
        }
}

/* 0 well, 1 minor alarm, 2 major, 3 critical. */
static void ask_health(const struct dcmi *d, int card, int device, struct probe_sample *s)
{
        uint32_t health = 0;

        if (d->health == NULL || d->health(card, device, &health) != 0 || health < 2)
                return;
        if (health == NOT_STARTED)
                finding_add(&s->finding, FINDING_SILENT, "dcmi-health", "NotStarted",
                            "DCMI says that it has not started");
        else
                finding_add(&s->finding, health == 2 ? FINDING_DEGRADED : FINDING_BAD, "dcmi-health",
                            "LibraryHealth", "DCMI reports %s",
                            health == 2 ? "a major alarm" : "a critical alarm");
}

static int dcmi_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct dcmi *d = state;
        int cards[CARDS_MAX], count = 0, r = d->cards(&count, cards, CARDS_MAX);

        if (r != 0)
                return err_set(err, -EIO, "dcmi_get_card_list says %d", r);
        for (int i = 0; i < count && i < CARDS_MAX; i++) {
                int devices = 0;

                if (d->on_card(cards[i], &devices) != 0)
                        continue;
                for (int k = 0; k < devices && k < ON_CARD_MAX; k++) {
                        struct pcie pcie = { 0 };
                        struct probe_sample s;
                        char pci[20];

                        if (d->pcie(cards[i], k, &pcie) != 0)
                                continue;
                        probe_driver_pci_format((unsigned) pcie.domain, pcie.bus, pcie.device, pcie.function,
                                                pci);
                        probe_sample_init(&s, pci);
                        ask(d, cards[i], k, &s);
                        ask_health(d, cards[i], k, &s);
                        take(userdata, &s);
                }
        }
        return 0;
}

const struct probe_driver_calls dcmi_calls = {
        .functions = functions, .state_bytes = sizeof(struct dcmi), .start = start, .sample = dcmi_sample
};
