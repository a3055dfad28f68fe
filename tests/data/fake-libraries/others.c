/* Fake management libraries of other vendors for tests, all in one: one device at 0000:18:00.0 each (ROCm
 * SMI's and DCMI's on the bus FAKE_BUS, in hexadecimal, where it is set), drawing 100 W at 40 degrees, half
 * busy, 2 of 8 GiB used. With FAKE_SICK set the device is sick as each library says it; with FAKE_OLD ROCm
 * SMI has the structures of earlier releases. Simulated: the layouts are those of the vendors' headers as our
 * facts have them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1ull << 30)

static int sick(void)
{
        return getenv("FAKE_SICK") != NULL;
}

static uint32_t bus(void)
{
        const char *text = getenv("FAKE_BUS");

        return text != NULL ? (uint32_t) strtoul(text, NULL, 16) : 0x18;
}

/* --- ROCm SMI ---- */
int rsmi_init(uint64_t flags)
{
        return (int) flags;
}
int rsmi_num_monitor_devices(uint32_t *n)
{
        *n = 1;
        return 0;
}
int rsmi_dev_pci_id_get(uint32_t i, uint64_t *id)
{
        *id = (uint64_t) i << 32 | bus() << 8;
        return 0;
}
int rsmi_dev_memory_total_get(uint32_t i, int type, uint64_t *v)
{
        *v = 8 * GIB + i + (uint64_t) type;
        return 0;
}
int rsmi_dev_memory_usage_get(uint32_t i, int type, uint64_t *v)
{
        *v = 2 * GIB + i + (uint64_t) type;
        return 0;
}
int rsmi_dev_busy_percent_get(uint32_t i, uint32_t *v)
{
        *v = 50 + i;
        return 0;
}
int rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t *v)
{
        *v = 40000 + i + metric;
        return sensor == 0 ? 0 : 2;
}
int rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t *v)
{
        *v = 100000000 + i + sensor;
        return 0;
}
struct clocks_old {
        uint32_t count, current;
        uint64_t hertz[32];
};
struct clocks {
        _Bool sleeps;
        uint32_t count, current;
        uint64_t hertz[33];
};
int rsmi_dev_gpu_clk_freq_get(uint32_t i, int type, void *v)
{
        uint64_t hertz = type == 0 ? 1700000000 : 900000000;

        if (getenv("FAKE_OLD") != NULL)
                *(struct clocks_old *) v =
                        (struct clocks_old){ .count = 3, .current = 1, .hertz = { 500000000, hertz, 2 } };
        else
                *(struct clocks *) v =
                        (struct clocks){ .count = 3, .current = 1, .hertz = { 500000000, hertz, 2 } };
        return type == 0 || type == 4 ? (int) i : 2;
}

/* --- DCMI ---- */
int dcmi_init(void)
{
        return 0;
}
int dcmi_get_card_list(int *n, int *list, int room)
{
        *n = room > 0;
        list[0] = 3;
        return 0;
}
int dcmi_get_device_num_in_card(int card, int *n)
{
        *n = card == 3;
        return 0;
}
int dcmi_get_device_pcie_info_v2(int card, int device, void *info)
{
        const uint32_t v[] = { 0x19e5, 0, 0xd802, 0, 0, bus(), 0, 0 };

        memcpy(info, v, sizeof(v));
        memset((char *) info + sizeof(v), 0, 32);
        return card != 3 || device != 0;
}
int dcmi_get_device_utilization_rate(int card, int device, int type, uint32_t *v)
{
        *v = 50;
        return card != 3 || device != 0 || type != 2;
}
int dcmi_get_device_temperature(int card, int device, int *v)
{
        *v = 40;
        return card != 3 || device != 0;
}
int dcmi_get_device_power_info(int card, int device, int *v)
{
        *v = 1000;
        return card != 3 || device != 0;
}
struct hbm {
        uint64_t size;
        uint32_t frequency;
        uint64_t used;
        int temperature;
        uint32_t bandwidth;
};
int dcmi_get_device_hbm_info(int card, int device, struct hbm *h)
{
        *h = (struct hbm){
                .size = 8192, .frequency = 1600, .used = 2048, .temperature = 45, .bandwidth = 10
        };
        return card != 3 || device != 0;
}
int dcmi_get_device_frequency(int card, int device, int type, uint32_t *v)
{
        *v = 1800;
        return card != 3 || device != 0 || type != 7;
}
int dcmi_get_device_health(int card, int device, uint32_t *v)
{
        *v = sick() ? 3 : 0;
        return card != 3 || device != 0;
}

/* --- CNDEV ---- */
int cndevInit(int flags)
{
        return flags;
}
int cndevGetDeviceCount(int *v)
{
        v[1] = 1;
        return v[0] == 6 ? 0 : 3;
}
int cndevGetDeviceHandleByIndex(int i, int32_t *handle)
{
        *handle = 7 + i;
        return 0;
}
struct cn_pcie {
        uint32_t subsystem, device;
        uint16_t vendor, subvendor;
        uint32_t domain, bus, number, function;
};
int cndevGetPCIeInfoV2(struct cn_pcie *p, int32_t handle)
{
        *p = (struct cn_pcie){ .vendor = 0xcabc, .bus = 0x18 };
        return handle != 7;
}
int cndevGetMemoryUsageV2(int64_t *m, int32_t handle)
{
        m[0] = 8192;
        m[1] = 2048;
        return handle != 7;
}
int cndevGetDeviceUtilizationInfo(int *v, int32_t handle)
{
        v[1] = 50;
        return handle != 7 || v[0] != 6;
}
int cndevGetTemperatureInfo(int *v, int32_t handle)
{
        v[1] = 40;
        return handle != 7 || v[0] != 6;
}
int cndevGetDevicePowerInfo(int *v, int32_t handle)
{
        v[0] = 100;
        return handle != 7;
}
int cndevGetCardHealthState(int *v, int32_t handle)
{
        v[1] = !sick();
        v[2] = 1;
        v[3] = 4;
        return handle != 7 || v[0] != 6;
}

/* --- HLML ---- */
int hlml_init(void)
{
        return 0;
}
int hlml_device_get_count(unsigned *n)
{
        *n = 1;
        return 0;
}
int hlml_device_get_handle_by_index(unsigned i, void **d)
{
        *d = (void *) (size_t) (i + 9);
        return 0;
}
int hlml_device_get_pci_info(void *d, char *info)
{
        strcpy(info + 4, "0000:18:00.0");
        return d != (void *) 9;
}
int hlml_device_get_memory_info(void *d, unsigned long long *m)
{
        m[0] = 6 * GIB;
        m[1] = 8 * GIB;
        m[2] = 2 * GIB;
        return d != (void *) 9;
}
int hlml_device_get_utilization_rates(void *d, unsigned *v)
{
        *v = 50;
        return d != (void *) 9;
}
int hlml_device_get_temperature(void *d, int sensor, unsigned *v)
{
        *v = 40;
        return d != (void *) 9 || sensor != 0;
}
int hlml_device_get_power_usage(void *d, unsigned *v)
{
        *v = 100000;
        return sick() ? 15 : d != (void *) 9;
}

/* --- MTML ---- */
int mtmlLibraryInit(void **l)
{
        *l = (void *) 1;
        return 0;
}
int mtmlLibraryCountDevice(void *l, unsigned *n)
{
        *n = 1;
        return l != (void *) 1;
}
int mtmlLibraryInitDeviceByIndex(void *l, unsigned i, void **d)
{
        *d = (void *) (size_t) (i + 2);
        return l != (void *) 1;
}
int mtmlDeviceGetPciInfo(void *d, char *info)
{
        strcpy(info, "00000000:18:00.0");
        return d != (void *) 2;
}
int mtmlDeviceGetPowerUsage(void *d, unsigned *v)
{
        *v = 100000;
        return sick() ? 669 : d != (void *) 2;
}
int mtmlDeviceInitGpu(void *d, void **g)
{
        *g = (void *) 3;
        return d != (void *) 2;
}
int mtmlGpuGetUtilization(void *g, unsigned *v)
{
        *v = 50;
        return g != (void *) 3;
}
int mtmlGpuGetTemperature(void *g, unsigned *v)
{
        *v = 40;
        return g != (void *) 3;
}
int mtmlDeviceInitMemory(void *d, void **m)
{
        *m = (void *) 4;
        return d != (void *) 2;
}
int mtmlMemoryGetTotal(void *m, unsigned long long *v)
{
        *v = 8 * GIB;
        return m != (void *) 4;
}
int mtmlMemoryGetUsed(void *m, unsigned long long *v)
{
        *v = 2 * GIB;
        return m != (void *) 4;
}

/* --- MXSML ---- */
int mxSmlInit(void)
{
        return 0;
}
unsigned mxSmlGetDeviceCount(void)
{
        return 1;
}
int mxSmlGetDeviceInfo(unsigned i, char *info)
{
        strcpy(info + 8, "0000:18:00.0");
        return (int) i;
}
int mxSmlGetMemoryInfo(unsigned i, long *m)
{
        memset(m, 0, 6 * sizeof(*m));
        m[2] = 8 << 20;
        m[3] = 2 << 20;
        return (int) i;
}
int mxSmlGetDeviceIpUsage(unsigned i, int ip, int *v)
{
        *v = 50;
        return ip == 4 ? (int) i : 1;
}
int mxSmlGetTemperatureInfo(unsigned i, int sensor, int *v)
{
        *v = 4000;
        return sensor == 0 ? (int) i : 1;
}
int mxSmlGetBoardPowerInfo(unsigned i, uint32_t *n, uint32_t *ways)
{
        memset(ways, 0, 24);
        ways[2] = 60000;
        ways[5] = 40000;
        *n = 2;
        return (int) i;
}

/* --- EFML ---- */
struct efml_info {
        char name[128];
        uint32_t vendor, device, domain, bus, slot, function, logical;
};
struct efml_ecc {
        _Bool enabled, pending, blacklisting;
        uint32_t single_bit, double_bit;
};
int EfmlInit(_Bool no_driver)
{
        return no_driver;
}
int EfmlGetDevCount(uint32_t *n)
{
        *n = 1;
        return 0;
}
int EfmlGetDevInfo(uint32_t i, struct efml_info *info)
{
        memset(info, 0, sizeof(*info));
        info->vendor = 0x1e36;
        info->bus = 0x18 + i;
        return 0;
}
int EfmlGetDevMem(uint32_t i, uint64_t *memory)
{
        memory[0] = 8 * GIB;
        return (int) i;
}
int EfmlGetDevDtuUsage(uint32_t i, float *percent)
{
        *percent = 50;
        return (int) i;
}
int EfmlGetDevPwr(uint32_t i, float *watts)
{
        watts[0] = 300;
        watts[1] = 100;
        return (int) i;
}
int EfmlGetDevTempV2(uint32_t i, float *celsius)
{
        celsius[0] = 40;
        celsius[1] = 45;
        celsius[2] = 35;
        return (int) i;
}
int EfmlGetDevEccStatus(uint32_t i, struct efml_ecc *ecc)
{
        *ecc = (struct efml_ecc){ .enabled = 1, .single_bit = 3, .double_bit = 1 };
        return (int) i;
}
int EfmlGetDevHealth(uint32_t i, _Bool *health)
{
        *health = !sick();
        return (int) i;
}
