/* One loop: a timer that looks, signals that end it, and the reader of standard output, whose leaving a pipe
 * tells. */
#include "cli/command/watching.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "io/loop.h"

#define TOGETHER_USEC UINT64_C(100000)   /* changes within it are one look */
#define QUIET_USEC    UINT64_C(60000000) /* without trouble: what comes then is another trouble */

static void leave(struct watching *w, int result)
{
        w->result = result;
        (void) sd_event_exit(w->loop, 0);
}

void watching_end(struct watching *w, int result, const char *sentence)
{
        leave(w, err_set(&w->err, result, "%s", sentence));
}

static void say(const struct watching *w, const char *sentence)
{
        char name[OPTIONS_CALLED_BYTES];

        options_called(w->program->name, name);
        fprintf(stderr, "%s: %s; it goes on when that is over\n", name, sentence);
}

void watching_trouble(struct watching *w, const char *sentence)
{
        uint64_t now = loop_now_usec(w->loop), last = w->lost_usec;

        w->lost_usec = now;
        if (last == 0 || now - last > QUIET_USEC)
                say(w, sentence);
}

static bool has_reader(void)
{
        struct pollfd output = { .fd = STDOUT_FILENO };

        return poll(&output, 1, 0) <= 0 || (output.revents & (POLLERR | POLLHUP)) == 0;
}

static void look(struct watching *w)
{
        struct err err = { 0 };
        bool first = !w->rows->begun;
        int r = w->look(w->userdata, &err);

        if (r < 0 && first) {
                watching_end(w, r, err.msg);
        } else if (r < 0) {
                if (!w->failed)
                        say(w, err.msg);
        } else if (fflush(stdout) != 0 || ferror(stdout)) {
                if (has_reader())
                        watching_end(w, -EIO, "the output could not be written");
                else
                        leave(w, EXIT_DONE);
        }
        w->failed = r < 0;
        w->rows->begun = w->rows->begun || r >= 0;
}

static void on_time(void *userdata)
{
        struct watching *w = userdata;

        w->asked = false;
        look(w);
        if (w->period_usec > 0)
                loop_rearm(w->timer, w->period_usec);
}

void watching_changed(struct watching *w)
{
        if (w->timer == NULL || w->asked)
                return;
        w->asked = true;
        loop_rearm(w->timer, TOGETHER_USEC);
}

/* EPOLLERR comes unasked, when a pipe's last reader has gone. */
static int on_reader(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void) source, (void) fd;
        if ((events & (EPOLLERR | EPOLLHUP)) != 0)
                leave(userdata, EXIT_DONE);
        return 0;
}

/* A file has no reader to leave, and is refused with EPERM. */
static void watch_reader(struct watching *w)
{
        (void) sd_event_add_io(w->loop, &w->reader, STDOUT_FILENO, 0, on_reader, w);
}

static int begin(struct watching *w)
{
        int r = w->loop != NULL ? 0 : loop_new(&w->loop, &w->err);

        if (r < 0)
                return r;
        r = loop_timer(w->loop, on_time, w, &w->timer);
        return r < 0 ? err_set(&w->err, r, "no timer: %s", strerrordesc_np(-r)) : 0;
}

static int run(struct watching *w)
{
        int r;

        watch_reader(w);
        if (!w->waits)
                loop_rearm(w->timer, 0);
        w->result = EXIT_INTERRUPTED; /* a signal says nothing else */
        r = loop_run(w->loop);
        return r < 0 ? err_set(&w->err, r, "the event loop: %s", strerrordesc_np(-r)) : w->result;
}

int watching_run(struct watching *w)
{
        bool own_loop = w->loop == NULL;
        int r = begin(w);

        w->listing->watching = w->rows;
        if (r == 0)
                r = run(w);
        w->timer = sd_event_source_disable_unref(w->timer);
        sd_event_source_disable_unref(w->reader);
        if (own_loop)
                sd_event_unref(w->loop);
        changes_free(&w->rows->changes);
        w->listing->watching = NULL;
        return r > 0 ? r : options_end(w->program, r, &w->err, stderr);
}
