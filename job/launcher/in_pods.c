/* The copy of this program, and the file that names the manager. */
#include "job/launcher/in_pods.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"

static int copy_bytes(int from, int to, struct err *err)
{
        ssize_t sent = 1;

        while (sent > 0) {
                sent = sendfile(to, from, NULL, (size_t) 1 << 20);
                if (sent < 0 && errno == EINTR)
                        sent = 1;
        }
        return sent < 0 || fchmod(to, 0755) < 0 ? err_set(err, -errno, "--copy-to: %m") : 0;
}

int in_pods_copy(const char *path, struct err *err)
{
        CLEANUP(close_p) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct whole_file file;
        int r, ended;

        if (from < 0)
                return err_set(err, -errno, "--copy-to: /proc/self/exe: %m");
        r = whole_file_open(&file, "--copy-to", path, err);
        if (r < 0)
                return r;
        r = copy_bytes(from, fileno(file.f), err);
        ended = whole_file_end(&file, r == 0 ? err : NULL);
        r = r == 0 ? ended : r;
        return r == 0 ? whole_file_rename(&file, err) : r;
}

int in_pods_read(const char *path, uint64_t *ret_world, char ret_address[IN_PODS_ADDRESS_BYTES],
                 struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        char text[IN_PODS_ADDRESS_BYTES + 32] = "", *address;
        ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        if (size <= 0)
                return -EAGAIN;
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, "end") == 0)
                return 1;
        address = strchr(text, ' ');
        if (address != NULL)
                *address = '\0';
        if (address == NULL || strrchr(address + 1, ':') == NULL || text_parse_uint64(text, ret_world) < 0 ||
            !text_copy(ret_address, IN_PODS_ADDRESS_BYTES, address + 1))
                return err_set(err, -EINVAL, "--join-file: '%.100s' does not hold WORLD ADDRESS:PORT", path);
        return 0;
}
