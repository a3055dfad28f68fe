/* Kernel fault: NVIDIA's Xid catalogue, and the words of other drivers. */
#include "agent/health/kernel_fault.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */

/* NVIDIA's catalogue, by the action it asks for. What is not listed is the application's (RESTART_APP),
 * informational (IGNORE) or unused. 48 asks to look for 63/64 and reset, 74 and 144-150 are NVLink's. */
static const struct { uint16_t xid; enum finding_level level; const char *what; } xids[] = {
        {  46, FINDING_BAD,      "the GPU stopped processing: reset it" },
        {  48, FINDING_BAD,      "double bit ECC error: reset the GPU" },
        {  54, FINDING_BAD,      "auxiliary power is not connected: check the cable" },
        {  62, FINDING_BAD,      "internal microcontroller halt: reset the GPU" },
        {  63, FINDING_DEGRADED, "memory was remapped: reset the GPU when it is idle" },
        {  64, FINDING_BAD,      "memory could not be remapped: reset the GPU" },
        {  74, FINDING_BAD,      "NVLink error: reset the GPU" },
        {  78, FINDING_BAD,      "vGPU start error: update the software" },
        {  79, FINDING_BAD,      "the GPU has fallen off the bus: reboot the node" },
        {  94, FINDING_DEGRADED, "contained memory error: the application was ended" },
        {  95, FINDING_BAD,      "uncontained memory error: reset the GPU" },
        { 109, FINDING_BAD,      "context switch timeout: reset the GPU" },
        { 110, FINDING_BAD,      "security fault: reset the GPU" },
        { 119, FINDING_BAD,      "the GSP does not answer: reset the GPU" },
        { 120, FINDING_BAD,      "GSP error: reset the GPU" },
        { 136, FINDING_BAD,      "link training failed: reset the GPU" },
        { 140, FINDING_BAD,      "unrecovered ECC error: reset the GPU" },
        { 143, FINDING_BAD,      "GPU initialisation error: reset the GPU" },
        { 151, FINDING_BAD,      "key rotation error: restart the virtual machine" },
        { 155, FINDING_BAD,      "NVLink software fault: reset the GPU" },
        { 156, FINDING_BAD,      "resource retirement: reset the GPU" },
        { 158, FINDING_BAD,      "GPU fatal timeout: reset the GPU" },
        { 159, FINDING_DEGRADED, "chip to chip link error: check UVM" },
        { 167, FINDING_BAD,      "PCIe fatal timeout" },
        { 168, FINDING_DEGRADED, "the GPU runs with less memory" },
        { 171, FINDING_BAD,      "uncorrectable DRAM error: reset the GPU" },
        { 172, FINDING_BAD,      "uncorrectable SRAM error: reset the GPU" },
};

/* Words of other drivers' lines that name the device by its address somewhere before or after. */
static const struct {
        const char *words, *driver; /* driver: must also be in the line; NULL = any */
        enum finding_level level;
        const char *space, *rule, *reason, *message;
} phrases[] = {
        { "fallen off the bus", NULL, FINDING_BAD, "pcie", "kernel-off-bus", "FellOffBus",
          "the kernel says that it has fallen off the bus" },
        { "ncorrectable hardware errors", "amdgpu", FINDING_BAD, "amdgpu", "amdgpu-uncorrectable",
          "UncorrectableError", "amdgpu found uncorrectable hardware errors" },
        { "GPU reset begin", "amdgpu", FINDING_BAD, "amdgpu", "amdgpu-reset", "DriverReset",
          "amdgpu is resetting it" },
        { "GPU reset failed", "amdgpu", FINDING_BAD, "amdgpu", "amdgpu-reset", "DriverReset",
          "amdgpu could not reset it" },
        { "VRAM is lost", "amdgpu", FINDING_BAD, "amdgpu", "amdgpu-vram-lost", "MemoryLost",
          "its memory was lost by a reset" },
        { "timeout", "amdgpu", FINDING_BAD, "amdgpu", "amdgpu-ring-timeout", "RingTimeout",
          "a ring of it does not answer" },
        { "heart beat", "devdrv", FINDING_BAD, "ascend", "ascend-heartbeat", "HeartbeatLost",
          "the Ascend driver misses its heartbeat" },
        { "heartbeat", "devdrv", FINDING_BAD, "ascend", "ascend-heartbeat", "HeartbeatLost",
          "the Ascend driver misses its heartbeat" },
        { "device dead", "devdrv", FINDING_BAD, "ascend", "ascend-dead", "DeviceDead",
          "the Ascend driver gave it up" },
        { "severity=Uncorrected (Fatal)", NULL, FINDING_BAD, "pcie", "aer-fatal", "PcieFatal",
          "fatal PCIe error" },
        { "severity=Uncorrectable (Fatal)", NULL, FINDING_BAD, "pcie", "aer-fatal", "PcieFatal",
          "fatal PCIe error" },
        { "severity=Uncorrected (Non-Fatal)", NULL, FINDING_DEGRADED, "pcie", "aer-nonfatal", "PcieErrors",
          "uncorrected PCIe errors" },
        { "device lost from bus", NULL, FINDING_BAD, "pcie", "kernel-off-bus", "FellOffBus",
          "the kernel says that it has left the bus" },
        { "wedged", NULL, FINDING_BAD, "drm", "drm-wedged", "Wedged",
          "its driver has declared it wedged" },
};
/* clang-format on */

/* "0000:18:00" or "0000:18:00.0" at `s`. Return: its length, 0 = there is none. */
static size_t address_bytes(const char *s)
{
        static const char form[] = "xxxx:xx:xx";

        for (size_t i = 0; i < sizeof(form) - 1; i++)
                if (form[i] == 'x' ? !isxdigit((unsigned char) s[i]) : s[i] != form[i])
                        return 0;
        return s[10] == '.' && s[11] >= '0' && s[11] <= '7' ? 12 : 10;
}

static bool find_address(const char *line, char *ret, size_t ret_bytes)
{
        for (const char *s = line; *s != '\0'; s++) {
                size_t n = s == line || !isxdigit((unsigned char) s[-1]) ? address_bytes(s) : 0;

                if (n == 0)
                        continue;
                for (size_t i = 0; i < n && i < ret_bytes - 1; i++)
                        ret[i] = (char) tolower((unsigned char) s[i]);
                ret[n] = '\0';
                return true;
        }
        return false;
}

enum finding_level kernel_fault_xid_level(uint64_t xid)
{
        for (size_t i = 0; i < ARRAY_SIZE(xids); i++)
                if (xids[i].xid == xid)
                        return xids[i].level;
        return FINDING_GOOD;
}

static const char *xid_message(uint64_t xid)
{
        for (size_t i = 0; i < ARRAY_SIZE(xids); i++)
                if (xids[i].xid == xid)
                        return xids[i].what;
        return "the application's own fault, or informational";
}

/* "NVRM: Xid (PCI:0000:05:00): 79, pid=..." */
static bool parse_xid(const char *line, struct kernel_fault *f)
{
        const char *at = strstr(line, "NVRM: Xid ("), *number;
        char rule[48], reason[32];
        enum finding_level level;

        if (at == NULL || !find_address(at, f->pci, sizeof(f->pci)))
                return false;
        number = strstr(at, "): ");
        if (number == NULL || !isdigit((unsigned char) number[3]))
                return false;
        f->code = strtoull(number + 3, NULL, 10);
        (void) text_copy(f->space, sizeof(f->space), "xid");
        level = kernel_fault_xid_level(f->code);
        /* NVLink 5 says the severity in its text */
        if (f->code >= 144 && f->code <= 150)
                level = strstr(number, " Fatal ") != NULL ? FINDING_BAD : FINDING_GOOD;
        (void) text_format(rule, sizeof(rule), "xid-%llu", (unsigned long long) f->code);
        (void) text_format(reason, sizeof(reason), "Xid%llu", (unsigned long long) f->code);
        (void) text_copy(f->finding.rule, sizeof(f->finding.rule), rule);
        (void) text_copy(f->finding.reason, sizeof(f->finding.reason), reason);
        finding_add(&f->finding, level, rule, reason, "XID %llu: %s", (unsigned long long) f->code,
                    xid_message(f->code));
        return true;
}

bool kernel_fault_parse(const char *line, struct kernel_fault *ret)
{
        struct kernel_fault f = { .code = 0 };

        if (parse_xid(line, &f)) {
                *ret = f;
                return true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(phrases); i++) {
                if (strstr(line, phrases[i].words) == NULL ||
                    (phrases[i].driver != NULL && strstr(line, phrases[i].driver) == NULL) ||
                    !find_address(line, f.pci, sizeof(f.pci)))
                        continue;
                (void) text_copy(f.space, sizeof(f.space), phrases[i].space);
                finding_add(&f.finding, phrases[i].level, phrases[i].rule, phrases[i].reason, "%s",
                            phrases[i].message);
                *ret = f;
                return true;
        }
        return false;
}

bool kernel_fault_concerns(const struct kernel_fault *fault, const char *pci)
{
        size_t n = strlen(fault->pci);

        return n > 0 && strncmp(fault->pci, pci, n) == 0 && (pci[n] == '\0' || pci[n] == '.');
}
