/* A forked child that works, a pipe that is read to its end, and a deadline. */
#include "io/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/loop.h"
#include "io/write_all.h"

#define CHILD_FD   3 /* the only descriptor beyond the standard ones */
#define CHILD_NICE 5

struct snapshot {
        struct snapshot_pool *pool;
        struct snapshot *next;
        pid_t pid;
        int fd;
        struct text text;
        sd_event_source *child, *answer, *deadline;
        snapshot_done *done;
        void *userdata;
        int result;              /* of the child as far as it is known */
        bool has_ended, is_read; /* the child; its pipe */
};

struct snapshot_pool {
        sd_event *loop;
        struct snapshot *running;
        unsigned count, seconds;
};

int snapshot_pool_new(sd_event *loop, unsigned seconds, struct snapshot_pool **ret)
{
        *ret = calloc(1, sizeof(**ret));
        if (*ret == NULL)
                return -ENOMEM;
        (*ret)->loop = loop;
        (*ret)->seconds = seconds;
        return 0;
}

/* The kernel may take it before anything else, where memory ends. */
static void offer_to_oom(void)
{
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        if (write(fd, "1000", 4) != 4) {
                /* then it is taken by its size */
        }
        (void) close(fd);
}

static _Noreturn void be_child(int fd, pid_t parent, snapshot_work *work, void *userdata)
{
        struct text text = { 0 };
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || (fd != CHILD_FD && dup2(fd, CHILD_FD) < 0))
                _exit(1);
        (void) close_range(CHILD_FD + 1, ~0u, 0);
        (void) setpriority(PRIO_PROCESS, 0, CHILD_NICE);
        offer_to_oom();
        work(userdata, &text);
        _exit(text.failed || write_all(CHILD_FD, text.data, text.size_bytes) < 0);
}

static void release(struct snapshot *s)
{
        sd_event_source_disable_unref(s->child);
        sd_event_source_disable_unref(s->answer);
        sd_event_source_disable_unref(s->deadline);
        if (s->pid > 0 && !s->has_ended) {
                (void) kill(s->pid, SIGKILL);
                (void) waitpid(s->pid, NULL, 0);
        }
        if (s->fd >= 0)
                (void) close(s->fd);
        text_free(&s->text);
        free(s);
}

static void finish(struct snapshot *s, int result)
{
        struct snapshot **place = &s->pool->running;
        size_t bytes = 0;
        char *text;

        while (*place != s)
                place = &(*place)->next;
        *place = s->next;
        s->pool->count--;
        text = result == 0 ? text_take(&s->text, &bytes) : NULL;
        s->done(s->userdata, result == 0 && text == NULL ? -EIO : result, text, bytes);
        release(s);
}

void snapshot_pool_free(struct snapshot_pool *pool)
{
        while (pool != NULL && pool->running != NULL)
                finish(pool->running, -ECANCELED);
        free(pool);
}

static void finish_if_done(struct snapshot *s)
{
        if (s->has_ended && s->is_read)
                finish(s, s->result);
}

static int on_end(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct snapshot *s = userdata;

        (void) source;
        s->has_ended = true;
        s->result = info->si_code == CLD_EXITED && info->si_status == 0 ? 0 : -EIO;
        finish_if_done(s);
        return 0;
}

static int on_answer(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct snapshot *s = userdata;
        char bytes[65536] __attribute__((uninitialized));
        ssize_t n = read(fd, bytes, sizeof(bytes));

        (void) events;
        if (n > 0)
                text_append_bytes(&s->text, bytes, (size_t) n);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return 0;
        s->is_read = true;
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        finish_if_done(s);
        return 0;
}

static void on_deadline(void *userdata)
{
        finish(userdata, -ETIMEDOUT);
}

static int watch(struct snapshot *s)
{
        sd_event *loop = s->pool->loop;
        int r = sd_event_add_child(loop, &s->child, s->pid, WEXITED, on_end, s);

        if (r >= 0)
                r = sd_event_add_io(loop, &s->answer, s->fd, EPOLLIN, on_answer, s);
        if (r >= 0)
                r = loop_after(loop, s->pool->seconds * UINT64_C(1000000), on_deadline, s, &s->deadline);
        return r < 0 ? r : 0;
}

static int start(struct snapshot *s, snapshot_work *work)
{
        pid_t parent = getpid();
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        s->fd = fds[0];
        s->pid = fork();
        if (s->pid == 0)
                be_child(fds[1], parent, work, s->userdata);
        if (s->pid < 0) {
                int r = -errno;

                (void) close(fds[1]);
                return r;
        }
        (void) close(fds[1]);
        return fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : watch(s);
}

int snapshot_run(struct snapshot_pool *pool, snapshot_work *work, snapshot_done *done, void *userdata)
{
        struct snapshot *s;
        int r;

        if (pool->count >= SNAPSHOTS_MAX)
                return -EBUSY;
        s = calloc(1, sizeof(*s));
        if (s == NULL)
                return -ENOMEM;
        *s = (struct snapshot){ .pool = pool, .fd = -1, .done = done, .userdata = userdata };
        r = start(s, work);
        if (r < 0) {
                release(s);
                return r;
        }
        s->next = pool->running;
        pool->running = s;
        pool->count++;
        return 0;
}
