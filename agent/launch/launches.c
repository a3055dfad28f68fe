/* Launches: processes in sessions of their own, and how each of them ends. */
#include "agent/launch/launches.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/loop.h"

#define STOP_USEC UINT64_C(10000000)

struct launch {
        struct launches *launches;
        unsigned id;
        pid_t pid; /* also its process group */
        uid_t uid;
        char runtime[16];
        char (*devices)[DEVICE_ID_BYTES];
        size_t device_count;
        uint64_t started_usec; /* CLOCK_REALTIME */
        sd_event_source *source, *stop_timer;
        struct launch *next;
};

struct launches {
        sd_event *loop;
        launches_ended ended;
        void *userdata;
        unsigned last_id;
        size_t count;
        struct launch *first;
};

static void launch_free(struct launch *l)
{
        if (l == NULL)
                return;
        (void) sd_event_source_unref(l->source);
        (void) sd_event_source_disable_unref(l->stop_timer);
        free(l->devices);
        free(l);
}

int launches_new(sd_event *loop, launches_ended ended, void *userdata, struct launches **ret, struct err *err)
{
        struct launches *all = calloc(1, sizeof(*all));

        if (all == NULL)
                return err_set(err, -ENOMEM, "no memory for launches");
        *all = (struct launches){ .loop = loop, .ended = ended, .userdata = userdata };
        *ret = all;
        return 0;
}

void launches_free(struct launches *launches)
{
        if (launches == NULL)
                return;
        for (struct launch *l = launches->first; l != NULL; l = l->next)
                (void) kill(-l->pid, SIGTERM);
        for (int i = 0; i < 20 && launches->first != NULL;
             i++) { /* a moment: the agent must leave within two seconds */
                bool alive = false;

                for (struct launch *l = launches->first; l != NULL; l = l->next)
                        alive |= waitpid(l->pid, NULL, WNOHANG) == 0;
                if (!alive)
                        break;
                (void) nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        }
        while (launches->first != NULL) {
                struct launch *l = launches->first;

                (void) kill(-l->pid, SIGKILL);
                launches->first = l->next;
                launch_free(l);
        }
        free(launches);
}

static int on_end(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct launch *l = userdata, **at = &l->launches->first;
        struct launches *all = l->launches;
        bool well = info->si_code == CLD_EXITED && info->si_status == 0;
        char how[64], runtime[16];
        unsigned id = l->id;

        (void) source;
        (void) text_format(how, sizeof(how), "%s %d", info->si_code == CLD_EXITED ? "exit status" : "signal",
                           info->si_status);
        (void) text_copy(runtime, sizeof(runtime), l->runtime);
        (void) kill(-l->pid, SIGKILL); /* what it left behind in its session */
        while (*at != l)
                at = &(*at)->next;
        *at = l->next;
        all->count--;
        launch_free(l);
        all->ended(all->userdata, id, runtime, well, how);
        return 0;
}

/* A session of its own, without input, that ends with the agent. */
static bool leave_agent(void)
{
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        return setsid() >= 0 && nothing >= 0 && dup2(nothing, 0) >= 0;
}

static bool become_user(const struct caller *caller, const struct passwd *user)
{
        if (geteuid() != 0 || caller->uid == 0)
                return true;
        return (user != NULL ? initgroups(user->pw_name, caller->gid) : setgroups(0, NULL)) == 0 &&
               setgid(caller->gid) == 0 && setuid(caller->uid) == 0;
}

/* In the child, after fork: become the caller and the program. What goes wrong is written into `report`. */
static _Noreturn void become(const struct launches_request *q, int report)
{
        const struct passwd *user = getpwuid(q->caller->uid);
        int error;

        /* changing the user clears the death signal: it is set after that */
        if (leave_agent() && become_user(q->caller, user) && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
            chdir(q->directory != NULL ? q->directory : "/") == 0)
                (void) execve(q->path, q->argv, q->environment);
        error = errno;
        (void) !write(report, &error, sizeof(error));
        _exit(127);
}

/* Return: 0 and the pid of a process that runs its program, or the errno of what failed in it. */
static int run(const struct launches_request *q, pid_t *ret_pid)
{
        int report[2], error = 0;
        ssize_t n;

        if (pipe2(report, O_CLOEXEC) < 0)
                return -errno;
        *ret_pid = fork();
        if (*ret_pid == 0)
                become(q, report[1]);
        (void) close(report[1]);
        if (*ret_pid < 0) {
                (void) close(report[0]);
                return -errno;
        }
        n = read(report[0], &error, sizeof(error)); /* ends with the exec, which closes the other end */
        (void) close(report[0]);
        if (n == sizeof(error)) {
                (void) waitpid(*ret_pid, NULL, 0);
                return -error;
        }
        return 0;
}

static void on_stop_due(void *userdata)
{
        const struct launch *l = userdata;

        (void) kill(-l->pid, SIGKILL);
}

/* Also what it takes to end it. Return: NULL = no memory. */
static struct launch *launch_new(struct launches *launches, const struct launches_request *request)
{
        struct launch *l = calloc(1, sizeof(*l));

        if (l == NULL)
                return NULL;
        l->launches = launches;
        l->uid = request->caller->uid;
        l->device_count = request->device_count;
        l->devices = calloc(request->device_count + 1, sizeof(*l->devices));
        if (l->devices == NULL || loop_timer(launches->loop, on_stop_due, l, &l->stop_timer) < 0) {
                launch_free(l);
                return NULL;
        }
        if (request->device_count > 0)
                memcpy(l->devices, request->devices, request->device_count * sizeof(*l->devices));
        (void) text_copy(l->runtime, sizeof(l->runtime), request->runtime);
        l->started_usec = loop_realtime_usec(launches->loop);
        return l;
}

int launches_start(struct launches *launches, const struct launches_request *request, unsigned *ret_id,
                   pid_t *ret_pid, struct err *err)
{
        struct launch *l;
        int r;

        if (launches->count >= LAUNCHES_MAX)
                return err_set(err, -ENOSPC, "%d processes are launched already", LAUNCHES_MAX);
        l = launch_new(launches, request);
        if (l == NULL)
                return err_set(err, -ENOMEM, "no memory for a launch");
        FAILPOINT("launches.start");
        r = run(request, &l->pid);
        if (r < 0) {
                launch_free(l);
                return err_set(err, r, "'%s' as uid %u: %s", request->path, (unsigned) request->caller->uid,
                               strerrordesc_np(-r));
        }
        FAILPOINT("launches.started");
        r = sd_event_add_child(launches->loop, &l->source, l->pid, WEXITED, on_end, l);
        if (r < 0) {
                (void) kill(-l->pid, SIGKILL);
                (void) waitpid(l->pid, NULL, 0);
                launch_free(l);
                return err_set(err, r, "cannot supervise a process: %s", strerrordesc_np(-r));
        }
        *ret_id = l->id = ++launches->last_id;
        *ret_pid = l->pid;
        l->next = launches->first;
        launches->first = l;
        launches->count++;
        return 0;
}

int launches_stop(struct launches *launches, unsigned id, const struct caller *caller)
{
        for (struct launch *l = launches->first; l != NULL; l = l->next) {
                if (l->id != id)
                        continue;
                if (caller->uid != 0 && caller->uid != l->uid)
                        return -EACCES;
                (void) kill(-l->pid, SIGTERM);
                if (!loop_is_armed(l->stop_timer))
                        loop_rearm(l->stop_timer, STOP_USEC);
                return 0;
        }
        return -ENOENT;
}

bool launches_hold(const struct launches *all, const char *device_id)
{
        for (const struct launch *l = all != NULL ? all->first : NULL; l != NULL; l = l->next)
                for (size_t i = 0; i < l->device_count; i++)
                        if (strcmp(l->devices[i], device_id) == 0)
                                return true;
        return false;
}

json_t *launches_list(const struct launches *launches)
{
        json_t *list = json_array();

        for (const struct launch *l = launches->first; l != NULL; l = l->next) {
                json_t *devices = json_array();

                for (size_t i = 0; i < l->device_count; i++)
                        (void) json_array_append_new(devices, json_string(l->devices[i]));
                (void) json_array_append_new(
                        list, json_pack("{s:i, s:i, s:i, s:s, s:I, s:o}", "id", (int) l->id, "pid",
                                        (int) l->pid, "uid", (int) l->uid, "runtime", l->runtime, "started",
                                        (json_int_t) (l->started_usec / 1000000), "devices", devices));
        }
        return list;
}
