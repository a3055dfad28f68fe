/* Drivers against their libraries: whatever function a library lacks, or refuses to answer, what it would
 * have told is left out, nothing else changes, and a library that cannot be asked at all says so. The
 * functions are those of tests/data/fake-libraries; dlsym() is this test's (Makefile). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/probe/probe_driver.h"
#include "base/cleanup.h"
#include "base/text.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#define MOOD "well"
#include "tests/data/fake-libraries/amd_smi.c"
#include "tests/data/fake-libraries/nvml.c"
#include "tests/data/fake-libraries/others.c"
#pragma GCC diagnostic pop

#define ANY_MAX  128
#define SEEN_MAX 8

/* What the fakes have not: a word for each figure. */
static int one_word(void *device, unsigned *ret)
{
        *ret = device == NULL ? 0 : 7000;
        return 0;
}

static int two_words(void *device, unsigned *ret, unsigned *also)
{
        *also = 167000;
        return one_word(device, ret);
}

static int one_long(void *device, unsigned long long *ret)
{
        *ret = device == NULL ? 0 : 9000;
        return 0;
}

static int a_clock(void *device, int which, unsigned *ret)
{
        *ret = 1000u + (unsigned) which;
        return device == NULL;
}

static int nvml_ecc(void *device, int kind, int since, unsigned long long *ret)
{
        *ret = 5u + (unsigned) kind;
        return device == NULL || since != 0;
}

static int rocm_ecc(uint32_t device, int block, uint64_t *counts)
{
        counts[0] = 3 + device;
        counts[1] = 0;
        return block != 1;
}

static int dcmi_ecc(int card, int device, int block, int *counts)
{
        memset(counts, 0, 20);
        counts[1] = 3;
        return card != 3 || device != 0 || block != 2;
}

/* XPUML: NVML's names, structures of its own. */
static int xpuml_count(unsigned *ret)
{
        *ret = 1;
        return 0;
}

static int xpuml_pci(void *device, unsigned *words)
{
        words[1] = 0x18; /* bus */
        return device == NULL;
}

static int xpuml_memory(void *device, unsigned long long *words)
{
        words[1] = 8 * GIB;
        words[3] = 2 * GIB;
        return device == NULL;
}

static int zero(void)
{
        return 0;
}

/* clang-format off */
#define HAS(function) { #function, (void *) (function) }
static const struct fake {
        const char *name;
        void *function;
} fakes[] = {
        HAS(nvmlInit_v2), HAS(nvmlDeviceGetCount_v2), HAS(nvmlDeviceGetHandleByIndex_v2), HAS(nvmlDeviceGetPciInfo_v3),
        HAS(nvmlDeviceGetMemoryInfo), HAS(nvmlDeviceGetUtilizationRates), HAS(nvmlDeviceGetTemperature),
        HAS(nvmlDeviceGetEncoderUtilization), HAS(nvmlDeviceGetViolationStatus), HAS(nvmlDeviceGetPowerUsage),
        HAS(nvmlDeviceGetRemappedRows), HAS(nvmlDeviceGetNvLinkState), HAS(nvmlDeviceGetNvLinkRemoteDeviceType),
        HAS(nvmlDeviceGetNvLinkRemotePciInfo_v2),
        { "nvmlDeviceGetDecoderUtilization", (void *) two_words },
        { "nvmlDeviceGetEnforcedPowerLimit", (void *) one_word },
        { "nvmlDeviceGetTotalEnergyConsumption", (void *) one_long },
        { "nvmlDeviceGetClockInfo", (void *) a_clock }, { "nvmlDeviceGetTotalEccErrors", (void *) nvml_ecc },
        { "nvmlDeviceGetPcieReplayCounter", (void *) one_word },
        { "xpumlInit", (void *) zero }, { "xpumlDeviceGetCount", (void *) xpuml_count },
        { "xpumlDeviceGetHandleByIndex", (void *) nvmlDeviceGetHandleByIndex_v2 },
        { "xpumlDeviceGetPciInfo", (void *) xpuml_pci }, { "xpumlDeviceGetMemoryInfo", (void *) xpuml_memory },
        { "xpumlDeviceGetPowerUsage", (void *) one_word },
        HAS(rsmi_init), HAS(rsmi_num_monitor_devices), HAS(rsmi_dev_pci_id_get), HAS(rsmi_dev_memory_total_get),
        HAS(rsmi_dev_memory_usage_get), HAS(rsmi_dev_busy_percent_get), HAS(rsmi_dev_temp_metric_get), HAS(rsmi_dev_power_ave_get),
        { "rsmi_dev_ecc_count_get", (void *) rocm_ecc },
        HAS(amdsmi_init), HAS(amdsmi_get_socket_handles), HAS(amdsmi_get_processor_handles), HAS(amdsmi_get_gpu_device_bdf),
        HAS(amdsmi_get_gpu_memory_total), HAS(amdsmi_get_gpu_memory_usage), HAS(amdsmi_get_gpu_activity),
        HAS(amdsmi_get_temp_metric), HAS(amdsmi_get_gpu_total_ecc_count),
        HAS(dcmi_init), HAS(dcmi_get_card_list), HAS(dcmi_get_device_num_in_card), HAS(dcmi_get_device_pcie_info_v2),
        HAS(dcmi_get_device_utilization_rate), HAS(dcmi_get_device_temperature), HAS(dcmi_get_device_power_info),
        HAS(dcmi_get_device_hbm_info), HAS(dcmi_get_device_health), { "dcmi_get_device_ecc_info", (void *) dcmi_ecc },
        HAS(cndevInit), HAS(cndevGetDeviceCount), HAS(cndevGetDeviceHandleByIndex), HAS(cndevGetPCIeInfoV2),
        HAS(cndevGetMemoryUsageV2), HAS(cndevGetDeviceUtilizationInfo), HAS(cndevGetTemperatureInfo), HAS(cndevGetDevicePowerInfo),
        HAS(cndevGetCardHealthState),
        HAS(hlml_init), HAS(hlml_device_get_count), HAS(hlml_device_get_handle_by_index), HAS(hlml_device_get_pci_info),
        HAS(hlml_device_get_memory_info), HAS(hlml_device_get_utilization_rates), HAS(hlml_device_get_temperature),
        HAS(hlml_device_get_power_usage), { "hlml_device_get_pcie_replay_counter", (void *) one_word },
        HAS(mtmlLibraryInit), HAS(mtmlLibraryCountDevice), HAS(mtmlLibraryInitDeviceByIndex), HAS(mtmlDeviceGetPciInfo),
        HAS(mtmlDeviceGetPowerUsage), HAS(mtmlDeviceInitGpu), HAS(mtmlGpuGetUtilization), HAS(mtmlGpuGetTemperature),
        HAS(mtmlDeviceInitMemory), HAS(mtmlMemoryGetTotal), HAS(mtmlMemoryGetUsed),
        HAS(mxSmlInit), HAS(mxSmlGetDeviceCount), HAS(mxSmlGetDeviceInfo), HAS(mxSmlGetMemoryInfo), HAS(mxSmlGetDeviceIpUsage),
        HAS(mxSmlGetTemperatureInfo), HAS(mxSmlGetBoardPowerInfo),
        HAS(EfmlInit), HAS(EfmlGetDevCount), HAS(EfmlGetDevInfo), HAS(EfmlGetDevMem), HAS(EfmlGetDevDtuUsage), HAS(EfmlGetDevPwr),
        HAS(EfmlGetDevTempV2), HAS(EfmlGetDevEccStatus), HAS(EfmlGetDevHealth),
};
/* clang-format on */

/* The one function that is another one now; NULL = it is not there. */
static const char *changed;
static void *instead;
static int refusal;

/* Names that the driver has asked for and the fakes have. */
static const char *asked[ANY_MAX];
static size_t asked_count;

static int refuse(void)
{
        return refusal;
}

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
        (void) library;
        if (changed != NULL && strcmp(name, changed) == 0)
                return instead;
        for (size_t i = 0; i < ARRAY_SIZE(fakes); i++)
                if (strcmp(name, fakes[i].name) == 0) {
                        if (asked_count < ANY_MAX)
                                asked[asked_count++] = fakes[i].name;
                        return fakes[i].function;
                }
        return NULL;
}

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
        (void) name;
        (void) flags;
        return NULL; /* drivers are given their library */
}

struct seen {
        int opened; /* 0, or negative and no more */
        int result;
        struct probe_sample samples[SEEN_MAX];
        size_t count;
        struct link_report links[SEEN_MAX];
        size_t link_count;
        struct err err;
};

static void take(void *userdata, const struct probe_sample *sample)
{
        struct seen *seen = userdata;

        assert_in_range(seen->count, 0, SEEN_MAX - 1);
        seen->samples[seen->count++] = *sample;
}

static void take_links(void *userdata, const struct link_report *report)
{
        struct seen *seen = userdata;

        assert_in_range(seen->link_count, 0, SEEN_MAX - 1);
        seen->links[seen->link_count++] = *report;
}

static struct seen look(const struct probe_driver *driver, const char *change, void *to)
{
        struct seen seen = { 0 };
        void *state = NULL;

        changed = change;
        instead = to;
        seen.opened = probe_driver_open(driver, &seen, &state, &seen.err);
        changed = NULL;
        if (seen.opened < 0)
                return seen;
        seen.result = driver->calls->sample(state, take, &seen, &seen.err);
        if (seen.result == 0 && driver->links)
                seen.result = driver->calls->links(state, take_links, &seen, &seen.err);
        free(state);
        return seen;
}

static bool same_value(double a, double b)
{
        return isnan(a) ? isnan(b) : !isnan(b) && !(a < b || a > b);
}

/* Is everything that was seen what is seen of the whole library? Return: how much of it is missing. */
static size_t compare(const char *what, const struct seen *seen, const struct seen *all)
{
        size_t missing = all->count - seen->count + all->link_count - seen->link_count;

        for (size_t i = 0; i < seen->count; i++) {
                const struct probe_sample *s = &seen->samples[i], *full = NULL;

                for (size_t k = 0; k < all->count; k++)
                        if (strcmp(all->samples[k].pci, s->pci) == 0)
                                full = &all->samples[k];
                if (full == NULL)
                        fail_msg("%s: a device at '%s'", what, s->pci);
                for (size_t v = 0; v < PROBE_VALUE_COUNT; v++) {
                        if (!isnan(s->values[v]) && !same_value(s->values[v], full->values[v]))
                                fail_msg("%s: %s is %g, not %g", what, probe_sample_fields[v].key,
                                         s->values[v], full->values[v]);
                        missing += !same_value(s->values[v], full->values[v]);
                }
                missing += s->finding.level != full->finding.level;
        }
        for (size_t i = 0; i < seen->link_count && i < all->link_count; i++)
                missing += !link_report_same(&seen->links[i], &all->links[i]);
        return missing;
}

static void one_function_less(const struct probe_driver *driver, const struct seen *all, const char *name,
                              void *to, size_t *missing)
{
        struct seen seen = look(driver, name, to);
        char what[160];

        (void) text_format(what, sizeof(what), "%s without %s (%d)", driver->library, name,
                           to == NULL ? -1 : refusal);
        if (seen.opened < 0) {
                if ((seen.opened != -ENOENT && seen.opened != -EIO) || seen.err.msg[0] == '\0')
                        fail_msg("%s: %d '%s'", what, seen.opened, seen.err.msg);
                *missing += 1;
        } else if (seen.result < 0) {
                if (seen.result != -EIO || seen.err.msg[0] == '\0')
                        fail_msg("%s: %d '%s'", what, seen.result, seen.err.msg);
                *missing += 1;
        } else
                *missing += compare(what, &seen, all);
}

/* A library that is not asked for links does not lack them; a count that is returned cannot be refused. */
static bool has_no_part(const struct probe_driver *driver, const char *name)
{
        return (!driver->links && strstr(name, "NvLink") != NULL) || strcmp(name, "mxSmlGetDeviceCount") == 0;
}

/* 1 and 999 are words of every library for "no", 2 and 3 NVML's for "not supported". */
static const int refusals[] = { 1, 2, 3, 999 };

static void a_library_may_lack_or_refuse_any_function(void **state)
{
        size_t missing[2][ANY_MAX];

        (void) state;
        for (const struct probe_driver *driver = probe_drivers; driver->vendor != NULL; driver++) {
                const char *names[ANY_MAX];
                size_t count = 0;

                if (strcmp(driver->library, "HGML") == 0)
                        continue;
                memset(missing, 0, sizeof(missing));
                for (int sick = 0; sick < 2; sick++) {
                        struct seen all;

                        assert_int_equal(sick ? setenv("FAKE_SICK", "1", 1) : unsetenv("FAKE_SICK"), 0);
                        asked_count = 0;
                        all = look(driver, NULL, NULL);
                        if (all.opened != 0 || all.result != 0 || all.count == 0)
                                fail_msg("%s: %d %d %s", driver->library, all.opened, all.result,
                                         all.err.msg);
                        count = asked_count;
                        memcpy(names, asked, sizeof(names));
                        for (size_t i = 0; i < count; i++) {
                                one_function_less(driver, &all, names[i], NULL, &missing[0][i]);
                                for (size_t k = 0; k < ARRAY_SIZE(refusals); k++) {
                                        refusal = refusals[k];
                                        one_function_less(driver, &all, names[i], (void *) refuse,
                                                          &missing[1][i]);
                                }
                        }
                }
                for (size_t i = 0; i < count; i++)
                        if ((missing[0][i] == 0 || missing[1][i] == 0) && !has_no_part(driver, names[i]))
                                fail_msg("%s: nobody misses %s", driver->library, names[i]);
        }
        assert_int_equal(unsetenv("FAKE_SICK"), 0);
}

static void a_library_of_another_vendor_is_named(void **state)
{
        struct seen seen = look(probe_driver_find("thead"), NULL, NULL);

        (void) state;
        assert_int_equal(seen.opened, -ENOENT);
        assert_string_equal(seen.err.msg,
                            "the library has no hgmlInit, DeviceGetCount, HandleByIndex, PciInfo");
}

/* A word that decides, as the function that tells it gives it. */
static unsigned word;

static int tell_word(void *device, unsigned *ret)
{
        (void) device;
        *ret = word;
        return 0;
}

static int tell_long(void *device, unsigned long long *ret)
{
        (void) device;
        *ret = word;
        return 0;
}

static int tell_dcmi(int card, int device, unsigned *ret)
{
        *ret = word;
        return card != 3 || device != 0;
}

/* health, device, driver: four bits each */
static int tell_cndev(int *state, int32_t handle)
{
        state[1] = (int) (word >> 8 & 15);
        state[2] = (int) (word >> 4 & 15);
        state[3] = (int) (word & 15);
        return handle != 7;
}

static int tell_remapped(void *device, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed)
{
        (void) device;
        *c = *u = 0;
        *pending = word & 1;
        *failed = word >> 1;
        return 0;
}

static int tell_refusal(void)
{
        return (int) word;
}

/* clang-format off */
static const struct {
        const char *vendor, *function;
        void *fake;
        unsigned word;
        enum finding_level level;
        const char *reason;
} verdicts[] = {
        { "nvidia",    "nvmlDeviceGetRemappedRows",     (void *) tell_remapped, 0,           FINDING_GOOD,     "" },
        { "nvidia",    "nvmlDeviceGetRemappedRows",     (void *) tell_remapped, 1,           FINDING_DEGRADED, "RowRemapPending" },
        { "nvidia",    "nvmlDeviceGetRemappedRows",     (void *) tell_remapped, 3,           FINDING_BAD,      "RowRemapFailed" },
        { "nvidia",    "nvmlDeviceGetPowerUsage",       (void *) tell_refusal,                   15,          FINDING_BAD,      "DeviceLost" },
        { "nvidia",    "nvmlDeviceGetMemoryInfo",       (void *) tell_refusal,                   16,          FINDING_BAD,      "ResetRequired" },
        { "iluvatar",  "ixmlDeviceGetHealth",           (void *) tell_long,     0,           FINDING_GOOD,     "" },
        { "iluvatar",  "ixmlDeviceGetHealth",           (void *) tell_long,     0x04,        FINDING_DEGRADED, "LibraryHealth" },
        { "iluvatar",  "ixmlDeviceGetHealth",           (void *) tell_long,     0x20,        FINDING_BAD,      "LibraryHealth" },
        { "iluvatar",  "ixmlDeviceGetHealth",           (void *) tell_refusal,                   1,           FINDING_GOOD,     "" },
        { "kunlunxin", "xpumlDeviceGetState",           (void *) tell_word,     206,         FINDING_GOOD,     "" },
        { "kunlunxin", "xpumlDeviceGetState",           (void *) tell_word,     207,         FINDING_BAD,      "LibraryHealth" },
        { "kunlunxin", "xpumlDeviceGetState",           (void *) tell_refusal,                   1,           FINDING_GOOD,     "" },
        { "kunlunxin", "xpumlDeviceGetMemoryInfo",      (void *) tell_refusal,                   15,          FINDING_BAD,      "DeviceLost" },
        { "huawei",    "dcmi_get_device_health",        (void *) tell_dcmi,     1,           FINDING_GOOD,     "" },
        { "huawei",    "dcmi_get_device_health",        (void *) tell_dcmi,     2,           FINDING_DEGRADED, "LibraryHealth" },
        { "huawei",    "dcmi_get_device_health",        (void *) tell_dcmi,     3,           FINDING_BAD,      "LibraryHealth" },
        { "huawei",    "dcmi_get_device_health",        (void *) tell_dcmi,     0xffffffffu, FINDING_SILENT,   "NotStarted" },
        { "cambricon", "cndevGetCardHealthState",       (void *) tell_cndev,    0x114,       FINDING_GOOD,     "" },
        { "cambricon", "cndevGetCardHealthState",       (void *) tell_cndev,    0x113,       FINDING_SILENT,   "NotStarted" },
        { "cambricon", "cndevGetCardHealthState",       (void *) tell_cndev,    0x104,       FINDING_BAD,      "LibraryHealth" },
        { "cambricon", "cndevGetCardHealthState",       (void *) tell_cndev,    0x014,       FINDING_BAD,      "LibraryHealth" },
        { "habana",    "hlml_device_get_temperature",   (void *) tell_refusal,                   15,          FINDING_BAD,      "DeviceLost" },
        { "mthreads",  "mtmlGpuGetUtilization",         (void *) tell_refusal,                   669,         FINDING_BAD,      "DeviceLost" },
};
/* clang-format on */

static void what_a_library_says_of_a_device_is_its_health(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
                struct seen seen;

                word = verdicts[i].word;
                seen = look(probe_driver_find(verdicts[i].vendor), verdicts[i].function, verdicts[i].fake);
                if (seen.opened != 0 || seen.result != 0 || seen.count == 0 ||
                    seen.samples[0].finding.level != verdicts[i].level ||
                    strcmp(seen.samples[0].finding.reason, verdicts[i].reason) != 0)
                        fail_msg("%s %s %u: %d %d, %zu devices, %d '%s'", verdicts[i].vendor,
                                 verdicts[i].function, word, seen.opened, seen.result, seen.count,
                                 seen.samples[0].finding.level, seen.samples[0].finding.reason);
        }
}

/* A name of the bus that is none: as many bytes as any of the structures has, without a NUL. */
static int no_address(void *device, char *info)
{
        (void) device;
        memset(info, 'x', 68);
        return 0;
}

static int no_address_of_number(unsigned device, char *info)
{
        return no_address(NULL, info) + (int) device;
}

static void a_device_without_an_address_is_left_out(void **state)
{
        static const struct {
                const char *vendor, *function;
                void *fake;
        } rows[] = {
                { "nvidia", "nvmlDeviceGetPciInfo_v3", (void *) no_address },
                { "habana", "hlml_device_get_pci_info", (void *) no_address },
                { "mthreads", "mtmlDeviceGetPciInfo", (void *) no_address },
                { "metax", "mxSmlGetDeviceInfo", (void *) no_address_of_number },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct seen seen = look(probe_driver_find(rows[i].vendor), rows[i].function, rows[i].fake);

                if (seen.opened != 0 || seen.result != 0 || seen.count != 0)
                        fail_msg("%s: %d %d, %zu devices", rows[i].vendor, seen.opened, seen.result,
                                 seen.count);
        }
}

static int write_links(void **state)
{
        static char path[] = "/tmp/test_probe_libraries.XXXXXX";
        int fd = mkstemp(path);
        FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

        *state = path;
        if (file == NULL || fputs("0 1 2\n0 switch 3\n1 npu 1\n", file) < 0 || fclose(file) != 0)
                return -1;
        return setenv("FAKE_NVML_LINKS", path, 1) +
               setenv("FAKE_NVML_DEVICES", "0000:18:00.0,0000:2a:00.0", 1);
}

static int remove_links(void **state)
{
        return unlink(*state);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_library_may_lack_or_refuse_any_function),
                cmocka_unit_test(a_library_of_another_vendor_is_named),
                cmocka_unit_test(what_a_library_says_of_a_device_is_its_health),
                cmocka_unit_test(a_device_without_an_address_is_left_out),
        };

        return cmocka_run_group_tests(tests, write_links, remove_links);
}
