/* Every setting that fits is tried quickly, the best few again in turn with the untuned. */
#include "trainer/operators/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/version.h"
#include "io/clock.h"
#include "io/process.h"
#include "trainer/json_line.h"
#include "trainer/operators/tune_work.h"
#include "trainer/preset.h"

#define FINALISTS  4 /* of the search, that are measured again */
#define ROUNDS     5
#define LEAST_GAIN 1.03

struct candidate {
        size_t setting[TUNABLE_MAX];
        double usec[TUNE_WORK_MAX], gain;
};

struct group {
        size_t first, end, tried;
        enum tunable_work kind;
        bool chosen;
        struct candidate untuned, best;
};

struct tune {
        const struct train_options *options;
        const struct tunable_rows *tunables;
        char device[96];
};

struct timed { /* what a process tells that timed */
        int code;
        char message[200], device[96];
        double usec[TUNE_WORK_MAX];
};

static struct candidate candidate_of(const size_t *setting)
{
        struct candidate c = { 0 };

        memcpy(c.setting, setting, sizeof(c.setting));
        for (size_t i = 0; i < TUNE_WORK_MAX; i++)
                c.usec[i] = INFINITY;
        return c;
}

static struct backend_options options_of(const struct tune *t)
{
        struct backend_options options = train_options_backend(t->options, process_cores(), 0);

        options.alone = true;
        options.direct = options.patches = false; /* both are tried */
        return options;
}

static void time_here(const struct tune *t, enum tunable_work kind, int repeats, const struct candidate *c,
                      struct timed *ret)
{
        struct backend_options options = options_of(t);
        struct err err = { 0 };

        memcpy(options.tuned, c->setting, sizeof(options.tuned));
        memcpy(ret->usec, c->usec, sizeof(ret->usec));
        ret->code = tune_work_time(&options, kind, repeats, ret->usec, ret->device, &err);
        (void) text_format(ret->message, sizeof(ret->message), "%.190s", err.msg);
}

static int time_apart(struct tune *t, enum tunable_work kind, int repeats, struct candidate *c,
                      struct err *err)
{
        struct timed timed = { .code = -EIO };
        int ends[2], status;
        pid_t child;
        ssize_t got;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return err_set(err, -errno, "cannot tune: pipe: %m");
        child = fork();
        if (child == 0) {
                time_here(t, kind, repeats, c, &timed);
                _exit(write(ends[1], &timed, sizeof(timed)) == (ssize_t) sizeof(timed) ? 0 : 1);
        }
        (void) close(ends[1]);
        got = child > 0 ? read(ends[0], &timed, sizeof(timed)) : -1;
        (void) close(ends[0]);
        if (child > 0)
                (void) waitpid(child, &status, 0);
        if (got != (ssize_t) sizeof(timed))
                return err_set(err, -EIO, "cannot tune: a process that measured ended before its time");
        if (timed.code < 0)
                return err_set(err, timed.code, "%s", timed.message);
        memcpy(c->usec, timed.usec, sizeof(c->usec));
        memcpy(t->device, timed.device, sizeof(t->device));
        return 0;
}

static double mean_gain(const struct group *g, const struct candidate *c)
{
        size_t count = tune_work_count(g->kind);
        double sum = 0;

        for (size_t i = 0; i < count; i++)
                sum += g->untuned.usec[i] / c->usec[i];
        return sum / (double) count;
}

/* Keeps the best ones, the best first. */
static void keep_best(struct candidate *best, const struct candidate *one)
{
        size_t at = FINALISTS;

        while (at > 0 && one->gain > best[at - 1].gain)
                at--;
        if (at == FINALISTS)
                return;
        memmove(best + at + 1, best + at, (FINALISTS - 1 - at) * sizeof(*best));
        best[at] = *one;
}

/* All that fit, quickly. */
static int search(struct tune *t, struct group *g, struct candidate *best, struct err *err)
{
        struct backend_options options = options_of(t);
        size_t setting[TUNABLE_MAX];
        int r = time_apart(t, g->kind, 1, &g->untuned, err);

        memcpy(setting, g->untuned.setting, sizeof(setting));
        while (r == 0 && tunable_next(t->tunables, &options, g->first, g->end, setting)) {
                struct candidate one = candidate_of(setting);

                r = time_apart(t, g->kind, 1, &one, err);
                one.gain = mean_gain(g, &one);
                keep_best(best, &one);
                g->tried++;
        }
        return r;
}

/* The best ones and the untuned in turn, each from the beginning. */
static int run_off(struct tune *t, struct group *g, struct candidate *best, size_t count, struct err *err)
{
        int r = 0;

        g->untuned = candidate_of(g->untuned.setting);
        for (size_t i = 0; i < count; i++)
                best[i] = candidate_of(best[i].setting);
        for (int round = 0; r == 0 && round < ROUNDS; round++) {
                r = time_apart(t, g->kind, 3, &g->untuned, err);
                for (size_t i = 0; r == 0 && i < count; i++)
                        r = time_apart(t, g->kind, 3, &best[i], err);
        }
        for (size_t i = 0; i < count; i++) {
                best[i].gain = mean_gain(g, &best[i]);
                if (best[i].gain > best[0].gain)
                        best[0] = best[i];
        }
        return r;
}

static int tune_group(struct tune *t, struct group *g, struct err *err)
{
        struct candidate best[FINALISTS] = { 0 };
        size_t count = 0;
        int r = search(t, g, best, err);

        while (count < FINALISTS && best[count].gain > 0)
                count++;
        if (r == 0)
                r = run_off(t, g, best, count, err);
        if (r == 0)
                r = run_off(t, g, best, 1, err); /* who won by chance does not win twice */
        g->best = best[0];
        g->chosen = g->best.gain >= LEAST_GAIN;
        return r;
}

static void group_names(const struct tunable_rows *t, const struct group *g, char *names, size_t names_bytes)
{
        size_t used = 0;

        for (size_t i = g->first; i < g->end && used < names_bytes; i++) {
                (void) text_format(names + used, names_bytes - used, "%s%s", i > g->first ? ", " : "",
                                   t->rows[i].name);
                used += strlen(names + used);
        }
}

static void print_group(const struct tunable_rows *t, const struct group *g, struct json_line *line)
{
        char text[160];

        json_line_open(line, NULL, '{');
        group_names(t, g, text, sizeof(text));
        json_line_text(line, "of", text);
        json_line_uint(line, "tried", g->tried);
        json_line_real(line, "gain", g->best.gain, 3);
        json_line_bool(line, "kept", g->chosen);
        json_line_open(line, "work", '[');
        for (size_t i = 0; i < tune_work_count(g->kind); i++) {
                tune_work_name(g->kind, i, text, sizeof(text));
                json_line_open(line, NULL, '{');
                json_line_text(line, "of", text);
                json_line_real(line, "untuned_usec", g->untuned.usec[i], 0);
                json_line_real(line, "tuned_usec", g->best.usec[i], 0);
                json_line_close(line, '}');
        }
        json_line_close(line, ']');
        json_line_close(line, '}');
}

static void say_nothing_gained(const struct tune *t, const struct group *g)
{
        char names[160];

        group_names(t->tunables, g, names, sizeof(names));
        (void) fprintf(
                stderr,
                "remuda-train-%s: nothing to gain by %s on %s: of %zu that were tried the best is %.3f "
                "times as fast as the untuned, and less than %.2f is noise\n",
                backend_linked.runtime, names, t->device, g->tried, g->best.gain, LEAST_GAIN);
}

/* With the command and the date that found it: what is used later says both. */
static int remember(const struct tune *t, const size_t *setting, struct err *err)
{
        char by[PRESET_BY_BYTES], date[TIMESTAMP_BYTES];

        (void) text_format(by, sizeof(by), "remuda-train-%s --tune of %s, %s", backend_linked.runtime,
                           REMUDA_VERSION, timestamp_format(clock_realtime_usec() / 1000000 * 1000000, date));
        return preset_remember(t->options->cache, t->device, t->tunables, setting, by, err);
}

int tune_run(const struct train_options *o, struct err *err)
{
        struct tune t = { .options = o, .tunables = backend_linked.tunables };
        struct group groups[TUNABLE_MAX] = { 0 };
        size_t setting[TUNABLE_MAX] = { 0 }, count = 0;
        struct json_line line = { 0 };
        int r = 0;

        for (size_t first = 0; r == 0 && first < t.tunables->count; first = groups[count++].end) {
                struct group *g = &groups[count];

                *g = (struct group){ .first = first,
                                     .end = tunable_group_end(t.tunables, first),
                                     .kind = t.tunables->rows[first].work,
                                     .untuned = candidate_of(setting) };
                r = tune_group(&t, g, err);
                if (r == 0 && g->chosen)
                        memcpy(setting, g->best.setting, sizeof(setting));
                else if (r == 0)
                        say_nothing_gained(&t, g);
        }
        if (r == 0)
                r = remember(&t, setting, err);
        if (r < 0)
                return r;
        json_line_open(&line, NULL, '{');
        json_line_text(&line, "runtime", backend_linked.runtime);
        json_line_text(&line, "device", t.device);
        preset_write_tuned(t.tunables, setting, &line);
        json_line_open(&line, "groups", '[');
        for (size_t i = 0; i < count; i++)
                print_group(t.tunables, &groups[i], &line);
        json_line_close(&line, ']');
        json_line_close(&line, '}');
        json_line_print(&line, stdout);
        return 0;
}
