/* Kernel fault: lines of the kernel log and what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/health/kernel_fault.h"
#include "base/cleanup.h"

/* clang-format off */
static const struct {
        const char *line, *pci, *rule, *reason;
        enum finding_level level;
        uint64_t code;
} lines[] = {
        { "NVRM: Xid (PCI:0000:18:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
          "0000:18:00", "xid-79", "Xid79", FINDING_BAD, 79 },
        { "NVRM: Xid (0000:18:00): 13, Graphics Exception: ESR 0x404600=0x80000002",
          "0000:18:00", "xid-13", "Xid13", FINDING_GOOD, 13 },
        { "NVRM: Xid (PCI:0000:AF:00): 94, pid=7, Contained: SM (0x1). RST: No, D-RST: No",
          "0000:af:00", "xid-94", "Xid94", FINDING_DEGRADED, 94 },
        { "NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1 0x2)",
          "0000:05:00", "xid-149", "Xid149", FINDING_BAD, 149 },
        { "NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x1 0x2)",
          "0000:05:00", "xid-149", "Xid149", FINDING_GOOD, 149 },
        { "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
          "0000:18:00.0", "kernel-off-bus", "FellOffBus", FINDING_BAD, 0 },
        { "amdgpu 0000:43:00.0: amdgpu: GPU reset begin!",
          "0000:43:00.0", "amdgpu-reset", "DriverReset", FINDING_BAD, 0 },
        { "amdgpu 0000:43:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block",
          "0000:43:00.0", "amdgpu-uncorrectable", "UncorrectableError", FINDING_BAD, 0 },
        { "amdgpu 0000:43:00.0: amdgpu: ring sdma0 timeout, signaled seq=1, emitted seq=3",
          "0000:43:00.0", "amdgpu-ring-timeout", "RingTimeout", FINDING_BAD, 0 },
        { "[ascend] [devdrv] device 0000:c1:00.0 heartbeat lost",
          "0000:c1:00.0", "ascend-heartbeat", "HeartbeatLost", FINDING_BAD, 0 },
        { "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
          "0000:18:00.0", "aer-fatal", "PcieFatal", FINDING_BAD, 0 },
};

static const char *const others[] = {
        "", "usb 1-1: new high-speed USB device number 2", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
        "NVRM: Xid (PCI:", "NVRM: Xid (PCI:zzzz:00:00): 79", "NVRM: Xid (PCI:0000:18:00): ",
        "NVRM: Xid (PCI:0000:18:00): x", "amdgpu: GPU reset begin!", "GPU has fallen off the bus",
        "amdgpu 0000:43:00.0: amdgpu: GPU reset(2) succeeded!", "nvme nvme0: I/O 5 QID 3 timeout",
        "0000:18:0", "x0000:18:00",
};
/* clang-format on */

static void faults_are_read(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct kernel_fault f;

                if (!kernel_fault_parse(lines[i].line, &f))
                        fail_msg("not read: %s", lines[i].line);
                if (strcmp(f.pci, lines[i].pci) != 0 || strcmp(f.finding.rule, lines[i].rule) != 0 ||
                    strcmp(f.finding.reason, lines[i].reason) != 0 || f.finding.level != lines[i].level ||
                    f.code != lines[i].code)
                        fail_msg("%s: got %s %s %s %d %llu", lines[i].line, f.pci, f.finding.rule,
                                 f.finding.reason, (int) f.finding.level, (unsigned long long) f.code);
        }
}

static void other_lines_are_left_alone(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                struct kernel_fault f;

                if (kernel_fault_parse(others[i], &f))
                        fail_msg("taken for a fault: %s", others[i]);
        }
}

static void a_fault_concerns_its_function_alone(void **state)
{
        struct kernel_fault f = { .pci = "0000:18:00" };

        (void) state;
        assert_true(kernel_fault_concerns(&f, "0000:18:00.0"));
        assert_true(kernel_fault_concerns(&f, "0000:18:00.1"));
        assert_false(kernel_fault_concerns(&f, "0000:19:00.0"));
        assert_false(kernel_fault_concerns(&f, ""));
        (void) memcpy(f.pci, "0000:18:00.0", 13);
        assert_false(kernel_fault_concerns(&f, "0000:18:00.1"));
}

static void xids_follow_the_catalogue(void **state)
{
        static const uint16_t reset[] = {
                46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 79
        };
        static const uint16_t application[] = { 8, 13, 31, 32, 43, 45, 68, 69, 137 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(reset); i++)
                assert_int_equal(kernel_fault_xid_level(reset[i]), FINDING_BAD);
        for (size_t i = 0; i < ARRAY_SIZE(application); i++)
                assert_int_equal(kernel_fault_xid_level(application[i]), FINDING_GOOD);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(faults_are_read),
                cmocka_unit_test(other_lines_are_left_alone),
                cmocka_unit_test(a_fault_concerns_its_function_alone),
                cmocka_unit_test(xids_follow_the_catalogue),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
