/* The least time of each kind of piece is remembered; a rank sleeps for what it is too fast. */
#include "trainer/slow.h"

#include <errno.h>
#include <time.h>

#include "io/clock.h"

uint64_t slow_quiet(struct slow *s, unsigned kind, size_t samples, uint64_t usec)
{
        struct slow_piece *p;

        for (size_t i = 0; i < SLOW_SIZES && i < s->count; i++) {
                p = &s->pieces[i];
                if (p->kind != kind || p->samples != samples)
                        continue;
                if (usec < p->least_usec)
                        p->least_usec = usec;
                return p->least_usec;
        }
        s->pieces[s->count++ % SLOW_SIZES] = (struct slow_piece){ kind, samples, usec };
        return usec;
}

struct slow_moment slow_now(uint64_t elsewhere_usec)
{
        return (struct slow_moment){ clock_monotonic_usec(),
                                     clock_usec(CLOCK_PROCESS_CPUTIME_ID) - elsewhere_usec };
}

uint64_t slow_busy_usec(struct slow_moment begin, struct slow_moment end)
{
        uint64_t wall_usec = end.usec - begin.usec,
                 processor_usec = end.processor_usec - begin.processor_usec;

        return processor_usec < wall_usec ? processor_usec : wall_usec;
}

void slow_sleep(struct slow_moment begin, uint64_t usec)
{
        uint64_t until = begin.usec + usec;
        struct timespec t = { .tv_sec = (time_t) (until / 1000000),
                              .tv_nsec = (long) (until % 1000000) * 1000 };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
                ;
}

uint64_t slow_piece_usec(uint64_t speed, enum slow_kind kind, size_t samples)
{
        uint64_t usec = (uint64_t) samples * 1000000 / speed;

        if (kind == SLOW_FORWARD)
                return usec / 3;
        return kind == SLOW_BACKWARD ? usec - usec / 3 : usec;
}

struct slow slow_open(const struct train_options *o, int rank)
{
        size_t i = (size_t) rank;

        bool later = i + 1 < o->slow_from.count;

        return (struct slow){ .percent = i < o->slow.count ? (unsigned) o->slow.values[i] : 100,
                              .later_percent = later ? (unsigned) o->slow_from.values[i + 1] : 100,
                              .later_step = later ? o->slow_from.values[0] : UINT64_MAX,
                              .speed = i < o->speeds.count ? o->speeds.values[i] : 0 };
}

void slow_step(struct slow *s, uint64_t step)
{
        if (step >= s->later_step)
                s->percent = s->later_percent;
}

bool slow_is(const struct slow *s)
{
        return s->speed > 0 || s->percent > 100;
}

struct slow_moment slow_begin(const struct slow *s)
{
        return slow_now((s->loader != NULL ? loader_processor_usec(s->loader) : 0) +
                        mover_processor_usec(s->mover));
}

void slow_keep_pace(struct slow *s, enum slow_kind kind, size_t node, size_t samples,
                    struct slow_moment begin)
{
        unsigned up_to = SLOW_KINDS + (unsigned) (node * SLOW_KINDS) + kind;

        if (s->percent > 100)
                slow_sleep(begin, slow_quiet(s, up_to, samples, slow_busy_usec(begin, slow_begin(s))) *
                                          s->percent / 100);
}

void slow_end(struct slow *s, enum slow_kind kind, size_t samples, struct slow_moment begin)
{
        uint64_t usec;

        if (s->speed > 0) {
                slow_sleep(begin, slow_piece_usec(s->speed, kind, samples));
                return;
        }
        if (s->percent <= 100)
                return;
        usec = slow_quiet(s, kind, samples, slow_busy_usec(begin, slow_begin(s)));
        if (kind == SLOW_COMPUTE)
                usec += slow_quiet(s, SLOW_LOAD, samples, loader_cost_usec(s->loader, samples));
        slow_sleep(begin, usec * s->percent / 100);
}
