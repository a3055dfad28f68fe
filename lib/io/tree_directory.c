/* Tree backend: a directory. openat2() resolves inside the root where the kernel has it (5.6); elsewhere, or
 * where a sandbox forbids it, tree.c walks the links. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "io/tree_backend.h"

struct directory {
        int fd;
        bool openat2;
};

static int open_in_root(const struct directory *directory, const char *path, int flags)
{
        struct open_how how = {
                .flags = (unsigned long long) (unsigned) (flags | O_CLOEXEC),
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int fd;

        if (path[0] == '\0')
                path = ".";
        if (directory->openat2)
                fd = (int) syscall(SYS_openat2, directory->fd, path, &how, sizeof(how));
        else
                fd = openat(directory->fd, path, flags | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

static enum tree_kind kind_of_mode(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFREG:
                return TREE_FILE;
        case S_IFDIR:
                return TREE_DIRECTORY;
        case S_IFLNK:
                return TREE_LINK;
        case S_IFCHR:
                return TREE_CHARACTER;
        case S_IFBLK:
                return TREE_BLOCK;
        default:
                return TREE_OTHER;
        }
}

static enum tree_kind directory_kind(void *state, const char *path)
{
        CLEANUP(close_p) int fd = open_in_root(state, path, O_PATH);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 ? kind_of_mode(st.st_mode) : TREE_ABSENT;
}

static ssize_t directory_link(void *state, const char *path, char *target, size_t target_bytes)
{
        const struct directory *directory = state;
        ssize_t size = readlinkat(directory->fd, path[0] == '\0' ? "." : path, target, target_bytes);

        if (size < 0)
                return -errno;
        if ((size_t) size >= target_bytes)
                return -ENAMETOOLONG;
        target[size] = '\0';
        return size;
}

/* Looked at before it is opened, since opening a device or a FIFO may act on it; O_NONBLOCK for the case that
 * it changes in between. */
static ssize_t directory_read(void *state, const char *path, void *buffer, size_t size_bytes)
{
        CLEANUP(close_p) int fd = -1;
        size_t done = 0;

        switch (directory_kind(state, path)) {
        case TREE_FILE:
                break;
        case TREE_ABSENT:
                return -ENOENT;
        case TREE_LINK:
                return -ELOOP;
        default:
                return -EINVAL;
        }
        fd = open_in_root(state, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fd;
        while (done < size_bytes) {
                ssize_t size = read(fd, (char *) buffer + done, size_bytes - done);

                if (size < 0 && errno == EINTR)
                        continue;
                if (size < 0)
                        return -errno;
                if (size == 0)
                        break;
                done += (size_t) size;
        }
        return (ssize_t) done;
}

static void closedir_p(DIR **dir)
{
        if (*dir != NULL)
                (void) closedir(*dir);
}

static int directory_list(void *state, const char *path, struct tree_names *ret)
{
        CLEANUP(closedir_p) DIR *dir = NULL;
        const struct dirent *entry;
        int fd = open_in_root(state, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

        if (fd < 0)
                return fd == -ENOTDIR ? -EINVAL : fd;
        dir = fdopendir(fd);
        if (dir == NULL) {
                int r = -errno;

                (void) close(fd);
                return r;
        }
        while (errno = 0, (entry = readdir(dir)) != NULL) {
                int r;

                if (entry->d_name[0] == '.')
                        continue;
                r = tree_names_add(ret, entry->d_name, strlen(entry->d_name));
                if (r < 0)
                        return r;
        }
        return errno != 0 ? -errno : 0;
}

static void directory_free(void *state)
{
        struct directory *directory = state;

        (void) close(directory->fd);
        free(directory);
}

static const struct tree_backend directory_backend = {
        .kind = directory_kind,
        .link = directory_link,
        .read = directory_read,
        .list = directory_list,
        .free = directory_free,
};

int tree_open(const char *root, struct tree **ret, struct err *err)
{
        struct directory *directory = calloc(1, sizeof(*directory));
        struct tree *tree = calloc(1, sizeof(*tree));
        int probe;

        if (directory == NULL || tree == NULL || !text_copy(tree->root, sizeof(tree->root), root)) {
                free(directory);
                free(tree);
                return err_set(err, -ENAMETOOLONG, "root '%.60s...' is too long", root);
        }
        directory->fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory->fd < 0) {
                int r = err_set(err, -errno, "root '%s' cannot be used as a machine's directory: %m", root);

                free(directory);
                free(tree);
                return r;
        }
        directory->openat2 = true;
        probe = open_in_root(directory, "", O_PATH);
        directory->openat2 = probe >= 0;
        if (probe >= 0)
                (void) close(probe);
        tree->backend = &directory_backend;
        tree->state = directory;
        tree->resolves = directory->openat2;
        tree->operations_left = UINT64_MAX;
        *ret = tree;
        return 0;
}
