/* A child for each measurement, the kernels one after the other, and what is said of a group that none
 * reaches. */
#include "agent/measure/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/measure/measure_kernel.h"
#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"
#include "io/clock.h"

#define SECOND_NSEC 1000000000u
#define DEADLINE_MS 60000 /* a driver that compiles its kernels for the first time takes its time */
#define END_MS      2000  /* for a killed child; one that the kernel holds is left behind */

/* Of those that can be for a device the better one first. */
static const struct measure_kernel *const kernels[] = {
        &measure_kernel_openblas,
        &measure_kernel_portable,
        &measure_kernel_cublas,
        &measure_kernel_clblast,
};

struct answer {
        int error; /* 0, or negative */
        double gflops;
};

/* Runs until a second is over, after what warms up. */
static struct answer measure(const struct measure_kernel *k, const struct device *device)
{
        void *opened = NULL;
        uint64_t begin, took_nsec = 0;
        unsigned runs = 0;
        int r = k->open(device, &opened);

        if (r == 0)
                r = k->run(opened, k->warm_runs);
        for (begin = clock_monotonic_nsec(); r == 0 && took_nsec < SECOND_NSEC; runs += k->at_a_time) {
                r = k->run(opened, k->at_a_time);
                took_nsec = clock_monotonic_nsec() - begin;
        }
        if (r < 0)
                return (struct answer){ .error = r };
        return (struct answer){ .gflops = 2.0 * k->order * k->order * k->order * runs / (double) took_nsec };
}

static _Noreturn void child(int fd, const struct measure_kernel *kernel, const struct device *device,
                            const cpu_set_t *cpus)
{
        struct answer answer = { .error = -EIO };
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (nothing >= 0) {
                (void) dup2(nothing, 1); /* libraries print */
                (void) dup2(nothing, 2);
        }
        /* before OpenBLAS is opened: it starts as many threads as there are processors to run on */
        if (cpus != NULL && sched_setaffinity(0, sizeof(*cpus), cpus) < 0)
                answer.error = -errno;
        else
                answer = measure(kernel, device);
        _exit(write(fd, &answer, sizeof(answer)) == (ssize_t) sizeof(answer) ? 0 : 1);
}

static void end_child(pid_t pid)
{
        (void) kill(pid, SIGKILL); /* it has nothing left to do */
        for (int waited = 0; waited < END_MS; waited += 10) {
                if (waitpid(pid, NULL, WNOHANG) != 0)
                        return;
                (void) nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        }
}

/* Return: 0, -ETIMEDOUT, -EIO (it crashed) or what the kernel says. */
static int measure_in_child(const struct measure_kernel *kernel, const struct device *device,
                            const cpu_set_t *cpus, double *ret_gflops)
{
        struct pollfd ready = { .events = POLLIN };
        struct answer answer;
        int pipe_fds[2], r = -EIO;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                child(pipe_fds[1], kernel, device, cpus);
        (void) close(pipe_fds[1]);
        ready.fd = pipe_fds[0];
        if (pid > 0) {
                if (poll(&ready, 1, DEADLINE_MS) <= 0)
                        r = -ETIMEDOUT;
                else if (read(pipe_fds[0], &answer, sizeof(answer)) == (ssize_t) sizeof(answer))
                        r = answer.error;
                end_child(pid);
        }
        (void) close(pipe_fds[0]);
        if (r == 0 && !(answer.gflops > 0 && answer.gflops < 1e9))
                r = -ERANGE;
        if (r == 0)
                *ret_gflops = answer.gflops;
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
                if (cpus[i] < CPU_SETSIZE)
                        CPU_SET(cpus[i], ret);
        if (count <= 0)
                (void) sched_getaffinity(0, sizeof(*ret), ret);
}

/* A socket of several whose processors no NUMA node names: measuring all would say too much. */
static bool is_vague(const struct inventory *inventory, const struct device *device)
{
        size_t groups = 0;

        for (size_t i = 0; i < inventory->group_count; i++)
                groups += strcmp(inventory->groups[i].vendor, "cpu") == 0;
        return device->numa < 0 && groups > 1;
}

/* The first kernel that works; what went wrong otherwise: a library that is there and fails tells more than
 * one that is not. */
static int measure_group(const struct tree *tree, const struct inventory *inventory,
                         const struct device *device, struct device_group *group)
{
        bool is_cpu = strcmp(group->vendor, "cpu") == 0;
        int worst = -ENOENT;
        cpu_set_t cpus;

        if (is_cpu && is_vague(inventory, device))
                return -ENOENT;
        if (is_cpu)
                find_cpus(tree, device->numa, &cpus);
        for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
                const char *runtime = kernels[i]->runtime;
                int r;

                if (runtime == NULL ? is_cpu : strcmp(runtime, group->runtime) != 0)
                        continue;
                r = measure_in_child(kernels[i], device, is_cpu ? &cpus : NULL, &group->measured_gflops);
                if (r == 0)
                        return text_copy(group->measured_kernel, sizeof(group->measured_kernel),
                                         kernels[i]->name)
                                       ? 0
                                       : -ERANGE;
                if (r != -ENOENT)
                        worst = r;
        }
        return worst;
}

static const struct device *usable_device(const struct inventory *inventory, const struct device_group *group)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].group, group->name) == 0 &&
                    (inventory->devices[i].health == HEALTH_HEALTHY ||
                     inventory->devices[i].health == HEALTH_DEGRADED))
                        return &inventory->devices[i];
        return NULL;
}

static const char *why(int error)
{
        switch (error) {
        case -ENODEV:
                return "none of its devices is well";
        case -ENOENT:
                return "no library here runs a kernel on it (cuBLAS, or OpenCL and CLBlast)";
        case -ETIMEDOUT:
                return "its driver did not end the kernel";
        case -EIO:
                return "its library failed";
        case -ERANGE:
                return "what its library says cannot be true";
        default:
                return strerrordesc_np(-error);
        }
}

int measure_groups(const struct tree *tree, struct inventory *inventory, uint64_t now_usec,
                   void (*skipped)(const struct device_group *group, const char *why))
{
        int measured = 0;

        for (size_t i = 0; i < inventory->group_count; i++) {
                struct device_group *group = &inventory->groups[i];
                const struct device *device = usable_device(inventory, group);
                int r = device != NULL ? measure_group(tree, inventory, device, group) : -ENODEV;

                if (r < 0) {
                        skipped(group, why(r));
                        continue;
                }
                group->measured_usec = now_usec;
                device_group_complete(group);
                measured++;
        }
        return measured;
}
