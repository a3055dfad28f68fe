/* Torture: the calls of our code that may fail, of which one does. Linked into unit tests whose archives call
 * torture_malloc() where they said malloc() (tests/torture/names), so that the tests' own calls never fail.
 *
 * A place is a call and who called the function that it is in. TORTURE=KIND:N makes the first call from the
 * N-th place of that kind fail and says where on stderr; TORTURE_COUNT=FILE appends how many there are. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLACES_MAX 65536 /* a power of two; what comes later is not counted */

enum kind { KIND_MALLOC, KIND_JSON, KIND_OPEN, KIND_WRITE, KIND_FSYNC, KIND_ACCEPT, KINDS };

static const char *const names[KINDS] = { "malloc", "json", "open", "write", "fsync", "accept" };
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
