/* Any bytes as containerd's configuration: an answer, and the same for a folder whichever way it is written.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/containerd_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = calloc(size + 1, 1);

        if (text == NULL)
                abort();
        if (size > 0)
                memcpy(text, data, size);
        if (containerd_config_cdi(text) > CONTAINERD_CONFIG_OFF)
                __builtin_trap();
        if (containerd_config_reads(text, "/run/cdi") != containerd_config_reads(text, "/var/run/cdi/"))
                __builtin_trap();
        free(text);
        return 0;
}
