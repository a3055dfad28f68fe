/* Any bytes as a file of a dir: store, or as its journal: never a crash; a pod that the journal's whole lines
 * bound stays bound after a second reading. The first byte chooses the file's kind. The directory is in
 * memory and nobody waits for it: the pieces that read are called as the store calls them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/directory/binding.h"
#include "store/directory/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "a.json", "a.yaml", "bindings.jsonl", "evictions.jsonl",
                                     "pod.default.a.patch" };
static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) userdata;
        (void) kind;
        if (key[0] == '\0' || (object != NULL && !json_is_object(object)))
                abort();
}

/* The directory: a pod, and the file that the input is. No kernel has a part in it: with files of a tmpfs
 * half of the time was its own. The reading side's calls come here (build.mk); nothing else of the program
 * opens by openat(). */
struct memory_file {
        const char *name; /* NULL = it is not there */
        const void *bytes;
        size_t size;
};

static const char pod_text[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}";
static struct memory_file files[] = { { "pod.json", pod_text, sizeof(pod_text) - 1 }, { NULL, NULL, 0 } };

#define FIRST_FD (1 << 20) /* no process has so many */
#define FDS      16

static struct {
        const struct memory_file *file; /* NULL = closed */
        size_t at;
} fds[FDS];

static struct memory_file *file_named(const char *name)
{
        for (size_t i = 0; i < 2; i++)
                if (files[i].name != NULL && strcmp(files[i].name, name) == 0)
                        return &files[i];
        errno = ENOENT;
        return NULL;
}

static int stat_of(const struct memory_file *file, struct stat *st)
{
        if (file == NULL)
                return -1;
        *st = (struct stat){ .st_mode = S_IFREG | 0600,
                             .st_size = (off_t) file->size,
                             .st_ino = 1 + (ino_t) (file - files) };
        return 0;
}

int __wrap_openat(int folder, const char *name, int flags, ...);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstatat(int folder, const char *name, struct stat *st, int flags);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at);
int __wrap_close(int fd);
int __wrap_unlinkat(int folder, const char *name, int flags);
ssize_t __real_read(int fd, void *buffer, size_t size);
int __real_close(int fd);

int __wrap_openat(int folder, const char *name, int flags, ...)
{
        const struct memory_file *file = file_named(name);
        int fd = 0;

        (void) folder;
        if (file == NULL)
                return -1;
        while (fd < FDS && fds[fd].file != NULL)
                fd++;
        if (fd == FDS || (flags & (O_CREAT | O_DIRECTORY)) != 0)
                abort();
        fds[fd].file = file;
        fds[fd].at = 0;
        return FIRST_FD + fd;
}

int __wrap_fstat(int fd, struct stat *st)
{
        return stat_of(fds[fd - FIRST_FD].file, st);
}

int __wrap_fstatat(int folder, const char *name, struct stat *st, int flags)
{
        (void) folder;
        (void) flags;
        return stat_of(file_named(name), st);
}

ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at)
{
        const struct memory_file *file = fds[fd - FIRST_FD].file;
        size_t left = (size_t) at < file->size ? file->size - (size_t) at : 0;

        size = size < left ? size : left;
        if (size > 0)
                memcpy(buffer, (const char *) file->bytes + at, size);
        return (ssize_t) size;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
        ssize_t n;

        if (fd < FIRST_FD)
                return __real_read(fd, buffer, size);
        n = __wrap_pread(fd, buffer, size, (off_t) fds[fd - FIRST_FD].at);
        fds[fd - FIRST_FD].at += (size_t) n;
        return n;
}

int __wrap_close(int fd)
{
        if (fd < FIRST_FD)
                return __real_close(fd);
        fds[fd - FIRST_FD].file = NULL;
        return 0;
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
        struct memory_file *file = file_named(name);

        (void) folder;
        (void) flags;
        if (file == NULL)
                return -1;
        file->name = NULL;
        return 0;
}

/* What is open when all is read would be left open in the next round. */
static void check_closed(void)
{
        for (size_t i = 0; i < FDS; i++)
                if (fds[i].file != NULL)
                        abort();
}

static void read_all(struct store_dir *d, const char *name)
{
        struct object_file *pod = objects_file(&d->objects, "pod.json"),
                           *file = objects_file(&d->objects, name);
        const struct object *before, *after;
        char *node;

        if (pod == NULL || file == NULL)
                abort();
        reading_file(d, pod);
        (void) binding_read_journals(d, NULL);
        reading_file(d, file);
        before = objects_find(&d->objects, STORE_POD, "default/a");
        node = before != NULL && before->node != NULL ? strdup(before->node) : NULL;
        if (name == names[0])
                (void) reading_recheck(d, file, UINT64_MAX);
        (void) binding_read_journals(d, NULL);
        after = objects_find(&d->objects, STORE_POD, "default/a");
        if ((before == NULL) != (after == NULL) ||
            (after != NULL && strcmp(node != NULL ? node : "", after->node != NULL ? after->node : "") != 0))
                abort();
        free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct store_dir d = { .fd = FIRST_FD - 1,
                               .store = { .options = { .kinds = (1u << STORE_KIND_COUNT) - 1,
                                                       .changed = on_changed } } };
        const char *name;

        if (size < 1)
                return 0;
        d.queue_end = &d.queue;
        journal_init(&d.bindings, d.fd, "bindings.jsonl");
        journal_init(&d.evictions, d.fd, "evictions.jsonl");
        name = names[data[0] % 5];
        files[1] = (struct memory_file){ name, data + 1, size - 1 };
        read_all(&d, name);
        files[1].name = NULL;
        journal_free(&d.bindings);
        journal_free(&d.evictions);
        objects_free(&d.objects);
        overlays_free(&d.overlays);
        commitments_free(&d.commitments);
        check_closed();
        return 0;
}
