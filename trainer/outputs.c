/* Each file is opened for writing, and what was not there before is taken away again. */
#include "trainer/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define PATH_BYTES 4096

/* @by_rename: FILE.part is written first */
static int check_file(const char *option, const char *path, bool by_rename, struct err *err)
{
        char part[PATH_BYTES];
        struct stat facts;
        bool is_there = stat(path, &facts) == 0;
        int fd;

        if (!text_format(part, sizeof(part), "%s%s", path, by_rename ? ".part" : ""))
                return err_set(err, -EINVAL, "%s: the file's name is too long", option);
        if (is_there && S_ISDIR(facts.st_mode))
                return err_set(err, -EINVAL, "%s: '%s' is a directory, a file is wanted", option, path);
        if (is_there && !S_ISREG(facts.st_mode)) /* a pipe, /dev/null */
                return access(path, W_OK) == 0 ? 0 : err_set(err, -EINVAL, "%s: file '%s': %m", option, path);
        is_there = access(part, F_OK) == 0;
        fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
                return err_set(err, -EINVAL, "%s: file '%s' cannot be written: %m", option, part);
        (void) close(fd);
        if (!is_there)
                (void) unlink(part);
        return 0;
}

static int check_directory(const char *directory, struct err *err)
{
        char path[PATH_BYTES];

        if (!text_format(path, sizeof(path), "%s/step.checkpoint.part", directory))
                return err_set(err, -EINVAL, "--checkpoint: the directory's name is too long");
        if (mkdir(directory, 0777) < 0 && errno != EEXIST)
                return err_set(err, -EINVAL, "--checkpoint: directory '%s': %m", directory);
        return check_file("--checkpoint", path, false, err);
}

bool outputs_clock_log(const struct train_options *o, int rank, char *path, size_t path_bytes)
{
        /* one server: the file itself; several: one file each */
        return o->servers == 1 ? text_copy(path, path_bytes, o->clock_log)
                               : text_format(path, path_bytes, "%s.%d", o->clock_log, rank);
}

int outputs_check(const struct train_options *o, int rank, bool serves, struct err *err)
{
        char path[PATH_BYTES];
        int r = 0;

        if (o->measure || o->explain_fusion)
                return 0;
        if (serves && o->clock_log != NULL)
                r = outputs_clock_log(o, rank, path, sizeof(path))
                            ? check_file("--clock-log", path, false, err)
                            : err_set(err, -EINVAL, "--clock-log: the file's name is too long");
        if (rank > 0)
                return r;
        if (r == 0 && o->weights_out != NULL)
                r = check_file("--weights-out", o->weights_out, true, err);
        if (r == 0 && o->export_file != NULL)
                r = check_file("--export", o->export_file, false, err);
        return r == 0 && o->checkpoint != NULL ? check_directory(o->checkpoint, err) : r;
}
