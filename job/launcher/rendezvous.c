/* The token, the loop and the child processes that all three sides use. */
#include "job/launcher/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"

int rendezvous_token(const char *path, char token[MESSAGE_TOKEN_BYTES], struct err *err)
{
        CLEANUP(close_p) int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        ssize_t size;

        if (path == NULL)
                return err_set(err, -EINVAL,
                               "no token; give --token-file FILE, the same for the manager and its groups");
        if (fd < 0)
                return err_set(err, -errno, "--token-file: '%.200s': %m", path);
        size = read(fd, token, MESSAGE_TOKEN_BYTES);
        if (size < 0)
                return err_set(err, -errno, "--token-file: '%.200s': %m", path);
        if (size == MESSAGE_TOKEN_BYTES)
                return err_set(err, -EINVAL, "--token-file: '%.200s' holds more than %d bytes", path,
                               MESSAGE_TOKEN_BYTES - 1);
        token[size] = '\0';
        token[strcspn(token, "\r\n")] = '\0';
        if (strlen(token) < 16)
                return err_set(err, -EINVAL,
                               "--token-file: '%.200s' holds a token of fewer than 16 characters", path);
        return 0;
}

static int on_signal(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rendezvous_loop *loop = userdata;
        struct signalfd_siginfo info;

        (void) source;
        (void) events;
        while (read(fd, &info, sizeof(info)) == (ssize_t) sizeof(info))
                loop->on_signal(loop->userdata, (int) info.ssi_signo);
        return 0;
}

int rendezvous_loop_open(struct rendezvous_loop *loop, struct err *err)
{
        sigset_t set;
        int r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        r = loop->signal_fd < 0 ? -errno : sd_event_new(&loop->event);
        if (r >= 0)
                r = sd_event_add_io(loop->event, &loop->signals, loop->signal_fd, EPOLLIN, on_signal, loop);
        return r < 0 ? err_set(err, r, "no event loop: %s", strerror(-r)) : 0;
}

void rendezvous_loop_close(struct rendezvous_loop *loop)
{
        (void) sd_event_source_disable_unref(loop->signals);
        (void) sd_event_unref(loop->event);
        if (loop->signal_fd >= 0)
                (void) close(loop->signal_fd);
}
