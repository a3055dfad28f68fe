#include "cli/measure.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/ranges.h"
#include "core/text.h"

#define ORDER       1024 /* of the matrices: 12 MiB in all, more than most second-level caches */
#define SECONDS     1.0
#define DEADLINE_MS 20000
#define BLOCK       64

/* The part of cblas.h that is used. */
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

struct result {
        char kernel[32];
        double gflops;
};

static double now_seconds(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* One thread, blocked for the caches: what a machine without OpenBLAS is told, under its own name. */
static void portable_product(const float *a, const float *b, float *c)
{
        for (size_t i0 = 0; i0 < ORDER; i0 += BLOCK)
                for (size_t k0 = 0; k0 < ORDER; k0 += BLOCK)
                        for (size_t i = i0; i < i0 + BLOCK; i++)
                                for (size_t k = k0; k < k0 + BLOCK; k++)
                                        for (size_t j = 0; j < ORDER; j++)
                                                c[i * ORDER + j] += a[i * ORDER + k] * b[k * ORDER + j];
}

static void run_kernel(sgemm_function *sgemm, const float *a, const float *b, float *c)
{
        if (sgemm != NULL)
                sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ORDER, ORDER, ORDER, 1, a, ORDER, b, ORDER, 0, c,
                      ORDER);
        else
                portable_product(a, b, c);
}

/* In the child: runs until a second is over, after one run that warms up. */
static int measure_here(struct result *ret)
{
        void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
        sgemm_function *sgemm = NULL;
        float *matrices = calloc((size_t) 3 * ORDER * ORDER, sizeof(*matrices));
        float *a = matrices, *b = matrices + ORDER * ORDER, *c = matrices + (size_t) 2 * ORDER * ORDER;
        double begin, took = 0;
        unsigned runs = 0;

        if (matrices == NULL)
                return -ENOMEM;
        if (library != NULL)
                *(void **) &sgemm = dlsym(library, "cblas_sgemm");
        for (size_t i = 0; i < (size_t) ORDER * ORDER; i++) {
                a[i] = (float) (i % 7) * 0.25F;
                b[i] = (float) (i % 5) * 0.5F;
        }
        run_kernel(sgemm, a, b, c);
        for (begin = now_seconds(); took < SECONDS; runs++) {
                run_kernel(sgemm, a, b, c);
                took = now_seconds() - begin;
        }
        (void) text_copy(ret->kernel, sizeof(ret->kernel),
                         sgemm != NULL ? "sgemm-openblas" : "sgemm-portable");
        ret->gflops = 2.0 * ORDER * ORDER * ORDER * runs / took / 1e9;
        free(matrices);
        return 0;
}

static _Noreturn void child(int fd, const cpu_set_t *cpus)
{
        struct result result = { 0 };

        /* before OpenBLAS is opened: it starts as many threads as there are processors to run on */
        if (sched_setaffinity(0, sizeof(*cpus), cpus) < 0 || measure_here(&result) < 0)
                _exit(1);
        _exit(write(fd, &result, sizeof(result)) == (ssize_t) sizeof(result) ? 0 : 1);
}

/* Return: 0, or -ETIMEDOUT, -EIO. */
static int measure_in_child(const cpu_set_t *cpus, struct result *ret)
{
        struct pollfd ready = { .events = POLLIN };
        int pipe_fds[2], status, r = -EIO;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                child(pipe_fds[1], cpus);
        (void) close(pipe_fds[1]);
        ready.fd = pipe_fds[0];
        if (pid > 0) {
                if (poll(&ready, 1, DEADLINE_MS) <= 0)
                        r = -ETIMEDOUT;
                else if (read(pipe_fds[0], ret, sizeof(*ret)) == (ssize_t) sizeof(*ret))
                        r = 0;
                (void) kill(pid, SIGKILL); /* it has nothing left to do */
                (void) waitpid(pid, &status, 0);
        }
        (void) close(pipe_fds[0]);
        return r;
}

/* The processors of a group: those of its NUMA node; all that there are where it is not known. */
static void find_cpus(const struct tree *tree, int numa, cpu_set_t *ret)
{
        char path[96], text[TREE_VALUE_BYTES];
        unsigned cpus[CPU_SETSIZE];
        int count = 0;

        CPU_ZERO(ret);
        (void) text_format(path, sizeof(path), "sys/devices/system/node/node%d/cpulist", numa);
        if (numa >= 0 && tree_read_text(tree, path, text, sizeof(text)) > 0)
                count = ranges_parse(text, cpus, CPU_SETSIZE);
        for (int i = 0; i < count && i < CPU_SETSIZE; i++)
                CPU_SET(cpus[i], ret);
        if (count <= 0)
                (void) sched_getaffinity(0, sizeof(*ret), ret);
}

int measure_groups(const struct tree *tree, struct inventory *inventory, uint64_t now_usec, struct err *err)
{
        int measured = 0;

        for (size_t i = 0; i < inventory->device_count; i++) {
                struct device_group *group = inventory_find_group(inventory, inventory->devices[i].group);
                struct result result = { 0 };
                cpu_set_t cpus;
                int r;

                if (group == NULL || strcmp(group->vendor, "cpu") != 0 || group->measured_kernel[0] != '\0')
                        continue;
                /* a socket of several whose processors no NUMA node names: measuring all would say too much
                 */
                if (inventory->devices[i].numa < 0 && inventory->device_count > 1)
                        continue;
                find_cpus(tree, inventory->devices[i].numa, &cpus);
                r = measure_in_child(&cpus, &result);
                if (r < 0)
                        return err_set(err, r, "group %s could not be measured: %s", group->name,
                                       strerror(-r));
                (void) text_copy(group->measured_kernel, sizeof(group->measured_kernel), result.kernel);
                group->measured_gflops = result.gflops;
                group->measured_usec = now_usec;
                measured++;
        }
        return measured;
}
