/* Forks a search a core, waits for their answers, and keeps the best. */
#include "planner/commands/plan_searches.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"

#define SEARCHES_MAX    64
#define EFFORT_SEARCHES 4

/* What a child writes: the header, then a device a node. */
struct found {
        int result;
        struct err err;
        double max_load_ms, lower_bound_ms;
        bool exact;
        uint64_t steps;
};

struct search_child {
        pid_t pid;
        int fd; /* read end */
};

static double now_ms(void)
{
        return (double) clock_monotonic_nsec() / 1e6;
}

static bool is_late(void *userdata)
{
        return now_ms() >= *(const double *) userdata;
}

static void search_and_exit(const struct graph_problem *problem, uint64_t seed, uint64_t effort,
                            double deadline_ms, int fd)
{
        struct graph_search search = {
                .seed = seed, .effort = effort, .stop = is_late, .userdata = &deadline_ms
        };
        struct graph_plan plan = { 0 };
        struct found found = { 0 };
        FILE *out;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        found.result = graph_split(problem, &search, &plan, &found.err);
        found.max_load_ms = plan.max_load_ms;
        found.lower_bound_ms = plan.lower_bound_ms;
        found.exact = plan.exact;
        found.steps = plan.steps;
        out = fdopen(fd, "w");
        if (out != NULL && fwrite(&found, sizeof(found), 1, out) == 1 && found.result == 0)
                (void) fwrite(plan.device, sizeof(*plan.device), problem->node_count, out);
        if (out != NULL)
                (void) fflush(out); /* cut short, it is no answer: collect() sees it */
        _exit(0);
}

static int start(const struct graph_problem *problem, uint64_t seed, uint64_t effort, double deadline_ms,
                 struct search_child *ret)
{
        int fds[2];

        *ret = (struct search_child){ .pid = -1, .fd = -1 };
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ret->pid = fork();
        if (ret->pid < 0) {
                int r = -errno;

                (void) close(fds[0]);
                (void) close(fds[1]);
                return r;
        }
        if (ret->pid == 0) {
                (void) close(fds[0]);
                search_and_exit(problem, seed, effort, deadline_ms, fds[1]);
        }
        (void) close(fds[1]);
        ret->fd = fds[0];
        return 0;
}

/* Takes a child's answer over if it is better than *best. */
static void collect(const struct graph_problem *problem, const struct search_child *child, struct found *best,
                    struct graph_plan *plan)
{
        uint32_t *device = calloc(problem->node_count + 1, sizeof(*device));
        struct found found = { 0 };
        FILE *in = fdopen(child->fd, "r");
        bool whole = in != NULL && device != NULL && fread(&found, sizeof(found), 1, in) == 1 &&
                     (found.result != 0 ||
                      fread(device, sizeof(*device), problem->node_count, in) == problem->node_count);

        (void) (in != NULL ? fclose(in) : close(child->fd));
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        if (!whole)
                found.result = err_set(&found.err, -EIO, "a search process died");
        plan->steps += found.steps;
        if (found.result == 0 && (best->result != 0 || found.max_load_ms < best->max_load_ms)) {
                free(plan->device);
                plan->device = TAKE(device);
                *best = found;
        } else if (best->result != 0)
                *best = found;
        if (found.result == 0 && found.exact && found.max_load_ms <= best->max_load_ms)
                best->exact = true;
        if (found.result == 0 && found.lower_bound_ms > best->lower_bound_ms)
                best->lower_bound_ms = found.lower_bound_ms;
        free(device);
}

int plan_searches(const struct graph_problem *problem, uint64_t seed, uint64_t effort, double deadline_ms,
                  struct graph_plan *ret, struct err *err)
{
        struct search_child children[SEARCHES_MAX];
        struct graph_plan plan = { 0 };
        struct found best = { .result = -ECHILD };
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        size_t at_once = cores < 1 ? 1 : cores > SEARCHES_MAX ? SEARCHES_MAX : (size_t) cores;
        size_t searches = effort > 0 ? EFFORT_SEARCHES : at_once, started = 0;
        int r = 0;

        for (size_t i = 0; i < searches; i++) {
                while (r == 0 && started < searches && started < i + at_once) {
                        r = start(problem, seed + started * 1000003, effort, deadline_ms, &children[started]);
                        if (r < 0)
                                searches = started;
                        else
                                started++;
                }
                if (i < started)
                        collect(problem, &children[i], &best, &plan);
        }
        if (started == 0)
                return err_set(err, r, "cannot start a search process: %s", strerror(-r));
        if (best.result != 0) {
                graph_split_plan_free(&plan);
                if (err != NULL)
                        *err = best.err;
                return best.result;
        }
        plan.max_load_ms = best.max_load_ms;
        plan.lower_bound_ms = best.lower_bound_ms;
        plan.exact = best.exact;
        *ret = plan;
        return 0;
}
