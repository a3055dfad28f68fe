/* The dozen functions of sd-event(3) that io/loop.c, io/grpc/ and the launcher use, on epoll: libsystemd is
 * not to be had as an archive, and remuda-launch is static (ADR 0044). Linked into it alone;
 * io/test_sd_event.c holds both to the same rules.
 *
 * A source keeps its loop alive, and is gone at once for its owner when he releases it; while handlers run it
 * is freed at the end of the turn. */
#include <systemd/sd-event.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/clock.h"

#define READY_MAX      16      /* descriptors a turn; the rest have theirs in the next */
#define PAUSE_MAX_MSEC 3600000 /* so that it fits an int */

enum kind { KIND_IO, KIND_TIME, KIND_DEFER };

struct sd_event_source {
        enum kind kind;
        sd_event *event;
        int enabled, fd;
        uint32_t interest;
        bool watched; /* epoll knows its descriptor */
        bool dead;
        uint64_t due_usec, turn; /* turn: in which it was called last */
        sd_event_io_handler_t on_io;
        sd_event_time_handler_t on_time;
        sd_event_handler_t on_defer;
        void *userdata;
        struct sd_event_source *next;
};

struct sd_event {
        unsigned references; /* of its users, and one for each source */
        int epoll;
        bool dispatching, exiting;
        int exit_code;
        uint64_t turn;
        struct sd_event_source *sources;
};

int sd_event_new(sd_event **e)
{
        sd_event *event = calloc(1, sizeof(*event));
        int epoll = epoll_create1(EPOLL_CLOEXEC), r = -errno;

        if (event == NULL || epoll < 0) {
                if (epoll >= 0)
                        (void) close(epoll);
                free(event);
                return event == NULL ? -ENOMEM : r;
        }
        *event = (sd_event){ .references = 1, .epoll = epoll };
        *e = event;
        return 0;
}

sd_event *sd_event_ref(sd_event *event)
{
        event->references++;
        return event;
}

sd_event *sd_event_unref(sd_event *event)
{
        if (event != NULL && --event->references == 0) {
                (void) close(event->epoll);
                free(event);
        }
        return NULL;
}

/* Frees what was released; not while a handler or a walk over the sources may still hold one of them. */
static void sweep(sd_event *event)
{
        bool last = false;

        for (struct sd_event_source **at = &event->sources; !last && !event->dispatching && *at != NULL;) {
                struct sd_event_source *source = *at;

                if (!source->dead) {
                        at = &source->next;
                        continue;
                }
                *at = source->next;
                free(source);
                last = event->references == 1; /* then the loop itself goes */
                (void) sd_event_unref(event);
        }
}

/* A source that is off must not be known to epoll at all: it would tell of a peer that hung up, which cannot
 * be masked, as often as it is asked. */
static int watch(sd_event_source *source)
{
        bool wanted = source->enabled != SD_EVENT_OFF && !source->dead;
        struct epoll_event event = { .events = source->interest, .data.ptr = source };
        int operation = !wanted ? EPOLL_CTL_DEL : source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

        if (source->kind != KIND_IO || (!wanted && !source->watched))
                return 0;
        if (epoll_ctl(source->event->epoll, operation, source->fd, &event) < 0 && wanted)
                return -errno;
        source->watched = wanted;
        return 0;
}

static int add(sd_event *event, struct sd_event_source made, sd_event_source **ret)
{
        struct sd_event_source *source = malloc(sizeof(*source));
        int r;

        if (source == NULL)
                return -ENOMEM;
        *source = made;
        source->event = event;
        r = watch(source);
        if (r < 0) {
                free(source);
                return r;
        }
        (void) sd_event_ref(event);
        source->next = event->sources;
        event->sources = source;
        *ret = source;
        return 0;
}

int sd_event_add_io(sd_event *event, sd_event_source **s, int fd, uint32_t events,
                    sd_event_io_handler_t callback, void *userdata)
{
        return add(event,
                   (struct sd_event_source){ .kind = KIND_IO,
                                             .enabled = SD_EVENT_ON,
                                             .fd = fd,
                                             .interest = events,
                                             .on_io = callback,
                                             .userdata = userdata },
                   s);
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **s, clockid_t clock, uint64_t usec,
                               uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
        (void) accuracy;
        if (clock != CLOCK_MONOTONIC)
                return -EOPNOTSUPP;
        return add(event,
                   (struct sd_event_source){ .kind = KIND_TIME,
                                             .enabled = SD_EVENT_ONESHOT,
                                             .due_usec = clock_monotonic_usec() + usec,
                                             .on_time = callback,
                                             .userdata = userdata },
                   s);
}

int sd_event_add_defer(sd_event *event, sd_event_source **s, sd_event_handler_t callback, void *userdata)
{
        return add(event,
                   (struct sd_event_source){ .kind = KIND_DEFER,
                                             .enabled = SD_EVENT_ONESHOT,
                                             .on_defer = callback,
                                             .userdata = userdata },
                   s);
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        if (source == NULL)
                return NULL;
        source->dead = true;
        (void) watch(source);
        sweep(source->event);
        return NULL;
}

sd_event_source *sd_event_source_unref(sd_event_source *source)
{
        return sd_event_source_disable_unref(source); /* nobody else holds one */
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
        if (source == NULL)
                return 0;
        source->enabled = enabled;
        return watch(source);
}

int sd_event_source_set_io_events(sd_event_source *source, uint32_t events)
{
        source->interest = events;
        return watch(source);
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
        source->due_usec = clock_monotonic_usec() + usec;
        return 0;
}

int sd_event_exit(sd_event *event, int code)
{
        event->exiting = true;
        event->exit_code = code;
        return 0;
}

/* A handler that fails is not called again, and none is once somebody has ended the loop. */
static void dispatch(sd_event_source *source, uint32_t events, uint64_t now)
{
        int r = 0;

        if (source->event->exiting || source->dead || source->enabled == SD_EVENT_OFF)
                return;
        source->turn = source->event->turn;
        if (source->enabled == SD_EVENT_ONESHOT)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (source->kind == KIND_IO)
                r = source->on_io(source, source->fd, events, source->userdata);
        else if (source->kind == KIND_DEFER)
                r = source->on_defer(source, source->userdata);
        else
                r = source->on_time(source, now, source->userdata);
        if (r < 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static bool waits(const sd_event_source *source)
{
        return !source->dead && source->enabled != SD_EVENT_OFF && source->kind != KIND_IO;
}

/* Milliseconds until the next timer or deferred call; -1 = none. */
static int pause_msec(const sd_event *event)
{
        uint64_t now = clock_monotonic_usec(), least = UINT64_MAX;

        for (const sd_event_source *source = event->sources; source != NULL; source = source->next) {
                uint64_t wait = !waits(source) ? UINT64_MAX
                                : source->kind == KIND_DEFER || source->due_usec <= now
                                        ? 0
                                        : source->due_usec - now;

                least = wait < least ? wait : least;
        }
        if (least == UINT64_MAX)
                return -1;
        least = (least + 999) / 1000;
        return least > PAUSE_MAX_MSEC ? PAUSE_MAX_MSEC : (int) least;
}

/* The timer that was due first and was not called yet in this turn. */
static sd_event_source *first_due(const sd_event *event, uint64_t now)
{
        sd_event_source *first = NULL;

        for (sd_event_source *source = event->sources; source != NULL; source = source->next)
                if (source->kind == KIND_TIME && waits(source) && source->due_usec <= now &&
                    source->turn < event->turn && (first == NULL || source->due_usec < first->due_usec))
                        first = source;
        return first;
}

static void turn(sd_event *event)
{
        struct epoll_event ready[READY_MAX];
        int count = epoll_wait(event->epoll, ready, READY_MAX, pause_msec(event));
        uint64_t now = clock_monotonic_usec();
        sd_event_source *due;

        event->turn++;
        event->dispatching = true;
        for (int i = 0; i < count; i++)
                dispatch(ready[i].data.ptr, ready[i].events, now);
        while (!event->exiting && (due = first_due(event, now)) != NULL)
                dispatch(due, 0, now);
        for (sd_event_source *source = event->sources; source != NULL; source = source->next)
                if (source->kind == KIND_DEFER)
                        dispatch(source, 0, now);
        event->dispatching = false;
        sweep(event);
}

int sd_event_loop(sd_event *event)
{
        int code;

        (void) sd_event_ref(event);
        while (!event->exiting)
                turn(event);
        code = event->exit_code;
        (void) sd_event_unref(event);
        return code;
}
