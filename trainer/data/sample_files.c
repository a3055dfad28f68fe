/* A table of places, and pread(2). */
#include "trainer/data/sample_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* A shell gives a process 1024 descriptors, of many more that it may have. */
static void allow_more_files(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

int sample_files_add(struct sample_files *s, const char *path, struct err *err)
{
        struct sample_files_file *more = reallocarray(s->files, s->file_count + 1, sizeof(*more));
        CLEANUP(free_p) char *copy = strdup(path);
        struct stat facts;
        int fd;

        if (more != NULL)
                s->files = more;
        if (more == NULL || copy == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu files", s->file_count + 1);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == EMFILE) {
                allow_more_files();
                fd = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (fd < 0 || fstat(fd, &facts) < 0) {
                int r = err_set(err, -errno, "file '%s': %m", path);

                if (fd >= 0)
                        (void) close(fd);
                return r;
        }
        s->files[s->file_count] = (struct sample_files_file){ fd, (uint64_t) facts.st_size, TAKE(copy) };
        return (int) s->file_count++;
}

int sample_files_note(struct sample_files *s, int file, uint64_t offset, uint64_t size_bytes, struct err *err)
{
        const struct sample_files_file *f = &s->files[file];

        if (size_bytes > UINT32_MAX || offset > f->size_bytes || size_bytes > f->size_bytes - offset)
                return err_set(err, -EINVAL,
                               "file '%s': a sample of %llu bytes at byte %llu does not lie within it",
                               f->path, (unsigned long long) size_bytes, (unsigned long long) offset);
        if (s->count == s->room) {
                size_t room = s->room > 0 ? 2 * s->room : 1024;
                struct sample_files_place *more = reallocarray(s->places, room, sizeof(*more));

                if (more == NULL)
                        return err_set(err, -ENOMEM, "no memory for the places of %zu samples", room);
                s->places = more;
                s->room = room;
        }
        s->places[s->count++] = (struct sample_files_place){ offset, (uint32_t) size_bytes, (uint32_t) file };
        return 0;
}

int sample_files_wrong(const struct sample_files *s, size_t sample, int result, struct err *err)
{
        const struct sample_files_place *p = &s->places[sample];

        return err_wrap(err, result, "file '%s', byte %llu", s->files[p->file].path,
                        (unsigned long long) p->offset);
}

int sample_files_read(const struct sample_files *s, size_t sample, void *to, struct err *err)
{
        const struct sample_files_place *p = &s->places[sample];
        size_t have = 0;

        while (have < p->size_bytes) {
                ssize_t got = pread(s->files[p->file].fd, (char *) to + have, p->size_bytes - have,
                                    (off_t) (p->offset + have));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) {
                        if (got < 0)
                                (void) err_set(err, -EIO, "not readable: %m");
                        else
                                (void) err_set(err, -EIO, "cut short since it was opened");
                        return sample_files_wrong(s, sample, -EIO, err);
                }
                have += (size_t) got;
        }
        return 0;
}

void sample_files_announce(const struct sample_files *s, size_t sample)
{
        const struct sample_files_place *p = &s->places[sample];

        (void) posix_fadvise(s->files[p->file].fd, (off_t) p->offset, (off_t) p->size_bytes,
                             POSIX_FADV_WILLNEED);
}

void sample_files_free(struct sample_files *s)
{
        for (size_t i = 0; i < s->file_count; i++) {
                (void) close(s->files[i].fd);
                free(s->files[i].path);
        }
        free(s->files);
        free(s->places);
        *s = (struct sample_files){ 0 };
}

size_t sample_files_list(const char *directory, const char *prefix, const char *suffix, char ***ret)
{
        struct dirent **entries = NULL;
        int found = scandir(directory, &entries, NULL, alphasort);
        char **names = calloc(found > 0 ? (size_t) found : 1, sizeof(char *));
        size_t count = 0;

        for (int i = 0; i < found; i++) {
                const char *name = entries[i]->d_name;

                if (names != NULL && strlen(name) > strlen(prefix) + strlen(suffix) &&
                    text_starts_with(name, prefix) && text_ends_with(name, suffix) &&
                    (names[count] = strdup(name)) != NULL)
                        count++;
                free(entries[i]);
        }
        free(entries);
        *ret = names;
        return count;
}

void sample_files_list_free(char **names, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(names[i]);
        free(names);
}
