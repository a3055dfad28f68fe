/* The least time of each kind of piece is remembered; a rank sleeps for what it is too fast. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"
#include "trainer/training.h"

#define LEARN_MAX  8 /* pieces */
#define LEARN_USEC 500000

uint64_t slow_quiet(struct slow *s, enum slow_kind kind, size_t samples, uint64_t usec)
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

/* --simulate-slow of this rank. */
static unsigned slow_percent(const struct training *t)
{
        const struct train_options_list *slow = &t->options->slow;
        size_t rank = (size_t) t->world.rank;

        return rank < slow->count ? (unsigned) slow->values[rank] : 100;
}

/* --simulate-speeds of this rank, in samples a second; 0: none. */
static uint64_t slow_speed(const struct training *t)
{
        const struct train_options_list *speeds = &t->options->speeds;
        size_t rank = (size_t) t->world.rank;

        return rank < speeds->count ? speeds->values[rank] : 0;
}

uint64_t slow_piece_usec(uint64_t speed, enum slow_kind kind, size_t samples)
{
        uint64_t usec = (uint64_t) samples * 1000000 / speed;

        if (kind == SLOW_FORWARD)
                return usec / 3;
        return kind == SLOW_BACKWARD ? usec - usec / 3 : usec;
}

struct slow_moment training_moment(const struct training *t)
{
        return slow_now(t->loader != NULL ? loader_processor_usec(t->loader) : 0);
}

bool training_is_slow(const struct training *t)
{
        return slow_speed(t) > 0 || slow_percent(t) > 100;
}

void training_be_slow(struct training *t, enum slow_kind kind, size_t samples, struct slow_moment begin)
{
        uint64_t usec;

        if (slow_speed(t) > 0) {
                slow_sleep(begin, slow_piece_usec(slow_speed(t), kind, samples));
                return;
        }
        if (slow_percent(t) <= 100)
                return;
        usec = slow_quiet(&t->slow, kind, samples, slow_busy_usec(begin, training_moment(t)));
        if (kind == SLOW_COMPUTE)
                usec += slow_quiet(&t->slow, SLOW_LOAD, samples, loader_cost_usec(t->loader, samples));
        slow_sleep(begin, usec * slow_percent(t) / 100);
}

/* The traffic of these pieces would be counted: none then. */
int training_learn_speed(struct training *t, struct err *err)
{
        size_t floats_each = shape_size(&t->model.input), count = t->own_share;
        uint64_t began = record_now();
        int32_t *labels;
        float *x;
        bool there;

        if (slow_percent(t) <= 100 || count == 0 || t->runner == NULL || t->options->traffic)
                return 0;
        x = backend_allocate(&t->backend, count * floats_each * sizeof(*x));
        labels = backend_allocate(&t->backend, count * sizeof(*labels));
        for (size_t i = 0; x != NULL && i < count * floats_each; i++)
                x[i] = (float) (i % 13) / 13;
        if (labels != NULL)
                memset(labels, 0, count * sizeof(*labels));
        for (int i = 0; x != NULL && labels != NULL && i < LEARN_MAX && record_now() - began < LEARN_USEC;
             i++) {
                struct slow_moment begin = training_moment(t);

                backend_to_device(&t->backend, t->gradients);
                runner_use(t->runner, x, labels);
                (void) runner_forward(t->runner, t->parameters, count);
                runner_backward(t->runner, t->parameters, t->gradients, count, 1, NULL, NULL);
                backend_to_host(&t->backend, t->gradients);
                (void) slow_quiet(&t->slow, SLOW_COMPUTE, count, slow_busy_usec(begin, training_moment(t)));
        }
        there = x != NULL && labels != NULL;
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        return there ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", count);
}
