/* Any bytes as a kubeconfig: a server and credentials, or an error with a sentence. In memory alone. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "store/kubernetes/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct kubeconfig config = { 0 };
        struct err err = { 0 };
        char path[64];
        int fd = memfd_create("kubeconfig", MFD_CLOEXEC);

        if (fd < 0 || write(fd, data, size) != (ssize_t) size)
                abort();
        (void) text_format(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (kubeconfig_load(path, &config, &err) == 0) {
                if (config.server == NULL || config.namespace_ == NULL)
                        abort();
        } else if (err.msg[0] == '\0') {
                abort();
        }
        kubeconfig_free(&config);
        (void) close(fd);
        return 0;
}
