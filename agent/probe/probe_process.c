/* Probe process: pipes, signals and the reaping of children that hang. */
#include "agent/probe/probe_process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probe/probe_child.h"
#include "base/cleanup.h"

#define CHILD_NICE       10 /* a tenth of a core that others want too, all of one that they do not */
#define ANSWER_MAX_BYTES ((size_t) 4 << 20)

struct probe_process_dying {
        struct probe_process *process;
        sd_event_source *source;
        struct probe_process_dying *next;
};

void probe_process_init(struct probe_process *p, const struct probe_process *model)
{
        *p = *model;
        p->in_fd = p->out_fd = -1;
        p->answer.max_bytes = ANSWER_MAX_BYTES;
}

static int on_death(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct probe_process_dying *d = userdata, **at = &d->process->dying;

        (void) info;
        while (*at != d)
                at = &(*at)->next;
        *at = d->next;
        d->process->dying_count--;
        (void) sd_event_source_unref(source);
        free(d);
        return 0;
}

static void close_pipes(struct probe_process *p)
{
        p->out_source = sd_event_source_disable_unref(p->out_source);
        if (p->in_fd >= 0)
                (void) close(p->in_fd);
        if (p->out_fd >= 0)
                (void) close(p->out_fd);
        p->in_fd = p->out_fd = -1;
        text_reset(&p->answer);
}

void probe_process_kill(struct probe_process *p)
{
        struct probe_process_dying *d = p->pid > 0 ? calloc(1, sizeof(*d)) : NULL;
        pid_t pid = p->pid;

        close_pipes(p);
        if (pid <= 0)
                return;
        p->child_source = sd_event_source_disable_unref(p->child_source);
        p->pid = 0;
        (void) kill(pid, SIGKILL);
        if (d == NULL)
                return;
        d->process = p;
        if (sd_event_add_child(p->loop, &d->source, pid, WEXITED, on_death, d) < 0) {
                free(d);
                return;
        }
        d->next = p->dying;
        p->dying = d;
        p->dying_count++;
}

void probe_process_free(struct probe_process *p)
{
        probe_process_kill(p);
        while (p->dying != NULL) {
                struct probe_process_dying *d = p->dying;

                p->dying = d->next;
                (void) sd_event_source_unref(d->source);
                free(d);
        }
        text_free(&p->answer);
}

static int on_child_exit(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct probe_process *p = userdata;

        (void) source;
        p->child_source = sd_event_source_unref(p->child_source);
        p->pid = 0;
        close_pipes(p);
        p->on_end(p->userdata, info);
        return 0;
}

static bool take_lines(struct probe_process *p)
{
        size_t at = 0;

        while (at < p->answer.size_bytes) {
                const char *line = p->answer.data + at, *end;

                end = memchr(line, '\n', p->answer.size_bytes - at);
                if (end == NULL)
                        break;
                at += (size_t) (end - line) + 1;
                if (!p->on_line(p->userdata, line, (size_t) (end - line)))
                        return false;
        }
        if (at > 0) { /* keep what is not whole yet */
                memmove(p->answer.data, p->answer.data + at, p->answer.size_bytes - at);
                p->answer.size_bytes -= at;
        }
        return true;
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct probe_process *p = userdata;
        char buffer[8192];
        ssize_t n = read(fd, buffer, sizeof(buffer));

        (void) source;
        (void) revents;
        if (n > 0) {
                text_append_bytes(&p->answer, buffer, (size_t) n);
                if (p->answer.failed || !take_lines(p))
                        p->on_nonsense(p->userdata);
        } else if (n == 0)
                p->out_source = sd_event_source_disable_unref(p->out_source); /* its end comes as a signal */
        return 0;
}

static int spawn(struct probe_process *p, const char *library, const int in[2], const int out[2])
{
        char *const argv[] = { (char *) "remuda-agent", (char *) PROBE_CHILD_ARGUMENT, (char *) p->vendor,
                               (char *) library, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int r;

        (void) sigemptyset(&none);
        (void) posix_spawn_file_actions_init(&actions);
        (void) posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        (void) posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        (void) posix_spawnattr_init(&attributes);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        r = posix_spawn(&p->pid, "/proc/self/exe", &actions, &attributes, argv, environ);
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                p->pid = 0;
        else /* before it links and starts: the kubelet and whoever asks us come first */
                (void) setpriority(PRIO_PROCESS, (id_t) p->pid, CHILD_NICE);
        return -r;
}

int probe_process_start(struct probe_process *p, const char *library)
{
        int in[2] = { -1, -1 }, out[2] = { -1, -1 }, r = 0;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0)
                r = spawn(p, library, in, out);
        if (in[0] >= 0)
                (void) close(in[0]);
        if (out[1] >= 0)
                (void) close(out[1]);
        p->in_fd = in[1];
        p->out_fd = out[0];
        if (r == 0 && (fcntl(p->in_fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(p->out_fd, F_SETFL, O_NONBLOCK) < 0))
                r = -errno;
        if (r == 0)
                r = sd_event_add_child(p->loop, &p->child_source, p->pid, WEXITED, on_child_exit, p);
        if (r >= 0)
                r = sd_event_add_io(p->loop, &p->out_source, p->out_fd, EPOLLIN, on_answer, p);
        if (r < 0)
                probe_process_kill(p);
        return r;
}

void probe_process_request(struct probe_process *p, char request)
{
        if (write(p->in_fd, &request, 1) != 1) {
                /* it is ending, or its pipe is full of requests: the deadline or its end decides */
        }
}
