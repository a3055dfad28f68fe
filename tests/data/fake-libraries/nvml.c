/* A fake NVML for tests: two or more devices at the addresses of FAKE_NVML_DEVICES ("0000:18:00.0,..."), and
 * a mood that is read from the file FAKE_NVML_MOOD before every call: well (or no file), hang, crash, exit,
 * refuse, lie, lost, reset, remap, garbage. Simulated: it knows no hardware. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef MOOD /* one for good */
static int is(const char *mood)
{
        return strcmp(mood, MOOD) == 0;
}
#else
static int is(const char *mood)
{
        const char *path = getenv("FAKE_NVML_MOOD");
        char word[32] = "well";
        FILE *f = path != NULL ? fopen(path, "r") : NULL;

        if (f != NULL) {
                if (fscanf(f, "%31s", word) != 1)
                        strcpy(word, "well");
                fclose(f);
        }
        return strcmp(word, mood) == 0;
}
#endif

static void suffer(void)
{
        if (is("crash"))
                raise(SIGSEGV);
        if (is("exit"))
                exit(0);
        if (is("garbage")) {
                (void) !write(1, "}{ no json\n", 11);
                usleep(10000);
        }
        while (is("hang"))
                pause(); /* and no signal but SIGKILL comes */
}

int nvmlInit_v2(void)
{
        suffer();
        return is("refuse") ? 9 : 0;
}

static const char *device(unsigned i, char *name)
{
        const char *list = getenv("FAKE_NVML_DEVICES");

        for (; list != NULL && i > 0; i--) {
                list = strchr(list, ',');
                list = list != NULL ? list + 1 : NULL;
        }
        if (list == NULL || sscanf(list, "%31[^,]", name) != 1)
                return NULL;
        return name;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
        char name[32];

        suffer();
        *n = 0;
        while (device(*n, name) != NULL)
                ++*n;
        return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle)
{
        *handle = (void *) (size_t) (i + 1);
        return 0;
}

int nvmlDeviceGetPciInfo_v3(void *handle, void *info)
{
        char name[32];

        suffer();
        memset(info, 0, 68);
        if (device((unsigned) ((size_t) handle - 1), name) == NULL)
                return 2;
        sprintf((char *) info + 36, "0000%s", name); /* an eight digit domain, as the real one */
        return 0;
}

struct memory {
        unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(void *handle, struct memory *m)
{
        (void) handle;
        suffer();
        m->total = 80ull << 30;
        m->used = is("lie") ? 900ull << 30 : 4ull << 30;
        m->free = m->total - m->used;
        return 0;
}

struct memory_v2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
};

/* Drivers from 510 on: what they keep to themselves is not among the used. */
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *m)
{
        (void) handle;
        suffer();
        if (is("old") || m->version != (sizeof(*m) | 2u << 24))
                return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
        m->total = 80ull << 30;
        m->reserved = 1ull << 30;
        m->used = is("lie") ? 900ull << 30 : 3ull << 30;
        m->free = m->total - m->reserved - m->used;
        return 0;
}

int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates)
{
        suffer();
        rates[0] = is("lie") ? 4000 : 50;
        rates[1] = 25;
        return is("lost") && handle == (void *) 1 ? 15 : is("reset") && handle == (void *) 1 ? 16 : 0;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *t)
{
        (void) handle;
        (void) sensor;
        *t = is("lie") ? 60000 : 41;
        return 0;
}

int nvmlDeviceGetEncoderUtilization(void *handle, unsigned *percent, unsigned *period)
{
        (void) handle;
        *percent = 10;
        *period = 167000;
        return 0;
}

int nvmlDeviceGetViolationStatus(void *handle, int policy, unsigned long long *times)
{
        (void) handle;
        times[0] = 1;
        times[1] = policy == 0 ? 1500000000ull : 0;
        return policy > 1 ? 3 : 0;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts)
{
        (void) handle;
        *milliwatts = 123500;
        return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts)
{
        (void) handle;
        *milliwatts = 700000;
        return 0;
}

/* Of 123.5 W since the machine was started. */
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules)
{
        struct timespec now;

        (void) handle;
        clock_gettime(CLOCK_BOOTTIME, &now);
        *millijoules = (unsigned long long) now.tv_sec * 123500;
        return 0;
}

int nvmlDeviceGetClockInfo(void *handle, int domain, unsigned *megahertz)
{
        (void) handle;
        *megahertz = domain == 2 ? 2619 : 1980;
        return domain != 1 && domain != 2 ? 2 : 0;
}

int nvmlDeviceGetRemappedRows(void *handle, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed)
{
        *c = *u = 0;
        *pending = is("remap") && handle == (void *) 1;
        *failed = 0;
        return 0;
}

/* NVLink, from the file FAKE_NVML_LINKS: a line "A B N" joins devices A and B by N links, "A switch N" device
 * A with a switch, "A npu N" with a processor. Without the file no device has a link. Link numbers count per
 * device in the order of the lines. In the mood "slow-links" the request hangs, in "old" the other end's
 * kind is not known. */
static int find_link(size_t handle, unsigned link, char *other)
{
        const char *path = getenv("FAKE_NVML_LINKS");
        FILE *f = path != NULL ? fopen(path, "r") : NULL;
        unsigned own = (unsigned) handle - 1, at = 0, a, n, found = 0;
        char b[32];

        while (f != NULL && !found && fscanf(f, "%u %31s %u", &a, b, &n) == 3) {
                int back = b[0] >= '0' && b[0] <= '9' && (unsigned) atoi(b) == own;

                if (a != own && !back)
                        continue;
                if (link < at + n) {
                        if (back)
                                sprintf(other, "%u", a);
                        else
                                strcpy(other, b);
                        found = 1;
                }
                at += n;
        }
        if (f != NULL)
                fclose(f);
        return found;
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *active)
{
        char other[32];

        suffer();
        while (is("slow-links"))
                pause();
        if (is("lost") && handle == (void *) 1)
                return 15;
        if (link >= 18)
                return 2;
        *active = (unsigned) find_link((size_t) handle, link, other);
        return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *handle, unsigned link, unsigned *type)
{
        char other[32];

        if (is("old") || !find_link((size_t) handle, link, other))
                return 3;
        *type = strcmp(other, "switch") == 0 ? 2 : strcmp(other, "npu") == 0 ? 1 : 0;
        return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, void *info)
{
        char other[32], name[32];

        memset(info, 0, 68);
        if (!find_link((size_t) handle, link, other))
                return 3;
        if (strcmp(other, "switch") == 0)
                strcpy(name, "0000:05:00.0");
        else if (strcmp(other, "npu") == 0)
                strcpy(name, "0004:00:00.0");
        else if (device((unsigned) atoi(other), name) == NULL)
                return 999;
        sprintf((char *) info + 36, "0000%s", name);
        return 0;
}
