/* The list of files that joined, line by line, replaced by rename. */
#include "trainer/data/joined.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/read_file.h"
#include "io/whole_file.h"

static bool number(const char **at, uint64_t *ret)
{
        char digits[24];
        size_t length = strspn(*at, "0123456789");

        if (length == 0 || length >= sizeof(digits) || (*at)[length] != ' ')
                return false;
        memcpy(digits, *at, length);
        digits[length] = '\0';
        *at += length + 1;
        return text_parse_uint64(digits, ret) == 0;
}

bool joined_next(const char **at, struct joined_line *ret)
{
        const char *p = *at;
        size_t length;

        if (!number(&p, &ret->epoch) || !number(&p, &ret->samples))
                return false;
        length = strcspn(p, "\n");
        if (length == 0 || length >= sizeof(ret->name) || p[length] != '\n')
                return false;
        memcpy(ret->name, p, length);
        ret->name[length] = '\0';
        *at = p + length + 1;
        return true;
}

static bool path_of(char *path, size_t path_bytes, const char *directory, struct err *err)
{
        if (text_format(path, path_bytes, "%s/joined", directory))
                return true;
        (void) err_set(err, -EINVAL, "--checkpoint: the directory's name is too long");
        return false;
}

int joined_read(const char *directory, struct text *ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        char path[4096];
        size_t count = 0;
        int r;

        if (!path_of(path, sizeof(path), directory, err))
                return err->code;
        r = read_file(path, READ_FILE_MAX_BYTES, &bytes, &count, err);
        if (r < 0)
                return r == -ENOENT ? 0 : err_wrap(err, -EINVAL, "--resume");
        text_append_bytes(ret, bytes, count);
        return ret->failed ? err_set(err, -ENOMEM, "--resume: no memory for '%s'", path) : 0;
}

int joined_write(const char *directory, const struct text *lines, struct err *err)
{
        char path[4096];
        int r;

        if (!path_of(path, sizeof(path), directory, err))
                return err->code;
        if (lines->failed)
                return err_set(err, -ENOMEM, "no memory for the names of the files that joined");
        if (lines->size_bytes == 0) {
                (void) unlink(path);
                return 0;
        }
        if (mkdir(directory, 0777) < 0 && errno != EEXIST)
                return err_set(err, -errno, "--checkpoint: directory '%s': %m", directory);
        r = whole_file_write(path, lines->data, lines->size_bytes, 0666, WHOLE_FILE_SYNCED, err);
        return r < 0 ? err_wrap(err, r, "--checkpoint") : 0;
}
