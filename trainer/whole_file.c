/* What could not be written, flushed, synced or closed is one failure. */
#include "trainer/whole_file.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"

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
