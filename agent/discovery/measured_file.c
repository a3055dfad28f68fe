/* One file, whole, if it is one of ours. */
#include "agent/discovery/measured_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int measured_file_read(const char *path, struct measured_json_list *ret, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        CLEANUP(free_p) char *bytes = fd >= 0 ? malloc(MEASURED_FILE_MAX_BYTES + 1) : NULL;
        json_error_t where;
        struct stat st;
        json_t *value;
        ssize_t n;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, -errno, "'%s': %m", path);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for '%s'", path);
        if (!S_ISREG(st.st_mode) || st.st_size > (off_t) MEASURED_FILE_MAX_BYTES)
                return err_set(err, -EBADMSG, "'%s': not a file of at most %zu bytes", path,
                               MEASURED_FILE_MAX_BYTES);
        n = read(fd, bytes, MEASURED_FILE_MAX_BYTES);
        if (n < 0)
                return err_set(err, -errno, "'%s': %m", path);
        value = json_loadb(bytes, (size_t) n, JSON_REJECT_DUPLICATES, &where);
        if (value == NULL)
                return err_set(err, -EBADMSG, "'%s': line %d: %s", path, where.line, where.text);
        r = measured_json_decode(value, ret, err);
        json_decref(value);
        return r < 0 ? err_wrap(err, r, "'%s'", path) : 0;
}
