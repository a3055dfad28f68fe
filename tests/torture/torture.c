/* Torture: the calls of our code that may fail, of which one does. Linked into unit tests whose archives call
 * torture_malloc() where they said malloc() (tests/torture/names), so that the tests' own calls never fail.
 *
 * A place is a call and who called the function that it is in. TORTURE=KIND:N makes the first call from the
 * N-th place of that kind fail and says where on stderr; TORTURE_COUNT=FILE appends how many there are. */
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define PLACES_MAX 65536 /* a power of two; what comes later is not counted */

enum kind { KIND_MALLOC, KIND_JSON, KIND_OPEN, KIND_WRITE, KIND_FSYNC, KIND_ACCEPT, KIND_SYSTEM, KINDS };

static const char *const names[KINDS] = { "malloc", "json", "open", "write", "fsync", "accept", "system" };
/* shared with the children that a test forks: a place is one, whoever comes there first */
static struct shared {
        uintptr_t places[KINDS][PLACES_MAX];
        unsigned counts[KINDS];
} * shared;
static int wanted_kind = -1;
static unsigned wanted;

extern char __executable_start, etext;
void __sanitizer_symbolize_pc(void *pc, const char *format, char *out, size_t out_bytes)
        __attribute__((weak));

static bool is_new(enum kind kind, uintptr_t place)
{
        size_t i = (place * 0x9e3779b97f4a7c15u) >> 48;

        if (shared == NULL || shared->counts[kind] >= PLACES_MAX / 2)
                return false;
        for (; shared->places[kind][i] != 0; i = (i + 1) % PLACES_MAX)
                if (shared->places[kind][i] == place)
                        return false;
        shared->places[kind][i] = place;
        shared->counts[kind]++;
        return true;
}

static bool fails(enum kind kind, void *from, void *by)
{
        char line[256] = "somewhere";

        if (!is_new(kind, (uintptr_t) from ^ ((uintptr_t) by << 17)) || (int) kind != wanted_kind ||
            shared->counts[kind] != wanted)
                return false;
        if (__sanitizer_symbolize_pc != NULL)
                __sanitizer_symbolize_pc((char *) from - 1, "%f %s:%l", line, sizeof(line));
        fprintf(stderr, "torture: %s %u fails in %s\n", names[kind], wanted, line);
        return true;
}

/* our code keeps frame pointers here */
#pragma GCC diagnostic ignored "-Wframe-address"
#define FAILS(kind) fails(kind, __builtin_return_address(0), __builtin_return_address(1))

void *torture_malloc(size_t bytes);
void *torture_malloc(size_t bytes)
{
        errno = ENOMEM;
        return FAILS(KIND_MALLOC) ? NULL : malloc(bytes);
}

void *torture_calloc(size_t count, size_t bytes);
void *torture_calloc(size_t count, size_t bytes)
{
        errno = ENOMEM;
        return FAILS(KIND_MALLOC) ? NULL : calloc(count, bytes);
}

void *torture_realloc(void *old, size_t bytes);
void *torture_realloc(void *old, size_t bytes)
{
        errno = ENOMEM;
        return FAILS(KIND_MALLOC) ? NULL : realloc(old, bytes);
}

char *torture_strdup(const char *s);
char *torture_strdup(const char *s)
{
        errno = ENOMEM;
        return FAILS(KIND_MALLOC) ? NULL : strdup(s);
}

char *torture_strndup(const char *s, size_t bytes);
char *torture_strndup(const char *s, size_t bytes)
{
        errno = ENOMEM;
        return FAILS(KIND_MALLOC) ? NULL : strndup(s, bytes);
}

int torture_open(const char *path, int flags, ...);
int torture_open(const char *path, int flags, ...)
{
        va_list list;
        mode_t mode;

        va_start(list, flags);
        mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
        va_end(list);
        if (FAILS(KIND_OPEN)) {
                errno = EMFILE;
                return -1;
        }
        return open(path, flags, mode);
}

int torture_openat(int folder, const char *path, int flags, ...);
int torture_openat(int folder, const char *path, int flags, ...)
{
        va_list list;
        mode_t mode;

        va_start(list, flags);
        mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
        va_end(list);
        if (FAILS(KIND_OPEN)) {
                errno = EMFILE;
                return -1;
        }
        return openat(folder, path, flags, mode);
}

FILE *torture_fopen(const char *path, const char *mode);
FILE *torture_fopen(const char *path, const char *mode)
{
        if (FAILS(KIND_OPEN)) {
                errno = EMFILE;
                return NULL;
        }
        return fopen(path, mode);
}

ssize_t torture_write(int fd, const void *bytes, size_t size);
ssize_t torture_write(int fd, const void *bytes, size_t size)
{
        if (FAILS(KIND_WRITE)) {
                errno = ENOSPC;
                return -1;
        }
        return write(fd, bytes, size);
}

int torture_fsync(int fd);
int torture_fsync(int fd)
{
        if (FAILS(KIND_FSYNC)) {
                errno = EIO;
                return -1;
        }
        return fsync(fd);
}

int torture_fdatasync(int fd);
int torture_fdatasync(int fd)
{
        if (FAILS(KIND_FSYNC)) {
                errno = EIO;
                return -1;
        }
        return fdatasync(fd);
}

int torture_accept4(int fd, struct sockaddr *peer, socklen_t *size, int flags);
int torture_accept4(int fd, struct sockaddr *peer, socklen_t *size, int flags)
{
        if (FAILS(KIND_ACCEPT)) {
                errno = EMFILE;
                return -1;
        }
        return accept4(fd, peer, size, flags);
}

/* What else a system that is full or broken refuses: processes, descriptors, peers, sources of a loop,
 * folders, reads. */
#define REFUSES(result, name, parameters, arguments, code, refused)                                          \
        result torture_##name parameters;                                                                    \
        result torture_##name parameters                                                                     \
        {                                                                                                    \
                if (FAILS(KIND_SYSTEM)) {                                                                    \
                        errno = code;                                                                        \
                        return refused;                                                                      \
                }                                                                                            \
                return name arguments;                                                                       \
        }
#define LOOP   sd_event *loop, sd_event_source **ret
#define TIMING clockid_t clock, uint64_t usec, uint64_t accuracy, sd_event_time_handler_t handler
/* clang-format off */
REFUSES(pid_t, fork, (void), (), EAGAIN, -1)
REFUSES(int, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, char *const argv[], char *const env[]), (pid, path, actions, how, argv, env), EAGAIN, EAGAIN)
REFUSES(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, -1)
REFUSES(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
REFUSES(int, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds), EMFILE, -1)
REFUSES(int, bind, (int fd, const struct sockaddr *at, socklen_t size), (fd, at, size), EADDRINUSE, -1)
REFUSES(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, -1)
REFUSES(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), ECONNREFUSED, -1)
REFUSES(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags), EPIPE, -1)
REFUSES(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags), ECONNRESET, -1)
REFUSES(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size), (fd, level, name, value, size), ENOBUFS, -1)
REFUSES(int, getsockname, (int fd, struct sockaddr *at, socklen_t *size), (fd, at, size), ENOBUFS, -1)
REFUSES(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size), ENOBUFS, -1)
REFUSES(int, epoll_create1, (int flags), (flags), EMFILE, -1)
REFUSES(int, epoll_ctl, (int events, int order, int fd, struct epoll_event *event), (events, order, fd, event), ENOSPC, -1)
REFUSES(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), EMFILE, -1)
REFUSES(int, timerfd_create, (clockid_t clock, int flags), (clock, flags), EMFILE, -1)
REFUSES(int, inotify_init1, (int flags), (flags), EMFILE, -1)
REFUSES(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), ENOSPC, -1)
REFUSES(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
REFUSES(DIR *, fdopendir, (int fd), (fd), ENOMEM, NULL)
REFUSES(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
REFUSES(ssize_t, pread, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at), EIO, -1)
REFUSES(int, stat, (const char *path, struct stat *status), (path, status), EIO, -1)
REFUSES(int, lstat, (const char *path, struct stat *status), (path, status), EIO, -1)
REFUSES(int, fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags), EIO, -1)
REFUSES(int, statfs, (const char *path, struct statfs *facts), (path, facts), EIO, -1)
REFUSES(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), EIO, -1)
REFUSES(ssize_t, readlinkat, (int folder, const char *path, char *to, size_t size), (folder, path, to, size), EIO, -1)
REFUSES(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), EIO, -1)
REFUSES(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
REFUSES(int, getifaddrs, (struct ifaddrs **ret), (ret), EMFILE, -1)
REFUSES(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *cpus), (pid, size, cpus), EINVAL, -1)
REFUSES(int, fflush, (FILE *f), (f), ENOSPC, EOF)
REFUSES(int, fstat, (int fd, struct stat *status), (fd, status), EIO, -1)
REFUSES(int, ftruncate, (int fd, off_t size), (fd, size), EIO, -1)
REFUSES(int, flock, (int fd, int how), (fd, how), ENOLCK, -1)
REFUSES(int, rename, (const char *from, const char *to), (from, to), ENOSPC, -1)
REFUSES(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
REFUSES(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), ENOSPC, -1)
REFUSES(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags), ENOSYS, -1)
REFUSES(int, sd_event_new, (sd_event **ret), (ret), EMFILE, -EMFILE)
REFUSES(int, sd_event_add_io, (LOOP, int fd, uint32_t events, sd_event_io_handler_t handler, void *userdata), (loop, ret, fd, events, handler, userdata), ENOMEM, -ENOMEM)
REFUSES(int, sd_event_add_time, (LOOP, TIMING, void *userdata), (loop, ret, clock, usec, accuracy, handler, userdata), EMFILE, -EMFILE)
REFUSES(int, sd_event_add_time_relative, (LOOP, TIMING, void *userdata), (loop, ret, clock, usec, accuracy, handler, userdata), EMFILE, -EMFILE)
REFUSES(int, sd_event_add_defer, (LOOP, sd_event_handler_t handler, void *userdata), (loop, ret, handler, userdata), ENOMEM, -ENOMEM)
REFUSES(int, sd_event_add_signal, (LOOP, int number, sd_event_signal_handler_t handler, void *userdata), (loop, ret, number, handler, userdata), EMFILE, -EMFILE)
REFUSES(int, sd_event_add_child, (LOOP, pid_t pid, int options, sd_event_child_handler_t handler, void *userdata), (loop, ret, pid, options, handler, userdata), EMFILE, -EMFILE)
REFUSES(int, sd_event_add_inotify, (LOOP, const char *path, uint32_t mask, sd_event_inotify_handler_t handler, void *userdata), (loop, ret, path, mask, handler, userdata), EMFILE, -EMFILE)
/* clang-format on */

/* What was buffered does not get onto the disk. */
int torture_fclose(FILE *f);
int torture_fclose(FILE *f)
{
        bool refused = FAILS(KIND_SYSTEM);
        int r = fclose(f);

        if (!refused)
                return r;
        errno = ENOSPC;
        return EOF;
}

/* A disk's read fails; what a pipe or a socket says is the other end's to refuse. */
ssize_t torture_read(int fd, void *bytes, size_t size);
ssize_t torture_read(int fd, void *bytes, size_t size)
{
        struct stat status;

        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && FAILS(KIND_SYSTEM)) {
                errno = EIO;
                return -1;
        }
        return read(fd, bytes, size);
}

/* Jansson's memory: the place is the first of our functions on the way to it. */
static void *json_memory(size_t bytes)
{
        void *frames[12];
        int count = backtrace(frames, 12);

        for (int i = 2; i + 1 < count; i++)
                if ((char *) frames[i] >= &__executable_start && (char *) frames[i] < &etext)
                        return fails(KIND_JSON, frames[i], frames[i - 1]) ? NULL : malloc(bytes);
        return malloc(bytes);
}

static void tell(void)
{
        const char *path = getenv("TORTURE_COUNT");
        FILE *f = path != NULL ? fopen(path, "we") : NULL;

        for (int kind = 0; f != NULL && kind < KINDS; kind++)
                fprintf(f, "%s %u\n", names[kind], shared->counts[kind]);
        if (f != NULL)
                (void) fclose(f);
}

static void __attribute__((constructor)) begin(void)
{
        const char *order = getenv("TORTURE");

        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                abort();
        json_set_alloc_funcs(json_memory, free);
        for (int kind = 0; order != NULL && kind < KINDS; kind++)
                if (strncmp(order, names[kind], strlen(names[kind])) == 0 &&
                    order[strlen(names[kind])] == ':') {
                        wanted_kind = kind;
                        wanted = (unsigned) strtoul(order + strlen(names[kind]) + 1, NULL, 10);
                }
        (void) atexit(tell);
}
