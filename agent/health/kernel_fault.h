/* Kernel fault: what a line of the kernel log says about an accelerator.
 *
 * Pure. Known are NVIDIA's XIDs, judged by NVIDIA's own catalogue of actions, amdgpu's and the Ascend
 * driver's messages, and PCIe's own ("fallen off the bus", AER, surprise down). A line that is none of these
 * is most of the log. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/health/health.h"

struct kernel_fault {
        char pci[20];           /* "0000:18:00.0", or without the function as XIDs have it: "0000:18:00" */
        char space[16];         /* of the code: "xid", "amdgpu", "ascend", "pcie" */
        uint64_t code;          /* 0 = none */
        struct finding finding; /* GOOD: the application's own fault, counted but not judged */
};

/* kernel_fault_parse() - @line: the text of one record, without its head. Return: true and *ret filled when
 * the line tells of a device's fault. */
bool kernel_fault_parse(const char *line, struct kernel_fault *ret);

/* kernel_fault_concerns() - is it about the function at this address? */
bool kernel_fault_concerns(const struct kernel_fault *fault, const char *pci);

/* kernel_fault_xid_level() - what NVIDIA's catalogue makes of an XID: BAD (reset, reboot, mechanics),
 * DEGRADED (drain when convenient), GOOD (the application's, or informational). */
enum finding_level kernel_fault_xid_level(uint64_t xid);
