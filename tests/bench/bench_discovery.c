/* Discovery: what a scan costs, that it leaks nothing, and that hostile trees are read or refused in time.
 *
 * Trees are made below a temporary directory from the machines of tests/data/machines. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/cleanup.h"

#define RESCANS 10000

static double now_ms(clockid_t clock)
{
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static long resident_kib(void)
{
        long pages = 0, ignored = 0;
        CLEANUP(fclose_p) FILE *file = fopen("/proc/self/statm", "re");

        if (file == NULL || fscanf(file, "%ld %ld", &ignored, &pages) != 2)
                return -1;
        return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        int count = 0;

        if (dir == NULL)
                return -1;
        while (readdir(dir) != NULL)
                count++;
        (void) closedir(dir);
        return count;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
        (void) st;
        (void) type;
        (void) walk;
        return remove(path);
}

static bool expand(const char *machine, const char *directory)
{
        struct tree *tree = NULL;
        struct err err = { 0 };
        char path[256];
        int r;

        (void) text_format(path, sizeof(path), "tests/data/machines/%s.machine", machine);
        r = tree_machine_open(path, &tree, &err);
        if (r == 0)
                r = tree_record_expand(tree, directory, &err);
        tree_close(tree);
        if (r < 0)
                fprintf(stderr, "%s\n", err.msg);
        return r == 0;
}

/* One scan. Return: how it ended; the devices it found in *ret_devices. */
static int scan(const char *directory, size_t *ret_devices, struct err *err)
{
        struct inventory inventory;
        struct tree *tree = NULL;
        int r = tree_directory_open(directory, &tree, err);

        *ret_devices = 0;
        if (r < 0)
                return r;
        r = discovery_run(tree, NULL, &inventory, err);
        if (r == 0) {
                *ret_devices = inventory.device_count;
                inventory_free(&inventory);
        }
        tree_close(tree);
        return r;
}

static void row(const char *what, const char *limit, bool good, const char *fmt, double value)
{
        char measured[64];

        (void) snprintf(measured, sizeof(measured), fmt, value);
        printf("%s | %s | %s | %s\n", what, measured, limit, good ? "within" : "MISSED");
}

static void bench_scans(const char *directory, const char *what)
{
        size_t devices = 0;
        struct err err = { 0 };
        double begin = now_ms(CLOCK_MONOTONIC), first, cpu;
        long before;
        int descriptors;
        char name[128];

        if (scan(directory, &devices, &err) < 0)
                fprintf(stderr, "%s\n", err.msg);
        first = now_ms(CLOCK_MONOTONIC) - begin;
        (void) snprintf(name, sizeof(name), "%s: first scan (%zu devices)", what, devices);
        row(name, "<= 100 ms", first <= 100, "%.2f ms", first);
        for (int i = 0; i < RESCANS / 2; i++) /* the allocator settles; a leak would go on */
                (void) scan(directory, &devices, &err);
        before = resident_kib();
        descriptors = open_descriptors();
        begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < RESCANS / 2; i++)
                (void) scan(directory, &devices, &err);
        cpu = (now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin) / (RESCANS / 2);
        (void) snprintf(name, sizeof(name), "%s: CPU time of a rescan", what);
        row(name, "<= 1 ms (0.1 % of a core at one a second)", cpu <= 1, "%.3f ms", cpu);
        (void) snprintf(name, sizeof(name), "%s: memory gained in the second half of %d rescans", what,
                        RESCANS);
        row(name, "0 KiB", resident_kib() - before <= 0, "%.0f KiB", (double) (resident_kib() - before));
        (void) snprintf(name, sizeof(name), "%s: descriptors gained", what);
        row(name, "0", open_descriptors() == descriptors, "%.0f",
            (double) (open_descriptors() - descriptors));
}

/* --- hostile trees --- */

static void make(const char *directory, const char *name)
{
        char path[512];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        for (char *slash = path + strlen(directory) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
                *slash = '\0';
                (void) mkdir(path, 0755);
                *slash = '/';
        }
        (void) mkdir(path, 0755);
}

static void put(const char *directory, const char *name, const char *byte, size_t count)
{
        char path[512];
        CLEANUP(fclose_p) FILE *file = NULL;

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        file = fopen(path, "we");
        for (size_t i = 0; file != NULL && i < count; i++)
                (void) fputs(byte, file);
}

static void link_to(const char *target, int fd, const char *path)
{
        if (symlinkat(target, fd, path) < 0)
                perror(path);
}

static void fill_entries(const char *directory, const char *where, unsigned count)
{
        char path[512];
        int fd;

        make(directory, where);
        (void) snprintf(path, sizeof(path), "%s/%s", directory, where);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned i = 0; fd >= 0 && i < count; i++) {
                (void) snprintf(path, sizeof(path), "%04x:%02x:%02x.%x", i >> 16, i >> 8 & 0xff,
                                i >> 3 & 0x1f, i & 7);
                link_to("x", fd, path);
        }
        if (fd >= 0)
                (void) close(fd);
}

/* Functions that all claim to be GPUs, as real directories. */
static void fill_functions(const char *directory, unsigned count, const char *class_name)
{
        for (unsigned i = 0; i < count; i++) {
                char base[128], path[192];

                (void) snprintf(base, sizeof(base), "sys/bus/pci/devices/%04x:%02x:%02x.%x", i >> 16,
                                i >> 8 & 0xff, i >> 3 & 0x1f, i & 7);
                make(directory, base);
                (void) snprintf(path, sizeof(path), "%s/vendor", base);
                put(directory, path, "0x1da3\n", 1);
                (void) snprintf(path, sizeof(path), "%s/device", base);
                put(directory, path, "0x1020\n", 1);
                (void) snprintf(path, sizeof(path), "%s/class", base);
                put(directory, path, "0x120000\n", 1);
                (void) snprintf(path, sizeof(path), "sys/class/%s/accel%u/device", class_name, i);
                make(directory, path);
        }
}

static void fill_nonsense(const char *directory)
{
        static const char *const files[] = {
                "sys/devices/system/node/online",
                "sys/devices/system/cpu/online",
                "proc/cpuinfo",
                "proc/meminfo",
                "proc/driver/nvidia/gpus/0000:11:00.0/information",
                "sys/bus/pci/devices/0000:11:00.0/class",
        };
        char path[512];

        make(directory, "sys/devices/system/node");
        make(directory, "sys/devices/system/cpu");
        make(directory, "sys/bus/pci/devices/0000:11:00.0");
        make(directory, "sys/bus/pci/devices/0000:12:00.0");
        make(directory, "proc/driver/nvidia/gpus/0000:11:00.0");
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                put(directory, files[i], "9", 1 << 20); /* one line of 1 MiB */
        put(directory, "sys/bus/pci/devices/0000:11:00.0/vendor", "0x10de\n", 1);
        put(directory, "sys/bus/pci/devices/0000:11:00.0/numa_node", "-77777777777777777777\n", 1);
        put(directory, "sys/bus/pci/devices/0000:11:00.0/current_link_width", "-4\n", 1);
        (void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:12:00.0/vendor", directory);
        (void) mkfifo(path, 0600);
        (void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:13:00.0", directory);
        link_to("0000:13:00.0", AT_FDCWD, path);
        (void) snprintf(path, sizeof(path), "%s/sys/class", directory);
        link_to(".", AT_FDCWD, path);
}

static void bench_hostile(const char *directory, const char *what)
{
        size_t devices = 0;
        struct err err = { 0 };
        char name[400];
        double begin = now_ms(CLOCK_MONOTONIC), took;
        int r = scan(directory, &devices, &err);

        took = now_ms(CLOCK_MONOTONIC) - begin;
        if (r < 0)
                (void) snprintf(name, sizeof(name), "hostile: %s (refused: %.200s)", what, err.msg);
        else
                (void) snprintf(name, sizeof(name), "hostile: %s (read, %zu devices)", what, devices);
        row(name, "<= 200 ms or refused", took <= 200, "%.1f ms", took);
}

int main(void)
{
        char base[64] = "/tmp/bench_discovery.XXXXXX", path[128];
        static const char *const kinds[] = { "entries", "functions", "few", "nonsense" };

        setlinebuf(stdout);
        if (mkdtemp(base) == NULL)
                return 1;
        (void) snprintf(path, sizeof(path), "%s/h100", base);
        if (expand("nvidia-h100-x8", path))
                bench_scans(path, "8 NVIDIA");
        (void) snprintf(path, sizeof(path), "%s/x16", base);
        if (expand("nvidia-v100-x16", path))
                bench_scans(path, "16 NVIDIA");
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", base, kinds[i]);
                (void) mkdir(path, 0755);
        }
        (void) snprintf(path, sizeof(path), "%s/entries", base);
        fill_entries(path, "sys/bus/pci/devices", 1000000);
        bench_hostile(path, "10^6 entries in sys/bus/pci/devices");
        (void) snprintf(path, sizeof(path), "%s/functions", base);
        fill_functions(path, 4000, "accel");
        bench_hostile(path, "4,000 functions that all claim to be devices");
        (void) snprintf(path, sizeof(path), "%s/few", base);
        fill_functions(path, 1000, "accel");
        bench_hostile(path, "1,000 devices and a class of 1,000");
        (void) snprintf(path, sizeof(path), "%s/nonsense", base);
        fill_nonsense(path);
        bench_hostile(path, "1 MiB lines, FIFO, link loops, negative numbers");
        (void) nftw(base, remove_one, 32, FTW_DEPTH | FTW_PHYS);
        return 0;
}
