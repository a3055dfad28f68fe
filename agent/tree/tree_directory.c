/* Tree backend: a directory. openat2() resolves inside the root where the kernel has it (5.6); elsewhere, or
 * where a sandbox forbids it, tree.c walks the links. */
#include "agent/tree/tree_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tree/tree_internal.h"
#include "base/cleanup.h"

/* Of one openat2() with renames elsewhere; a try takes microseconds, one in 70 loses at worst. */
#define RACES_MAX 10000

/* Most reads are of many files in one directory after the other: the last parent stays open for the next
 * read. The cache lives from one tree_budget() to the next, so that a rescan sees a tree that changed in
 * between. */
struct directory {
        int fd;
        bool openat2;
        char parent[TREE_PATH_BYTES]; /* "" = none */
        int parent_fd;
};

static int open_in_root(const struct directory *directory, const char *path, int flags)
{
        struct open_how how = {
                .flags = (unsigned long long) (unsigned) (flags | O_CLOEXEC),
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int fd, tries = 0;

        if (path[0] == '\0')
                path = ".";
        /* A rename or a mount anywhere on the machine, while a ".." is followed, is answered EAGAIN: the
         * kernel cannot vouch for the root then. Taken for an absent file it would be a chip that "left the
         * machine". */
        if (directory->openat2)
                do
                        fd = (int) syscall(SYS_openat2, directory->fd, path, &how, sizeof(how));
                while (fd < 0 && errno == EAGAIN && ++tries < RACES_MAX);
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

static int directory_kind(void *state, const char *path)
{
        CLEANUP(close_p) int fd = open_in_root(state, path, O_PATH);
        struct stat st;

        if (fd < 0)
                return fd;
        return fstat(fd, &st) == 0 ? (int) kind_of_mode(st.st_mode) : -errno;
}

static ssize_t link_at(int folder, const char *name, char *target, size_t target_bytes)
{
        ssize_t size = readlinkat(folder, name, target, target_bytes);

        if (size < 0)
                return -errno;
        if ((size_t) size >= target_bytes)
                return -ENAMETOOLONG;
        target[size] = '\0';
        return size;
}

static ssize_t directory_link(void *state, const char *path, char *target, size_t target_bytes)
{
        const struct directory *directory = state;

        return link_at(directory->fd, path[0] == '\0' ? "." : path, target, target_bytes);
}

static void directory_forget(void *state)
{
        struct directory *directory = state;

        if (directory->parent[0] != '\0')
                (void) close(directory->parent_fd);
        directory->parent[0] = '\0';
}

/* Opens the parent of `path`, unless it is open already. Return: its descriptor, *ret_name the last
 * component. */
static int open_parent(struct directory *directory, const char *path, const char **ret_name)
{
        const char *slash = strrchr(path, '/');
        size_t length = slash != NULL ? (size_t) (slash - path) : 0;
        int fd;

        *ret_name = slash != NULL ? slash + 1 : path;
        if (length == 0)
                return directory->fd;
        if (directory->parent[0] != '\0' && strncmp(directory->parent, path, length) == 0 &&
            directory->parent[length] == '\0')
                return directory->parent_fd;
        directory_forget(directory);
        memcpy(directory->parent, path, length);
        directory->parent[length] = '\0';
        fd = open_in_root(directory, directory->parent, O_PATH | O_DIRECTORY);
        if (fd < 0)
                directory->parent[0] = '\0';
        else
                directory->parent_fd = fd;
        return fd;
}

static ssize_t directory_link_below(void *state, const char *path, char *target, size_t target_bytes)
{
        const char *name;
        int parent = open_parent(state, path, &name);

        return parent < 0 ? parent : link_at(parent, name, target, target_bytes);
}

/* A regular file, or a link to one, is opened; anything else is only looked at, since opening a device or a
 * FIFO may act on it. (O_NONBLOCK for the case that it changes in between.) */
static int open_file(struct directory *directory, const char *path)
{
        const char *name;
        int parent = open_parent(directory, path, &name), fd;
        struct stat st;

        if (parent < 0)
                return parent == -ENOTDIR ? -ENOENT : parent;
        if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return -EINVAL;
        if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode) && directory->openat2) {
                int kind = directory_kind(directory, path);

                if (kind != TREE_FILE)
                        return kind < 0 ? kind : -EINVAL;
                return open_in_root(directory, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        }
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        fd = openat(parent, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static ssize_t directory_read(void *state, const char *path, void *buffer, size_t size_bytes)
{
        CLEANUP(close_p) int fd = open_file(state, path);
        size_t done = 0;

        if (fd < 0)
                return fd;
        while (done < size_bytes) {
                ssize_t size = read(fd, (char *) buffer + done, size_bytes - done);

                if (size < 0 && errno == EINTR)
                        continue;
                if (size < 0)
                        return -errno;
                done += (size_t) size;
                /* sysfs and files end with a short read; procfs may give its text in pieces */
                if (size == 0 || (done < size_bytes && strncmp(path, "proc/", 5) != 0))
                        break;
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

        directory_forget(directory);
        (void) close(directory->fd);
        free(directory);
}

static const struct tree_backend directory_backend = {
        .kind = directory_kind,
        .link = directory_link,
        .link_below = directory_link_below,
        .read = directory_read,
        .list = directory_list,
        .forget = directory_forget,
        .free = directory_free,
};

int tree_directory_open(const char *root, struct tree **ret, struct err *err)
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
