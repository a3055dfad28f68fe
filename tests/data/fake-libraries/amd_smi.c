/* A fake libamd_smi (simulated): two sockets of one device each, at 0000:18:00.0 and 0001:2a:00.1. */
#include <stdint.h>
#include <string.h>

static int sockets[2], devices[2];

int amdsmi_init(uint64_t flags)
{
        return flags == 2 ? 0 : 1;
}
int amdsmi_get_socket_handles(uint32_t *count, void **ret)
{
        for (uint32_t i = 0; i < 2 && i < *count; i++)
                ret[i] = &sockets[i];
        *count = 2;
        return 0;
}
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **ret)
{
        ret[0] = &devices[(int *) socket - sockets];
        *count = 1;
        return 0;
}
int amdsmi_get_gpu_device_bdf(void *device, uint64_t *bdf)
{
        *bdf = device == &devices[0] ? 0x18 << 8 : (uint64_t) 1 << 16 | 0x2a << 8 | 1;
        return 0;
}
int amdsmi_get_gpu_memory_total(void *device, int type, uint64_t *bytes)
{
        *bytes = 8ull << 30;
        return device == NULL || type != 0;
}
int amdsmi_get_gpu_memory_usage(void *device, int type, uint64_t *bytes)
{
        *bytes = 2ull << 30;
        return device == NULL || type != 0;
}
int amdsmi_get_gpu_activity(void *device, uint32_t *percent)
{
        memset(percent, 0, 16 * sizeof(*percent));
        percent[0] = 50;
        percent[1] = 25;
        return device == NULL;
}
int amdsmi_get_temp_metric(void *device, int sensor, int metric, int64_t *celsius)
{
        *celsius = 39 + sensor;
        return device == NULL || metric != 0 || sensor == 0; /* an MI300 has no edge sensor */
}
int amdsmi_get_gpu_total_ecc_count(void *device, uint64_t *counts)
{
        memset(counts, 0, 8 * sizeof(*counts));
        counts[0] = 5;
        return device == NULL;
}
