/* OpenCL devices by what their libraries tell, and the order in which they are taken. */
#include "agent/inventory/opencl_device.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define PLATFORMS_MAX 16
#define TYPE_ALL      UINT64_C(0xffffffff)

/* The parts of CL/cl.h and CL/cl_ext.h that are used; every status is 0 when all is well. */
enum {
        DEVICE_TYPE = 0x1000,
        TYPE_CPU = 2,
        COMPUTE_UNITS = 0x1002,
        MEMORY_BYTES = 0x101F,
        AVAILABLE = 0x1027,
        COMPILER_AVAILABLE = 0x1028,
        NAME = 0x102B,
        HOST_MEMORY = 0x1035,
        UUID_KHR = 0x106A,
        PCI_BUS_INFO_KHR = 0x410F, /* domain, bus, device, function, 32 bits each */
        PCI_BUS_ID_NV = 0x4008,    /* and the two after it */
        PCI_SLOT_ID_NV = 0x4009,   /* device and function */
        PCI_DOMAIN_ID_NV = 0x400A,
        TOPOLOGY_AMD = 0x4037, /* 24 bytes: a type, 17 without a meaning, bus, device, function */
};

static bool ask(const struct opencl_device_calls *calls, void *device, unsigned what, void *ret, size_t bytes)
{
        size_t given = 0;

        return calls->info(device, what, bytes, ret, &given) == 0 && given == bytes;
}

static void read_pci(const struct opencl_device_calls *calls, struct opencl_device *d)
{
        uint32_t khr[4], bus, slot, domain = 0;
        unsigned char amd[24];

        if (ask(calls, d->handle, PCI_BUS_INFO_KHR, khr, sizeof(khr)))
                (void) text_format(d->pci, sizeof(d->pci), "%04x:%02x:%02x.%x", khr[0] & 0xffffu,
                                   khr[1] & 0xffu, khr[2] & 0x1fu, khr[3] & 7u);
        else if (ask(calls, d->handle, PCI_BUS_ID_NV, &bus, sizeof(bus)) &&
                 ask(calls, d->handle, PCI_SLOT_ID_NV, &slot, sizeof(slot))) {
                (void) ask(calls, d->handle, PCI_DOMAIN_ID_NV, &domain, sizeof(domain));
                (void) text_format(d->pci, sizeof(d->pci), "%04x:%02x:%02x.%x", domain & 0xffffu, bus & 0xffu,
                                   (slot >> 3) & 0x1fu, slot & 7u);
        } else if (ask(calls, d->handle, TOPOLOGY_AMD, amd, sizeof(amd)) && amd[0] == 1)
                (void) text_format(d->pci, sizeof(d->pci), "0000:%02x:%02x.%x", amd[21], amd[22] & 0x1fu,
                                   amd[23] & 7u);
}

static void read_uuid(const struct opencl_device_calls *calls, struct opencl_device *d)
{
        unsigned char u[16];

        if (ask(calls, d->handle, UUID_KHR, u, sizeof(u)))
                (void) text_format(d->uuid, sizeof(d->uuid),
                                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
                                   u[12], u[13], u[14], u[15]);
}

static void read_device(const struct opencl_device_calls *calls, struct opencl_device *d)
{
        uint64_t type = TYPE_CPU; /* one that does not tell it is no accelerator */
        uint32_t yes = 1, host = 0;
        size_t told = 0;

        (void) ask(calls, d->handle, DEVICE_TYPE, &type, sizeof(type));
        d->processor = (type & TYPE_CPU) != 0;
        (void) ask(calls, d->handle, HOST_MEMORY, &host, sizeof(host));
        d->host_memory = host != 0;
        d->unusable = (ask(calls, d->handle, AVAILABLE, &yes, sizeof(yes)) && yes == 0) ||
                      (ask(calls, d->handle, COMPILER_AVAILABLE, &yes, sizeof(yes)) && yes == 0);
        (void) ask(calls, d->handle, MEMORY_BYTES, &d->memory_bytes, sizeof(d->memory_bytes));
        (void) ask(calls, d->handle, COMPUTE_UNITS, &d->units, sizeof(d->units));
        if (calls->info(d->handle, NAME, sizeof(d->name) - 1, d->name, &told) != 0)
                (void) text_copy(d->name, sizeof(d->name), "a device without a name");
        d->name[sizeof(d->name) - 1] = '\0';
        text_harmless(d->name, 0);
        read_pci(calls, d);
        read_uuid(calls, d);
}

size_t opencl_device_list(const struct opencl_device_calls *calls,
                          struct opencl_device ret[OPENCL_DEVICE_MAX])
{
        void *platforms[PLATFORMS_MAX], *handles[OPENCL_DEVICE_MAX];
        unsigned platform_count = 0, count;
        size_t n = 0;

        if (calls->platforms(PLATFORMS_MAX, platforms, &platform_count) != 0)
                return 0;
        for (unsigned p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
                count = 0;
                if (calls->devices(platforms[p], TYPE_ALL, OPENCL_DEVICE_MAX, handles, &count) != 0)
                        continue;
                for (unsigned i = 0; i < count && i < OPENCL_DEVICE_MAX && n < OPENCL_DEVICE_MAX; i++) {
                        ret[n] = (struct opencl_device){ .handle = handles[i], .platform = p, .number = i };
                        read_device(calls, &ret[n++]);
                }
        }
        return n;
}

/* Positive: a comes before b; 0: nothing tells them apart. */
static int compare(const struct opencl_device *a, const struct opencl_device *b)
{
        if (a->processor != b->processor)
                return b->processor - a->processor;
        /* a chip beside the processor counts all memory of the machine as its own, and is the slower one */
        if (a->host_memory != b->host_memory)
                return b->host_memory - a->host_memory;
        if (a->memory_bytes != b->memory_bytes)
                return a->memory_bytes > b->memory_bytes ? 1 : -1;
        return (a->units > b->units) - (a->units < b->units);
}

/* Which devices are meant; an empty field does not matter. */
struct filter {
        bool accelerators, processors;
        const char *pci, *uuid;
        bool nameless; /* neither address nor UUID that could be compared */
};

static bool is_meant(const struct opencl_device *d, const struct filter *f)
{
        if (d->unusable || (f->accelerators && d->processor) || (f->processors && !d->processor))
                return false;
        if (f->nameless)
                return (f->pci == NULL || d->pci[0] == '\0') && (f->uuid == NULL || d->uuid[0] == '\0');
        return (f->pci == NULL || strcasecmp(d->pci, f->pci) == 0) &&
               (f->uuid == NULL || strcasecmp(d->uuid, f->uuid) == 0);
}

/* The best of those that are meant; of its equals the `turn`-th, counted round. */
static const struct opencl_device *find_best(const struct opencl_device *devices, size_t count,
                                             const struct filter *f, size_t turn, size_t *ret_meant)
{
        const struct opencl_device *best = NULL;
        size_t equal = 0, meant = 0;

        for (size_t i = 0; i < count; i++)
                if (is_meant(&devices[i], f)) {
                        int order = best != NULL ? compare(&devices[i], best) : 1;

                        equal = order > 0 ? 1 : equal + (order == 0);
                        best = order > 0 ? &devices[i] : best;
                        meant++;
                }
        if (ret_meant != NULL)
                *ret_meant = meant;
        for (size_t i = 0, at = 0; best != NULL && i < count; i++)
                if (is_meant(&devices[i], f) && compare(&devices[i], best) == 0 && at++ == turn % equal)
                        return &devices[i];
        return NULL;
}

const struct opencl_device *opencl_device_at(const struct opencl_device *devices, size_t count,
                                             const char *pci)
{
        const struct filter f = { .accelerators = true, .pci = pci };

        return pci[0] == '\0' ? NULL : find_best(devices, count, &f, 0, NULL);
}

static bool is_said(const char *s)
{
        return s != NULL && s[0] != '\0';
}

static int choose_numbers(const struct opencl_device *devices, size_t count, const char *numbers,
                          const struct opencl_device **ret, struct err *err)
{
        const char *colon = strchr(numbers, ':');
        uint64_t platform, number;
        char first[16];

        if (colon == NULL || !text_format(first, sizeof(first), "%.*s", (int) (colon - numbers), numbers) ||
            text_parse_uint64(first, &platform) < 0 || text_parse_uint64(colon + 1, &number) < 0)
                return err_set(
                        err, -EINVAL,
                        "--device '%.40s': platform and device number are wanted, such as 0:0, or list",
                        numbers);
        for (size_t i = 0; i < count; i++)
                if (devices[i].platform == platform && devices[i].number == number) {
                        *ret = &devices[i];
                        return 0;
                }
        return err_set(err, -ENOENT, "no OpenCL device %llu:%llu: --device list shows the %zu that there are",
                       (unsigned long long) platform, (unsigned long long) number, count);
}

/* One of "a,b,c", counted round. Return: "" = none is said, or it is no name of a chip. */
static const char *pick(const char *list, size_t n, char *field, size_t field_bytes)
{
        size_t words = 1;

        field[0] = '\0';
        if (!is_said(list))
                return field;
        for (const char *c = list; *c != '\0'; c++)
                words += *c == ',';
        for (n %= words; n > 0; n--)
                list = strchr(list, ',') + 1;
        if (!text_format(field, field_bytes, "%.*s", (int) strcspn(list, ","), list))
                field[0] = '\0';
        return field;
}

static bool is_address(const char *s)
{
        return strlen(s) == strlen("0000:18:00.0") && s[4] == ':' && s[7] == ':' && s[10] == '.';
}

static bool is_uuid(const char *s)
{
        return text_starts_with(s, "GPU-") && strlen(s) == strlen("GPU-01234567-0123-0123-0123-0123456789ab");
}

static int no_processor(struct err *err)
{
        return err_set(
                err, -ENOENT,
                "this rank was given processors (REMUDA_VENDOR=cpu), and no OpenCL device here is one: "
                "install a driver for them (Debian: pocl-opencl-icd), or give --device P:D");
}

/* The device that is the chip: by address, by UUID, or because it alone can be. */
static int choose_chip(const struct opencl_device *devices, size_t count,
                       const struct opencl_device_wish *wish, const struct opencl_device **ret,
                       struct err *err)
{
        char chip[96] = "", place[20] = "";
        const char *id = pick(wish->chips, wish->local_rank, chip, sizeof(chip));
        const char *pci = pick(wish->places, wish->local_rank, place, sizeof(place));
        struct filter f = { .accelerators = true };
        size_t nameless = 0;

        f.pci = is_address(pci) ? pci : is_address(id) ? id : NULL;
        if (f.pci != NULL)
                *ret = find_best(devices, count, &f, 0, NULL);
        if (*ret == NULL && is_uuid(id))
                *ret = find_best(devices, count, &(struct filter){ .accelerators = true, .uuid = id }, 0,
                                 NULL);
        if (*ret != NULL)
                return 0;
        f.uuid = is_uuid(id) ? id : NULL;
        f.nameless = true;
        *ret = find_best(devices, count, &f, wish->local_rank, &nameless);
        if (nameless == 1)
                return 0;
        *ret = NULL;
        return err_set(err, -ENOENT,
                       "this rank was given chip '%.48s' (REMUDA_DEVICES), and %s: %s, or give --device P:D "
                       "(--device list)",
                       id, nameless == 0 ? "no OpenCL device here is it" : "several OpenCL devices can be it",
                       nameless == 0 ? "install its vendor's OpenCL driver"
                                     : "let its driver show this chip alone");
}

int opencl_device_choose(const struct opencl_device *devices, size_t count,
                         const struct opencl_device_wish *wish, const struct opencl_device **ret,
                         struct err *err)
{
        const struct filter any = { 0 }, processors = { .processors = true };

        *ret = NULL;
        if (count == 0)
                return err_set(err, -ENOENT,
                               "no OpenCL device: on Debian, pocl-opencl-icd brings one for CPUs");
        if (is_said(wish->numbers))
                return choose_numbers(devices, count, wish->numbers, ret, err);
        if (is_said(wish->vendor) && strcmp(wish->vendor, "cpu") == 0) {
                *ret = find_best(devices, count, &processors, wish->local_rank, NULL);
                return *ret != NULL ? 0 : no_processor(err);
        }
        if (is_said(wish->chips))
                return choose_chip(devices, count, wish, ret, err);
        *ret = find_best(devices, count, &any, wish->local_rank, NULL);
        return *ret != NULL ? 0
                            : err_set(err, -ENOENT,
                                      "none of the %zu OpenCL devices can be used: they are not available, "
                                      "or have no compiler",
                                      count);
}

void opencl_device_describe(const struct opencl_device *device, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "%u:%u %s (%s, %.1f GiB%s, %u compute units%s%s)",
                           device->platform, device->number, device->name,
                           device->processor ? "processor" : "accelerator",
                           (double) device->memory_bytes / (1U << 30), device->host_memory ? " shared" : "",
                           device->units, device->pci[0] != '\0' ? ", " : "", device->pci);
}
