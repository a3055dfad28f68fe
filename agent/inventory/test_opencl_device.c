/* OpenCL devices: what a library tells of them, and whose device is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/inventory/opencl_device.h"
#include "base/cleanup.h"
#include "base/text.h"

#define GIB   UINT64_C(1073741824)
#define UUID  "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define UUID2 "GPU-10112233-4455-6677-8899-aabbccddeeff"

/* clang-format off */
/* Machines, by their devices in the library's order. */
static const struct opencl_device
        cpu_first[] = { { .name = "pocl", .processor = true, .host_memory = true, .memory_bytes = 900 * GIB, .units = 192 },
                        { .platform = 1, .name = "h200", .pci = "0000:18:00.0", .uuid = UUID, .memory_bytes = 139 * GIB, .units = 132 } },
        beside[] =    { { .name = "integrated", .host_memory = true, .memory_bytes = 60 * GIB, .units = 24 },
                        { .platform = 1, .name = "small", .memory_bytes = 8 * GIB, .units = 40 },
                        { .platform = 1, .number = 1, .name = "wide", .memory_bytes = 8 * GIB, .units = 60 } },
        pair[] =      { { .name = "a", .pci = "0000:18:00.0", .uuid = UUID, .memory_bytes = 8 * GIB },
                        { .number = 1, .name = "b", .pci = "0000:2a:00.0", .uuid = UUID2, .memory_bytes = 8 * GIB },
                        { .platform = 1, .name = "pocl", .processor = true } },
        silent[] =    { { .name = "x" }, { .number = 1, .name = "y" }, { .platform = 1, .name = "pocl", .processor = true } },
        one_silent[] = { { .name = "pocl", .processor = true }, { .platform = 1, .name = "x" } },
        broken[] =    { { .name = "gone", .unusable = true, .memory_bytes = GIB }, { .platform = 1, .name = "pocl", .processor = true } },
        dead[] =      { { .name = "gone", .unusable = true } },
        lying[] =     { { .name = "pocl", .processor = true, .pci = "0000:18:00.0" } };

#define OF(machine) machine, ARRAY_SIZE(machine)
static const struct {
        const char *what;
        const struct opencl_device *devices;
        size_t count;
        struct opencl_device_wish wish;
        const char *taken, *sentence; /* a part of it; NULL = none is wanted */
} rows[] = {
        { "an accelerator before a processor with more of everything", OF(cpu_first), { 0 }, "h200", NULL },
        { "memory of its own, then compute units",         OF(beside),    { 0 }, "wide", NULL },
        { "equals are dealt to the ranks of a machine",    OF(pair),      { .local_rank = 1 }, "b", NULL },
        { "and counted round",                             OF(pair),      { .local_rank = 2 }, "a", NULL },
        { "what cannot be used is not taken",              OF(broken),    { 0 }, "pocl", NULL },
        { "nor where there is nothing else",               OF(dead),      { 0 }, NULL, "none of the 1 OpenCL devices can be used" },
        { "numbers come before all else",                  OF(cpu_first), { .numbers = "0:0", .chips = UUID }, "pocl", NULL },
        { "numbers that no device has",                    OF(cpu_first), { .numbers = "0:1" }, NULL, "no OpenCL device 0:1: --device list shows the 2" },
        { "no numbers",                                    OF(cpu_first), { .numbers = "h200" }, NULL, "--device 'h200'" },
        { "numbers of too many digits",                    OF(cpu_first), { .numbers = "00000000000000000:0" }, NULL, "--device '00000000000000000:0'" },
        { "no device at all",                              NULL, 0,       { 0 }, NULL, "pocl-opencl-icd" },
        { "a rank of processors takes no accelerator",     OF(cpu_first), { .vendor = "cpu", .chips = "cpu-numa0" }, "pocl", NULL },
        { "nor where it finds no processor",               OF(beside),    { .vendor = "cpu" }, NULL, "was given processors" },
        { "its chip by the UUID",                          OF(pair),      { .vendor = "nvidia", .chips = UUID2 }, "b", NULL },
        { "by its address",                                OF(pair),      { .vendor = "intel", .chips = "0000:2A:00.0" }, "b", NULL },
        { "by the address beside an id of its own",        OF(pair),      { .vendor = "amd", .chips = "GPU-0123456789abcdef", .places = "0000:2a:00.0" }, "b", NULL },
        { "of a list, the rank's",                         OF(pair),      { .chips = UUID "," UUID2, .local_rank = 1 }, "b", NULL },
        { "of a list, counted round",                      OF(pair),      { .chips = UUID "," UUID2, .local_rank = 2 }, "a", NULL },
        { "another's address is not taken",                OF(pair),      { .chips = "0000:99:00.0" }, NULL, "no OpenCL device here is it: install" },
        { "nor another's UUID",                            OF(cpu_first), { .chips = UUID2 }, NULL, "no OpenCL device here is it" },
        { "nor a processor",                               OF(lying),     { .chips = "0000:18:00.0" }, NULL, "no OpenCL device here is it" },
        { "one that tells nothing is it, if it is alone",  OF(one_silent), { .chips = UUID }, "x", NULL },
        { "of two that tell nothing neither is",           OF(silent),    { .chips = "0000:18:00.0" }, NULL, "several OpenCL devices can be it" },
        { "an id that no library knows",                   OF(cpu_first), { .chips = "ve-0" }, "h200", NULL },
        { "an id too long to be one",                      OF(cpu_first), { .chips = "x23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" }, "h200", NULL },
};
/* clang-format on */

static void a_device_is_taken(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct opencl_device *taken = NULL;
                struct err err = { 0 };
                int r = opencl_device_choose(rows[i].devices, rows[i].count, &rows[i].wish, &taken, &err);

                if ((r == 0) != (rows[i].taken != NULL) || (r == 0) != (taken != NULL) ||
                    (r == 0 && strcmp(taken->name, rows[i].taken) != 0))
                        fail_msg("%s: %d, %s, %s", rows[i].what, r, taken != NULL ? taken->name : "none",
                                 err.msg);
                if (rows[i].sentence != NULL && strstr(err.msg, rows[i].sentence) == NULL)
                        fail_msg("%s: %s", rows[i].what, err.msg);
        }
        assert_null(opencl_device_at(OF(cpu_first), ""));
        assert_null(opencl_device_at(OF(lying), "0000:18:00.0"));
        assert_ptr_equal(opencl_device_at(OF(pair), "0000:2a:00.0"), &pair[1]);
}

/* A library of one platform that fails and one with two devices: what each tells is in these tables. */
static int no_platform, platform, handles[3];

static int give_platforms(unsigned max, void **ret, unsigned *ret_count)
{
        (void) max;
        ret[0] = &no_platform;
        ret[1] = &platform;
        *ret_count = 2;
        return 0;
}

static int give_devices(void *of, uint64_t type, unsigned max, void **ret, unsigned *ret_count)
{
        (void) type, (void) max;
        for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
                ret[i] = &handles[i];
        *ret_count = ARRAY_SIZE(handles);
        return of == &platform ? 0 : -1;
}

/* clang-format off */
static const struct {
        int device;
        unsigned what;
        const char *value;
        size_t bytes;
} answers[] = {
        { 0, 0x1000, "\4\0\0\0\0\0\0\0", 8 }, { 0, 0x102B, "card\n7", 7 }, { 0, 0x1002, "\7\0\0\0", 4 },
        { 0, 0x101F, "\0\0\0\0\2\0\0\0", 8 }, { 0, 0x4008, "\x18\0\0\0", 4 }, { 0, 0x4009, "\11\0\0\0", 4 }, { 0, 0x400A, "\1\0\0\0", 4 },
        { 0, 0x106A, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16 },
        { 1, 0x1000, "\4\0\0\0\0\0\0\0", 8 }, { 1, 0x102B, "amd", 4 }, { 1, 0x1035, "\1\0\0\0", 4 }, { 1, 0x1028, "\0\0\0\0", 4 },
        { 1, 0x4037, "\1\0\0\0xxxxxxxxxxxxxxxxx\x2a\0\0", 24 },
};
/* clang-format on */

static int give_info(void *device, unsigned what, size_t bytes, void *ret, size_t *ret_bytes)
{
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                if (device == &handles[answers[i].device] && what == answers[i].what &&
                    bytes >= answers[i].bytes) {
                        memcpy(ret, answers[i].value, answers[i].bytes);
                        *ret_bytes = answers[i].bytes;
                        return 0;
                }
        return -30;
}

static void what_a_library_tells_is_read(void **state)
{
        static const struct opencl_device_calls calls = { give_platforms, give_devices, give_info };
        static const char *const lines[] = {
                "1:0 card?7 (accelerator, 8.0 GiB, 7 compute units, 0001:18:01.1)",
                "1:1 amd (accelerator, 0.0 GiB shared, 0 compute units, 0000:2a:00.0)",
                "1:2 a device without a name (processor, 0.0 GiB, 0 compute units)",
        };
        struct opencl_device found[OPENCL_DEVICE_MAX];
        char line[160];

        (void) state;
        assert_int_equal(opencl_device_list(&calls, found), ARRAY_SIZE(lines));
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                opencl_device_describe(&found[i], line, sizeof(line));
                assert_string_equal(line, lines[i]);
        }
        assert_string_equal(found[0].uuid, UUID);
        assert_true(found[1].unusable && !found[0].unusable);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_is_taken),
                cmocka_unit_test(what_a_library_tells_is_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
