/* What could not be written, flushed, synced or closed is one failure. */
#include "io/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/write_all.h"

int whole_file_open(struct whole_file *w, const char *what, const char *path, struct err *err)
{
        w->what = what;
        if (!text_copy(w->path, sizeof(w->path), path) ||
            !text_format(w->part, sizeof(w->part), "%s.part", path))
                return err_set(err, -EINVAL, "%s: the file's name is too long", what);
        w->f = fopen(w->part, "we");
        return w->f != NULL ? 0 : err_set(err, -errno, "%s: file '%s': %m", what, w->part);
}

int whole_file_end(struct whole_file *w, struct err *err)
{
        bool whole = ferror(w->f) == 0 && fflush(w->f) == 0 && fsync(fileno(w->f)) == 0;

        if (fclose(w->f) == 0 && whole)
                return 0;
        return err_set(err, -EIO, "%s: file '%s' not written whole: %m", w->what, w->part);
}

int whole_file_rename(const struct whole_file *w, struct err *err)
{
        return rename(w->part, w->path) < 0 ? err_set(err, -errno, "%s: file '%s': %m", w->what, w->path) : 0;
}

/* link(2) refuses a name that is taken, rename(2) replaces it. */
static int name_it(const char *part, const char *path, unsigned flags)
{
        if ((flags & WHOLE_FILE_NEW) == 0)
                return rename(part, path);
        return link(part, path) < 0 ? -1 : unlink(part);
}

int whole_file_write(const char *path, const char *bytes, size_t size_bytes, mode_t mode, unsigned flags,
                     struct err *err)
{
        const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
        char part[WHOLE_FILE_PATH_BYTES];
        CLEANUP(close_p) int fd = -1;
        int r;

        if (!text_format(part, sizeof(part), "%.*s.%s.part", (int) (name - path), path, name))
                return err_set(err, -ENAMETOOLONG, "'%.60s...' is too long", path);
        if ((flags & WHOLE_FILE_FRESH) != 0)
                (void) unlink(part);
        fd = open(part,
                  O_WRONLY | O_CREAT | ((flags & WHOLE_FILE_FRESH) != 0 ? O_EXCL : O_TRUNC) | O_CLOEXEC |
                          O_NOFOLLOW,
                  mode);
        if (fd < 0)
                return err_set(err, -errno, "'%s': %m", part);
        FAILPOINT_OF("file.opened", name);
        r = write_all(fd, bytes, size_bytes);
        FAILPOINT_OF("file.written", name);
        if (r == 0 && (((flags & WHOLE_FILE_SYNCED) != 0 && fsync(fd) < 0) || name_it(part, path, flags) < 0))
                r = -errno;
        FAILPOINT_OF("file.renamed", name);
        if (r == 0)
                return 0;
        (void) unlink(part);
        return err_set(err, r, "'%s': %s", path, strerrordesc_np(-r));
}
