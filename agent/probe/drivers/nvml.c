/* NVML and the libraries that were made after it: the same functions under another prefix. Facts: NVIDIA's
 * header (API 13), libixml of Iluvatar, libhgml of T-Head, libxpuml of Kunlunxin (other layouts of the PCI
 * and memory structures). Power in mW, energy in mJ, clocks in MHz, utilisation in percent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_driver.h"
#include "base/cleanup.h"

enum {
        NVML_OK = 0,
        NVML_INVALID_ARGUMENT = 2,
        NVML_NOT_SUPPORTED = 3,
        NVML_LOST = 15,
        NVML_RESET_REQUIRED = 16
};
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_CPU = 1, NVML_REMOTE_SWITCH = 2, NVML_REMOTE_UNKNOWN = 255 };
#define NVML_LINKS_MAX 36
enum {
        NVML_ECC_CORRECTED,
        NVML_ECC_UNCORRECTED,
        NVML_VOLATILE = 0,
        NVML_POWER_LIMITS = 0,
        NVML_HEAT_LIMITS = 1,
        NVML_CLOCK_SM = 1,
        NVML_CLOCK_MEMORY = 2
};

typedef void *nvml_device;

struct nvml_memory {
        unsigned long long total, free, used;
};
struct nvml_memory_v2 {
        unsigned version; /* NVML_MEMORY_V2 */
        unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned) sizeof(struct nvml_memory_v2) | 2u << 24)
struct xpuml_memory {
        unsigned long long page, total, free, used, rest[12];
};
struct nvml_utilization {
        unsigned device, memory, rest[14];
};
struct nvml_pci {
        char legacy[16];
        unsigned domain, bus, device, ids[2];
        char bus_id[32];
        unsigned rest[32];
};
struct nvml_violation {
        unsigned long long reference_usec, nsec;
};
struct xpuml_pci {
        unsigned domain, bus, device, function, ids[2];
        char bus_id[32];
        unsigned long long rest[16];
};

struct nvml {
        bool xpuml;
        int (*count)(unsigned *);
        int (*handle)(unsigned, nvml_device *);
        int (*pci)(nvml_device, void *);
        int (*memory)(nvml_device, void *);
        int (*memory_v2)(nvml_device, struct nvml_memory_v2 *); /* which tells the reserved from the used */
        int (*utilization)(nvml_device, struct nvml_utilization *);
        int (*encoder)(nvml_device, unsigned *, unsigned *);
        int (*decoder)(nvml_device, unsigned *, unsigned *);
        int (*violation)(nvml_device, int, struct nvml_violation *);
        int (*temperature)(nvml_device, int, unsigned *);
        int (*power)(nvml_device, unsigned *);
        int (*power_limit)(nvml_device, unsigned *);
        int (*energy)(nvml_device, unsigned long long *);
        int (*clock)(nvml_device, int, unsigned *);
        int (*ecc)(nvml_device, int, int, unsigned long long *);
        int (*remapped)(nvml_device, unsigned *, unsigned *, unsigned *, unsigned *);
        int (*replay)(nvml_device, unsigned *);
        int (*link_state)(nvml_device, unsigned, unsigned *);
        int (*link_peer)(nvml_device, unsigned, void *);
        int (*link_peer_type)(nvml_device, unsigned, unsigned *);
        int (*ixml_health)(nvml_device, unsigned long long *);
        int (*xpuml_state)(nvml_device, unsigned *);
};

/* A function by the newest of its names: "_v3", "_v2", none. */
static void find(void *library, const char *prefix, const char *name, void *into)
{
        static const char *const suffixes[] = { "_v3", "_v2", "" };
        char symbol[96];
        bool found = false;

        for (size_t i = 0; !found && i < ARRAY_SIZE(suffixes); i++) {
                (void) text_format(symbol, sizeof(symbol), "%s%s%s", prefix, name, suffixes[i]);
                found = probe_driver_symbol(library, symbol, into);
        }
}

/* Each version by itself: the second wants a version number in the structure. */
static void find_memory(struct nvml *n, void *library, const char *prefix)
{
        char symbol[96];

        (void) text_format(symbol, sizeof(symbol), "%sDeviceGetMemoryInfo", prefix);
        (void) probe_driver_symbol(library, symbol, &n->memory);
        (void) text_format(symbol, sizeof(symbol), "%sDeviceGetMemoryInfo_v2", prefix);
        (void) probe_driver_symbol(library, symbol, &n->memory_v2);
}

static int nvml_open(const struct probe_driver *driver, void *library, void **ret_state, struct err *err)
{
        const char *p = driver->prefix;
        struct nvml *n = calloc(1, sizeof(*n));
        int (*init)(void) = NULL;
        int r;

        if (n == NULL)
                return err_set(err, -ENOMEM, "no memory");
        n->xpuml = strcmp(p, "xpuml") == 0;
        find(library, p, "Init", &init);
        find(library, p, "DeviceGetCount", &n->count);
        find(library, p, "DeviceGetHandleByIndex", &n->handle);
        find(library, p, "DeviceGetPciInfo", &n->pci);
        find_memory(n, library, p);
        find(library, p, "DeviceGetUtilizationRates", &n->utilization);
        find(library, p, "DeviceGetEncoderUtilization", &n->encoder);
        find(library, p, "DeviceGetDecoderUtilization", &n->decoder);
        find(library, p, "DeviceGetViolationStatus", &n->violation);
        find(library, p, "DeviceGetTemperature", &n->temperature);
        find(library, p, "DeviceGetPowerUsage", &n->power);
        find(library, p, "DeviceGetEnforcedPowerLimit", &n->power_limit);
        find(library, p, "DeviceGetTotalEnergyConsumption", &n->energy);
        find(library, p, "DeviceGetClockInfo", &n->clock);
        find(library, p, "DeviceGetTotalEccErrors", &n->ecc);
        find(library, p, "DeviceGetRemappedRows", &n->remapped);
        find(library, p, "DeviceGetPcieReplayCounter", &n->replay);
        find(library, p, "DeviceGetNvLinkState", &n->link_state);
        find(library, p, "DeviceGetNvLinkRemotePciInfo", &n->link_peer);
        find(library, p, "DeviceGetNvLinkRemoteDeviceType", &n->link_peer_type);
        find(library, "ixml", "DeviceGetHealth", &n->ixml_health);
        find(library, "xpuml", "DeviceGetState", &n->xpuml_state);
        if (init == NULL || n->count == NULL || n->handle == NULL || n->pci == NULL) {
                free(n);
                return err_set(err, -ENOENT,
                               "the library has no %sInit, DeviceGetCount, HandleByIndex, PciInfo", p);
        }
        r = init();
        if (r != NVML_OK) {
                free(n);
                return err_set(err, -EIO, "%sInit says %d", p, r);
        }
        *ret_state = n;
        return 0;
}

/* The library's word that the device itself is at fault. */
static bool is_ok(struct probe_sample *s, int r)
{
        if (r == NVML_LOST)
                finding_add(&s->finding, FINDING_BAD, "library-lost", "DeviceLost",
                            "the vendor's library says that it is lost");
        else if (r == NVML_RESET_REQUIRED)
                finding_add(&s->finding, FINDING_BAD, "library-reset", "ResetRequired",
                            "the vendor's library says that it must be reset");
        return r == NVML_OK;
}

static void ask_memory(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        struct xpuml_memory x = { 0 };
        struct nvml_memory m = { 0 };
        struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2 };

        if (n->memory_v2 != NULL && is_ok(s, n->memory_v2(d, &v2))) {
                s->values[PROBE_MEMORY_TOTAL] = (double) v2.total;
                s->values[PROBE_MEMORY_USED] = (double) v2.used;
                s->values[PROBE_MEMORY_RESERVED] = (double) v2.reserved;
                return;
        }
        if (n->memory == NULL)
                return;
        if (n->xpuml && is_ok(s, n->memory(d, &x)))
                m = (struct nvml_memory){ .total = x.total, .used = x.used };
        else if (n->xpuml || !is_ok(s, n->memory(d, &m)))
                return;
        s->values[PROBE_MEMORY_TOTAL] = (double) m.total;
        s->values[PROBE_MEMORY_USED] = (double) m.used;
}

static void ask_engines(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        unsigned percent = 0, period_usec = 0;

        if (n->encoder != NULL && is_ok(s, n->encoder(d, &percent, &period_usec)))
                s->values[PROBE_UTILIZATION_ENCODE] = percent / 100.0;
        if (n->decoder != NULL && is_ok(s, n->decoder(d, &percent, &period_usec)))
                s->values[PROBE_UTILIZATION_DECODE] = percent / 100.0;
}

static void ask_throttling(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        struct nvml_violation v = { 0 };

        if (n->violation != NULL && is_ok(s, n->violation(d, NVML_POWER_LIMITS, &v)))
                s->values[PROBE_THROTTLE_POWER] = (double) v.nsec / 1e9;
        if (n->violation != NULL && is_ok(s, n->violation(d, NVML_HEAT_LIMITS, &v)))
                s->values[PROBE_THROTTLE_THERMAL] = (double) v.nsec / 1e9;
}

static void ask_load(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        struct nvml_utilization u = { 0 };
        unsigned long long energy;
        unsigned value;

        if (n->utilization != NULL && is_ok(s, n->utilization(d, &u))) {
                s->values[PROBE_UTILIZATION_COMPUTE] = u.device / 100.0;
                s->values[PROBE_UTILIZATION_MEMORY] = u.memory / 100.0;
        }
        if (n->temperature != NULL && is_ok(s, n->temperature(d, 0, &value)))
                s->values[PROBE_TEMPERATURE_CORE] = value;
        if (n->power != NULL && is_ok(s, n->power(d, &value)))
                s->values[PROBE_POWER] = value / 1000.0;
        if (n->power_limit != NULL && is_ok(s, n->power_limit(d, &value)))
                s->values[PROBE_POWER_LIMIT] = value / 1000.0;
        if (n->energy != NULL && is_ok(s, n->energy(d, &energy)))
                s->values[PROBE_ENERGY] = (double) energy / 1000.0;
        if (n->clock != NULL && is_ok(s, n->clock(d, NVML_CLOCK_SM, &value)))
                s->values[PROBE_CLOCK_CORE] = value * 1e6;
        if (n->clock != NULL && is_ok(s, n->clock(d, NVML_CLOCK_MEMORY, &value)))
                s->values[PROBE_CLOCK_MEMORY] = value * 1e6;
}

static void ask_errors(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        unsigned corrected, uncorrected, pending, failed, replays;
        unsigned long long count;

        if (n->ecc != NULL && is_ok(s, n->ecc(d, NVML_ECC_CORRECTED, NVML_VOLATILE, &count)))
                s->values[PROBE_ECC_CORRECTABLE] = (double) count;
        if (n->ecc != NULL && is_ok(s, n->ecc(d, NVML_ECC_UNCORRECTED, NVML_VOLATILE, &count)))
                s->values[PROBE_ECC_UNCORRECTABLE] = (double) count;
        if (n->replay != NULL && is_ok(s, n->replay(d, &replays)))
                s->values[PROBE_PCIE_REPLAY] = replays;
        if (n->remapped == NULL || !is_ok(s, n->remapped(d, &corrected, &uncorrected, &pending, &failed)))
                return;
        s->values[PROBE_ROW_REMAP] = (double) corrected + uncorrected;
        if (failed != 0)
                finding_add(&s->finding, FINDING_BAD, "row-remap-failed", "RowRemapFailed",
                            "a bad memory row could not be remapped");
        else if (pending != 0)
                finding_add(&s->finding, FINDING_DEGRADED, "row-remap-pending", "RowRemapPending",
                            "a bad memory row waits for a reset to be remapped");
}

static void ask_own_health(const struct nvml *n, nvml_device d, struct probe_sample *s)
{
        unsigned long long bits = 0;
        unsigned state = 0;

        if (n->ixml_health != NULL && n->ixml_health(d, &bits) == NVML_OK && bits != 0)
                finding_add(&s->finding, (bits & 0x63) != 0 ? FINDING_BAD : FINDING_DEGRADED, "ixml-health",
                            "LibraryHealth", "the vendor's library reports health bits 0x%llx", bits);
        if (n->xpuml_state != NULL && n->xpuml_state(d, &state) == NVML_OK && state >= 207)
                finding_add(&s->finding, FINDING_BAD, "xpuml-state", "LibraryHealth",
                            "the vendor's library reports state %u", state);
}

static bool ask_address(const struct nvml *n, nvml_device d, char ret[20])
{
        struct nvml_pci pci = { .legacy = "" };
        struct xpuml_pci xpu = { .domain = 0 };

        if (n->pci(d, n->xpuml ? (void *) &xpu : (void *) &pci) != NVML_OK)
                return false;
        if (n->xpuml)
                probe_driver_pci_format(xpu.domain, xpu.bus, xpu.device, xpu.function, ret);
        else if (memchr(pci.bus_id, '\0', sizeof(pci.bus_id)) != NULL)
                probe_driver_pci_parse(pci.bus_id, ret);
        else
                ret[0] = '\0';
        return ret[0] != '\0';
}

static int nvml_sample(void *state, probe_driver_take take, void *userdata, struct err *err)
{
        const struct nvml *n = state;
        unsigned count = 0;
        int r = n->count(&count);

        if (r != NVML_OK)
                return err_set(err, -EIO, "DeviceGetCount says %d", r);
        for (unsigned i = 0; i < count && i < 1024; i++) {
                struct probe_sample s;
                nvml_device d = NULL;
                char pci[20] = "";

                if (n->handle(i, &d) != NVML_OK || !ask_address(n, d, pci))
                        continue; /* sysfs says what became of it */
                probe_sample_init(&s, pci);
                ask_memory(n, d, &s);
                ask_load(n, d, &s);
                ask_engines(n, d, &s);
                ask_throttling(n, d, &s);
                ask_errors(n, d, &s);
                ask_own_health(n, d, &s);
                take(userdata, &s);
        }
        return 0;
}

/* What an active link leads to: another GPU, or a switch. The link of a POWER9 to its processor is neither.
 */
static void add_link(const struct nvml *n, nvml_device d, unsigned link, struct link_report *report)
{
        unsigned type = NVML_REMOTE_UNKNOWN;
        struct nvml_pci peer = { .legacy = "" };
        char pci[20] = "";

        if (n->link_peer_type == NULL || n->link_peer_type(d, link, &type) != NVML_OK)
                type = NVML_REMOTE_UNKNOWN;
        if (type == NVML_REMOTE_SWITCH)
                report->switched++;
        if (type == NVML_REMOTE_SWITCH || type == NVML_REMOTE_CPU || n->link_peer == NULL ||
            n->link_peer(d, link, &peer) != NVML_OK)
                return;
        peer.bus_id[sizeof(peer.bus_id) - 1] = peer.legacy[sizeof(peer.legacy) - 1] = '\0';
        probe_driver_pci_parse(peer.bus_id, pci);
        if (pci[0] == '\0')
                probe_driver_pci_parse(peer.legacy, pci);
        if (pci[0] != '\0')
                (void) link_report_add(report, pci, 1);
}

/* Return: false when the library could not be asked: nothing is known then. */
static bool ask_links(const struct nvml *n, nvml_device d, struct link_report *report)
{
        for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
                unsigned active = 0;
                int r = n->link_state(d, link, &active);

                if (r == NVML_INVALID_ARGUMENT || (r == NVML_NOT_SUPPORTED && link == 0))
                        break; /* beyond its last link, or it has none */
                if (r != NVML_OK && r != NVML_NOT_SUPPORTED)
                        return false;
                if (r == NVML_OK && active == 1)
                        add_link(n, d, link, report);
        }
        return true;
}

static int nvml_links(void *state, probe_driver_take_links take, void *userdata, struct err *err)
{
        const struct nvml *n = state;
        unsigned count = 0;
        int r = n->link_state == NULL || n->xpuml ? NVML_NOT_SUPPORTED : n->count(&count);

        if (r != NVML_OK)
                return err_set(err, -EIO, "it does not tell of links: %d", r);
        for (unsigned i = 0; i < count && i < 1024; i++) {
                struct link_report report = { .link_count = 0 };
                nvml_device d = NULL;

                if (n->handle(i, &d) == NVML_OK && ask_address(n, d, report.pci) && ask_links(n, d, &report))
                        take(userdata, &report);
        }
        return 0;
}

const struct probe_driver_calls nvml_calls = { .open = nvml_open,
                                               .sample = nvml_sample,
                                               .links = nvml_links };
