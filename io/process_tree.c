/* Who descends from us is read from /proc again in each round, since children may have children meanwhile. */
#include "io/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"

struct entry {
        pid_t pid, parent;
        bool zombie, below; /* below: a descendant of ours */
};

struct scan {
        struct entry *entries;
        size_t count, capacity;
};

int process_tree_adopt(void)
{
        return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* "PID (COMM) STATE PPID ...": COMM may hold blanks and parentheses, so the last ')' counts. */
static bool parse_stat(char *stat, struct entry *entry)
{
        char *close = strrchr(stat, ')');
        char *end;

        if (close == NULL || close[1] != ' ' || close[2] == '\0')
                return false;
        entry->zombie = close[2] == 'Z' || close[2] == 'X';
        entry->parent = (pid_t) strtol(close + 3, &end, 10);
        return end != close + 3;
}

static bool read_entry(int proc, const char *name, struct entry *entry)
{
        char path[32], stat[512];
        ssize_t size;
        uint64_t pid;
        int fd;

        if (text_parse_uint64(name, &pid) < 0 || !text_format(path, sizeof(path), "%s/stat", name))
                return false;
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        size = read(fd, stat, sizeof(stat) - 1);
        (void) close(fd);
        if (size <= 0)
                return false;
        stat[size] = '\0';
        *entry = (struct entry){ .pid = (pid_t) pid };
        return parse_stat(stat, entry);
}

static int add(struct scan *scan, const struct entry *entry)
{
        struct entry *added = array_add(&scan->entries, &scan->count, &scan->capacity, sizeof(*added));

        if (added == NULL)
                return -ENOMEM;
        *added = *entry;
        return 0;
}

static struct entry *find(const struct scan *scan, pid_t pid)
{
        for (size_t i = 0; i < scan->count; i++)
                if (scan->entries[i].pid == pid)
                        return &scan->entries[i];
        return NULL;
}

/* Follows parents up; the depth is bounded, since a scan is not a snapshot and could hold a loop. */
static bool is_below(const struct scan *scan, const struct entry *entry, pid_t top, pid_t except)
{
        for (unsigned depth = 0; depth < 4096 && entry != NULL; depth++) {
                if (except != 0 && entry->pid == except)
                        return false;
                if (entry->parent == top)
                        return true;
                entry = find(scan, entry->parent);
        }
        return false;
}

static int scan_all(struct scan *scan, pid_t except)
{
        DIR *proc = opendir("/proc");
        const struct dirent *file;
        pid_t self = getpid();

        if (proc == NULL)
                return -errno;
        while ((file = readdir(proc)) != NULL) {
                struct entry entry;

                if (file->d_name[0] < '1' || file->d_name[0] > '9' ||
                    !read_entry(dirfd(proc), file->d_name, &entry))
                        continue;
                if (add(scan, &entry) < 0) {
                        (void) closedir(proc);
                        return -ENOMEM;
                }
        }
        (void) closedir(proc);
        for (size_t i = 0; i < scan->count; i++)
                scan->entries[i].below = is_below(scan, &scan->entries[i], self, except);
        return 0;
}

int process_tree_signal(int signal_number, pid_t except)
{
        struct scan scan = { 0 };
        int r = scan_all(&scan, except), count = 0;

        for (size_t i = 0; r == 0 && i < scan.count; i++)
                if (scan.entries[i].below && !scan.entries[i].zombie &&
                    kill(scan.entries[i].pid, signal_number) == 0)
                        count++;
        free(scan.entries);
        return r < 0 ? r : count;
}

/* Return: true when there is no child left. */
static bool reap_all(void)
{
        pid_t pid;

        do
                pid = waitpid(-1, NULL, WNOHANG);
        while (pid > 0 || (pid < 0 && errno == EINTR));
        return pid < 0;
}

int process_tree_kill(unsigned timeout_usec, pid_t except)
{
        const struct timespec pause = { .tv_nsec = 2000000 };
        uint64_t end = clock_monotonic_usec() + timeout_usec;

        for (bool first = true; !reap_all(); first = false) {
                int left;

                /* who is still there after the first pass is stopped before, so that nothing forks away from
                 * under the next; not at once, since a killer that is itself killed in between would leave
                 * all of them stopped */
                if (!first)
                        (void) process_tree_signal(SIGSTOP, except);
                left = process_tree_signal(SIGKILL, except);
                if (except != 0 && left == 0 && !reap_all())
                        return 0;
                if (clock_monotonic_usec() > end)
                        return -ETIMEDOUT;
                (void) nanosleep(&pause, NULL);
        }
        return 0;
}

/* "A=1\0B=2\0" */
static bool holds(const char *variables, size_t size, const char *variable)
{
        size_t length = strlen(variable);

        for (const char *at = variables; at < variables + size;
             at += strnlen(at, (size_t) (variables + size - at)) + 1)
                if ((size_t) (variables + size - at) > length && memcmp(at, variable, length + 1) == 0)
                        return true;
        return false;
}

static bool is_marked(int proc, const char *name, const char *variable, char *buffer, size_t buffer_bytes)
{
        char path[32];
        size_t size = 0;
        ssize_t n;
        int fd;

        if (!text_format(path, sizeof(path), "%s/environ", name))
                return false;
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (size < buffer_bytes && (n = read(fd, buffer + size, buffer_bytes - size)) > 0)
                size += (size_t) n;
        (void) close(fd);
        return holds(buffer, size, variable);
}

int process_tree_kill_marked(const char *variable)
{
        const size_t buffer_bytes = (size_t) 1 << 20;
        CLEANUP(free_p) char *buffer = malloc(buffer_bytes);
        DIR *proc = buffer == NULL ? NULL : opendir("/proc");
        const struct dirent *file;
        int count = 0;

        if (proc == NULL)
                return -errno;
        while ((file = readdir(proc)) != NULL) {
                uint64_t pid;

                if (text_parse_uint64(file->d_name, &pid) == 0 && (pid_t) pid != getpid() &&
                    is_marked(dirfd(proc), file->d_name, variable, buffer, buffer_bytes) &&
                    kill((pid_t) pid, SIGKILL) == 0)
                        count++;
        }
        (void) closedir(proc);
        return count;
}
