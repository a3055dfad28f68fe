/* A small epoll loop behind the few sd-event functions that lib/io/grpc_*.c and the launcher use.
 *
 * remuda-launch is static and libsystemd is not to be had so: this file is linked into it alone. Same
 * contract as sd-event(3) for these functions; a source that is released is gone at once for its owner, and
 * freed at the end of the turn. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "io/clock.h"

enum kind { KIND_IO, KIND_TIME, KIND_DEFER };

struct sd_event_source {
        enum kind kind;
        sd_event *event;
        int enabled, fd;
        uint32_t interest;
        uint64_t due_usec;
        bool dead;
        sd_event_io_handler_t on_io;
        sd_event_time_handler_t on_time;
        sd_event_handler_t on_defer;
        void *userdata;
        struct sd_event_source *next;
};

struct sd_event {
        unsigned references;
        int epoll;
        bool exiting;
        int exit_code;
        struct sd_event_source *sources;
};

int sd_event_new(sd_event **e)
{
        sd_event *event = calloc(1, sizeof(*event));

        if (event == NULL)
                return -ENOMEM;
        event->references = 1;
        event->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (event->epoll < 0) {
                free(event);
                return -errno;
        }
        *e = event;
        return 0;
}

sd_event *sd_event_ref(sd_event *event)
{
        event->references++;
        return event;
}

static void sweep(sd_event *event, bool all)
{
        for (struct sd_event_source **at = &event->sources; *at != NULL;) {
                struct sd_event_source *source = *at;

                if (!all && !source->dead) {
                        at = &source->next;
                        continue;
                }
                *at = source->next;
                free(source);
        }
}

sd_event *sd_event_unref(sd_event *event)
{
        if (event != NULL && --event->references == 0) {
                sweep(event, true);
                (void) close(event->epoll);
                free(event);
        }
        return NULL;
}

static int add(sd_event *event, enum kind kind, int enabled, void *userdata, sd_event_source **ret)
{
        struct sd_event_source *source = calloc(1, sizeof(*source));

        if (source == NULL)
                return -ENOMEM;
        source->kind = kind;
        source->event = event;
        source->enabled = enabled;
        source->fd = -1;
        source->userdata = userdata;
        source->next = event->sources;
        event->sources = source;
        *ret = source;
        return 0;
}

static int watch(sd_event_source *source, int operation)
{
        struct epoll_event event = { .events = source->enabled == SD_EVENT_OFF ? 0 : source->interest,
                                     .data.ptr = source };

        return epoll_ctl(source->event->epoll, operation, source->fd, &event) < 0 ? -errno : 0;
}

int sd_event_add_io(sd_event *event, sd_event_source **s, int fd, uint32_t events,
                    sd_event_io_handler_t callback, void *userdata)
{
        int r = add(event, KIND_IO, SD_EVENT_ON, userdata, s);

        if (r < 0)
                return r;
        (*s)->fd = fd;
        (*s)->interest = events;
        (*s)->on_io = callback;
        r = watch(*s, EPOLL_CTL_ADD);
        if (r < 0)
                (*s)->dead = true;
        return r;
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **s, clockid_t clock, uint64_t usec,
                               uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
        int r = add(event, KIND_TIME, SD_EVENT_ONESHOT, userdata, s);

        (void) clock;
        (void) accuracy;
        if (r < 0)
                return r;
        (*s)->due_usec = clock_monotonic_usec() + usec;
        (*s)->on_time = callback;
        return 0;
}

int sd_event_add_defer(sd_event *event, sd_event_source **s, sd_event_handler_t callback, void *userdata)
{
        int r = add(event, KIND_DEFER, SD_EVENT_ONESHOT, userdata, s);

        if (r < 0)
                return r;
        (*s)->on_defer = callback;
        return 0;
}

sd_event_source *sd_event_source_unref(sd_event_source *source)
{
        if (source == NULL)
                return NULL;
        if (source->kind == KIND_IO && !source->dead)
                (void) epoll_ctl(source->event->epoll, EPOLL_CTL_DEL, source->fd, NULL);
        source->dead = true;
        source->enabled = SD_EVENT_OFF;
        return NULL;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        return sd_event_source_unref(source);
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
        if (source == NULL || source->enabled == enabled)
                return 0;
        source->enabled = enabled;
        return source->kind == KIND_IO ? watch(source, EPOLL_CTL_MOD) : 0;
}

int sd_event_source_set_io_events(sd_event_source *source, uint32_t events)
{
        source->interest = events;
        return watch(source, EPOLL_CTL_MOD);
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

/* A handler that fails is not asked again, as in sd-event. */
static void dispatch(sd_event_source *source, uint32_t events, uint64_t now)
{
        int r = 0;

        if (source->dead || source->enabled == SD_EVENT_OFF)
                return;
        if (source->enabled == SD_EVENT_ONESHOT)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (source->kind == KIND_IO)
                r = source->on_io(source, source->fd, events, source->userdata);
        else if (source->kind == KIND_TIME)
                r = source->on_time(source, now, source->userdata);
        else
                r = source->on_defer(source, source->userdata);
        if (r < 0 && !source->dead)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Milliseconds until the next timer or deferred call; -1 = none. */
static int pause_msec(const sd_event *event)
{
        uint64_t now = clock_monotonic_usec();
        int64_t least = -1;

        for (const struct sd_event_source *source = event->sources; source != NULL; source = source->next) {
                int64_t wait;

                if (source->dead || source->enabled == SD_EVENT_OFF || source->kind == KIND_IO)
                        continue;
                wait = source->kind == KIND_DEFER || source->due_usec <= now
                               ? 0
                               : (int64_t) (source->due_usec - now + 999) / 1000;
                if (least < 0 || wait < least)
                        least = wait;
        }
        return least > 3600000 ? 3600000 : (int) least;
}

int sd_event_loop(sd_event *event)
{
        while (!event->exiting) {
                struct epoll_event ready[16];
                int count = epoll_wait(event->epoll, ready, 16, pause_msec(event));
                uint64_t now = clock_monotonic_usec();

                for (int i = 0; i < count && !event->exiting; i++)
                        dispatch(ready[i].data.ptr, ready[i].events, now);
                for (struct sd_event_source *source = event->sources; source != NULL; source = source->next)
                        if (source->kind == KIND_DEFER ||
                            (source->kind == KIND_TIME && source->due_usec <= now))
                                dispatch(source, 0, now);
                sweep(event, false);
        }
        return event->exit_code;
}
