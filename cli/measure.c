#include "cli/measure.h"

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

#include "base/cleanup.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/measure_kernels.h"

#define DEADLINE_MS 60000 /* a driver that compiles its kernels for the first time takes its time */
#define END_MS      2000  /* for a killed child; one that the kernel holds is left behind */

typedef int measure_function(const struct device *device, struct measure_result *ret);

/* What runs on the accelerators of a runtime, the better one first; runtime NULL = of any. */
static const struct {
        const char *runtime;
        measure_function *function;
} kernels[] = {
        { "cuda", measure_cuda },
        { NULL, measure_opencl },
};

struct answer {
        int error; /* 0, or negative */
        struct measure_result result;
};

static _Noreturn void child(int fd, measure_function *function, const struct device *device,
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
                answer.error = function(device, &answer.result);
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
static int measure_in_child(measure_function *function, const struct device *device, const cpu_set_t *cpus,
                            struct measure_result *ret)
{
        struct pollfd ready = { .events = POLLIN };
        struct answer answer;
        int pipe_fds[2], r = -EIO;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                child(pipe_fds[1], function, device, cpus);
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
        if (r == 0 && !(answer.result.gflops > 0 && answer.result.gflops < 1e9))
                r = -ERANGE;
        if (r == 0)
                *ret = answer.result;
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

static int measure_cpu_group(const struct tree *tree, const struct inventory *inventory,
                             const struct device *device, struct measure_result *ret)
{
        cpu_set_t cpus;
        size_t groups = 0;

        for (size_t i = 0; i < inventory->group_count; i++)
                groups += strcmp(inventory->groups[i].vendor, "cpu") == 0;
        /* a socket of several whose processors no NUMA node names: measuring all would say too much */
        if (device->numa < 0 && groups > 1)
                return -ENOENT;
        find_cpus(tree, device->numa, &cpus);
        return measure_in_child(measure_cpu, device, &cpus, ret);
}

/* The first kernel that works; what went wrong otherwise: a library that is there and fails tells more than
 * one that is not. */
static int measure_accelerator(const struct device_group *group, const struct device *device,
                               struct measure_result *ret)
{
        int worst = -ENOENT;

        for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
                int r;

                if (kernels[i].runtime != NULL && strcmp(kernels[i].runtime, group->runtime) != 0)
                        continue;
                r = measure_in_child(kernels[i].function, device, NULL, ret);
                if (r == 0)
                        return 0;
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
                   void (*told)(const struct device_group *group, const char *why))
{
        int measured = 0;

        for (size_t i = 0; i < inventory->group_count; i++) {
                struct device_group *group = &inventory->groups[i];
                const struct device *device = usable_device(inventory, group);
                struct measure_result result = { 0 };
                int r = -ENODEV;

                if (device != NULL)
                        r = strcmp(group->vendor, "cpu") == 0
                                    ? measure_cpu_group(tree, inventory, device, &result)
                                    : measure_accelerator(group, device, &result);
                if (r < 0) {
                        told(group, why(r));
                        continue;
                }
                (void) text_copy(group->measured_kernel, sizeof(group->measured_kernel), result.kernel);
                group->measured_gflops = result.gflops;
                group->measured_usec = now_usec;
                measured++;
        }
        return measured;
}
