/* Any bytes as a line of the kernel log, as a cgroup, as a probe child's answer and as a state file's JSON:
 * what is believed is in its bounds. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health/kernel_fault.h"
#include "agent/launch/caller.h"
#include "agent/probe/probe_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sample(const struct probe_sample *s)
{
        for (size_t i = 0; i < PROBE_VALUE_COUNT; i++)
                if (isfinite(s->values[i]) && (s->values[i] < probe_sample_fields[i].minimum ||
                                               s->values[i] > probe_sample_fields[i].maximum))
                        __builtin_trap();
        if (s->finding.level != FINDING_GOOD && s->finding.reason[0] == '\0')
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *line = malloc(size + 1), uid[40];
        struct kernel_fault fault;
        struct probe_sample sample;

        if (line == NULL)
                return 0;
        memcpy(line, data, size);
        line[size] = '\0';
        if (kernel_fault_parse(line, &fault) && (strlen(fault.pci) < 10 || fault.space[0] == '\0'))
                __builtin_trap();
        caller_pod_uid(line, uid, sizeof(uid));
        if (uid[0] != '\0' && strlen(uid) != 36)
                __builtin_trap();
        if (probe_sample_decode((const char *) data, size, &sample, NULL, NULL) == 0)
                check_sample(&sample);
        free(line);
        return 0;
}
