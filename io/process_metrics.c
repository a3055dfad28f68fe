/* The fields of /proc/self/stat and its neighbours. */
#include "io/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metrics.h"

static bool read_small(const char *path, char *buffer, size_t buffer_bytes)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buffer, buffer_bytes - 1);

        if (n <= 0)
                return false;
        buffer[n] = '\0';
        return true;
}

/* The number that the text begins with; written by the kernel. */
static bool leading_number(const char *text, unsigned long long *ret)
{
        char *end;

        *ret = strtoull(text, &end, 10);
        return end != text;
}

/* Field `number` (1-based) of /proc/self/stat; those after the command's name, which may hold blanks. */
static bool stat_field(const char *stat, unsigned number, unsigned long long *ret)
{
        const char *s = strrchr(stat, ')');

        for (unsigned i = 2; s != NULL && i < number; i++) {
                s = strchr(s, ' ');
                if (s != NULL)
                        s++;
        }
        return s != NULL && leading_number(s, ret);
}

static unsigned open_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        if (dir == NULL)
                return 0;
        for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
                n += e->d_name[0] != '.';
        (void) closedir(dir);
        return n - 1; /* the one that reads */
}

static void append_start_time(struct text *page, const char *stat, double hertz)
{
        unsigned long long ticks, boot;
        char buffer[8192];
        const char *line;

        if (!stat_field(stat, 22, &ticks) || !read_small("/proc/stat", buffer, sizeof(buffer)))
                return;
        line = strstr(buffer, "\nbtime ");
        if (line == NULL || !leading_number(line + 7, &boot))
                return;
        metrics_gauge(page, "process_start_time_seconds", "When the process began, in seconds since 1970",
                      (double) boot + (double) ticks / hertz);
}

void process_metrics_append(struct text *page)
{
        double hertz = (double) sysconf(_SC_CLK_TCK);
        unsigned long long user, system_, pages, bytes;
        struct rlimit limit;
        struct rusage usage;
        char stat[1024];

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                metrics_gauge(page, "process_max_fds", "The most descriptors the process may open",
                              (double) limit.rlim_cur);
        metrics_gauge(page, "process_open_fds", "Open descriptors", open_descriptors());
        if (getrusage(RUSAGE_SELF, &usage) == 0) {
                user = (unsigned long long) usage.ru_utime.tv_sec * 1000000 +
                       (unsigned long long) usage.ru_utime.tv_usec;
                system_ = (unsigned long long) usage.ru_stime.tv_sec * 1000000 +
                          (unsigned long long) usage.ru_stime.tv_usec;
                metrics_family(page, "process_cpu_seconds_total", METRIC_COUNTER,
                               "User and system time spent");
                metrics_sample(page, "process_cpu_seconds_total", NULL, (double) (user + system_) / 1e6);
        }
        if (!read_small("/proc/self/stat", stat, sizeof(stat)))
                return;
        if (stat_field(stat, 24, &pages))
                metrics_gauge(page, "process_resident_memory_bytes", "Memory that is resident",
                              (double) pages * (double) sysconf(_SC_PAGESIZE));
        if (stat_field(stat, 23, &bytes))
                metrics_gauge(page, "process_virtual_memory_bytes", "Memory that is mapped", (double) bytes);
        append_start_time(page, stat, hertz);
}
