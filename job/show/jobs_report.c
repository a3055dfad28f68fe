/* Gathers what a report draws: the job's view, its progress lines, the timelines that the reference trainer
 * wrote. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "job/show/jobs.h"
#include "job/show/report_html.h"

#define TIMELINE_MAX_BYTES ((off_t) 64 << 20) /* of one rank */
#define POINTS_MAX         400
#define EXCERPT_STEPS      6
#define EXCERPT_MAX        20000
#define RANKS_MAX          4096

/* --- the timeline of one rank
 * ---------------------------------------------------------------------------------------- */

struct intervals {
        struct report_interval *items;
        size_t count, capacity;
};

static void add_interval(struct intervals *list, uint64_t begin, uint64_t end)
{
        if (list->count == list->capacity) {
                size_t capacity = list->capacity == 0 ? 1024 : list->capacity * 2;
                struct report_interval *grown = realloc(list->items, capacity * sizeof(*grown));

                if (grown == NULL)
                        return;
                list->items = grown;
                list->capacity = capacity;
        }
        list->items[list->count++] = (struct report_interval){ begin, end };
}

static int compare_intervals(const void *a, const void *b)
{
        const struct report_interval *x = a, *y = b;

        return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool parse_activity(const char *line, struct report_activity *ret)
{
        json_t *value = json_loads(line, 0, NULL);
        const json_t *begin = json_object_get(value, "begin_usec"), *end = json_object_get(value, "end_usec"),
                     *step = json_object_get(value, "step");
        const char *what = json_string_value(json_object_get(value, "what"));
        bool good = what != NULL && report_what_parse(what, &ret->what) == 0 && json_is_integer(begin) &&
                    json_is_integer(end) && json_is_integer(step) && json_integer_value(begin) >= 0 &&
                    json_integer_value(end) >= json_integer_value(begin) && json_integer_value(step) >= 0;

        if (good) {
                ret->begin_usec = (uint64_t) json_integer_value(begin);
                ret->end_usec = (uint64_t) json_integer_value(end);
                ret->step = (uint64_t) json_integer_value(step);
        }
        json_decref(value);
        return good;
}

static void add_to_totals(struct report_totals *totals, const struct report_activity *a)
{
        totals->usec[a->what] += a->end_usec - a->begin_usec;
        if (totals->end_usec == 0 || a->begin_usec < totals->begin_usec)
                totals->begin_usec = a->begin_usec;
        if (a->end_usec > totals->end_usec)
                totals->end_usec = a->end_usec;
}

static bool computes(enum report_what what)
{
        return what == REPORT_FORWARD || what == REPORT_BACKWARD || what == REPORT_UPDATE;
}

struct excerpt {
        uint64_t first_step;
        struct report_activity *activities;
        size_t count;
};

static bool read_timeline(const char *path, uint32_t rank, struct report_totals *totals,
                          struct excerpt *excerpt)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        CLEANUP(free_p) char *line = NULL;
        struct intervals busy = { 0 }, exchange = { 0 }, load = { 0 };
        struct report_activity a = { .rank = rank };
        bool cut = false;
        size_t size = 0;

        while (f != NULL && !cut && getline(&line, &size, f) > 0) {
                if (!parse_activity(line, &a))
                        continue;
                add_to_totals(totals, &a);
                if (a.what != REPORT_WAIT)
                        add_interval(computes(a.what)            ? &busy
                                     : a.what == REPORT_EXCHANGE ? &exchange
                                                                 : &load,
                                     a.begin_usec, a.end_usec);
                if (a.step >= excerpt->first_step && a.step < excerpt->first_step + EXCERPT_STEPS &&
                    excerpt->count < EXCERPT_MAX)
                        excerpt->activities[excerpt->count++] = a;
                cut = ftell(f) > TIMELINE_MAX_BYTES;
        }
        if (busy.count > 0)
                qsort(busy.items, busy.count, sizeof(*busy.items), compare_intervals);
        if (exchange.count > 0)
                qsort(exchange.items, exchange.count, sizeof(*exchange.items), compare_intervals);
        if (load.count > 0)
                qsort(load.items, load.count, sizeof(*load.items), compare_intervals);
        totals->hidden_exchange_usec = report_overlap(exchange.items, exchange.count, busy.items, busy.count);
        totals->hidden_load_usec = report_overlap(load.items, load.count, busy.items, busy.count);
        free(busy.items);
        free(exchange.items);
        free(load.items);
        return cut;
}

/* --- progress lines
 * --------------------------------------------------------------------------------------------------- */

static double number_in(const json_t *line, const char *name)
{
        const json_t *value = json_object_get(line, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

struct reading {
        struct report_rank *rank;
        size_t every, seen; /* lines, of which one in so many is taken */
        double begins;      /* of this world, seconds after the first one's */
        double before;      /* samples of its rank that were in the weights then; NAN = not known yet */
        unsigned world;
};

/* At most POINTS_MAX of them: when there are too many, every second one goes and only every second is taken
 * on. */
static void add_point(struct reading *reading, const struct report_point *point)
{
        struct report_rank *rank = reading->rank;

        if (rank->point_count == POINTS_MAX) {
                for (size_t i = 0; i < POINTS_MAX / 2; i++)
                        rank->points[i] = rank->points[2 * i];
                rank->point_count = POINTS_MAX / 2;
                reading->every *= 2;
        }
        rank->points[rank->point_count++] = *point;
}

/* A process counts its own samples from 0: those of the checkpoint that it went on from come before. */
static double samples_before(const struct report_rank *rank, double step)
{
        for (size_t i = rank->point_count; i > 0; i--)
                if (rank->points[i - 1].step < step && isfinite(rank->points[i - 1].samples))
                        return rank->points[i - 1].samples;
        return 0;
}

static void read_line(struct reading *reading, const json_t *value)
{
        struct report_point point = { .step = number_in(value, "step"),
                                      .seconds = number_in(value, "seconds") + reading->begins,
                                      .samples = number_in(value, "samples"),
                                      .loss = number_in(value, "loss"),
                                      .accuracy = number_in(value, "accuracy"),
                                      .world = reading->world };

        if (isfinite(number_in(value, "begins_seconds"))) {
                reading->begins = number_in(value, "begins_seconds");
                reading->before = NAN;
                reading->world++;
                return;
        }
        if (!isfinite(reading->before) && isfinite(point.step))
                reading->before = samples_before(reading->rank, point.step);
        point.samples += reading->before;
        if (isfinite(point.accuracy)) /* its loss is of the test data */
                point.loss = NAN;
        else if (reading->seen++ % reading->every != 0)
                return;
        if (isfinite(point.step))
                add_point(reading, &point);
}

static void read_points(const char *path, struct reading *reading)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        CLEANUP(free_p) char *line = NULL;
        size_t size = 0;

        while (f != NULL && getline(&line, &size, f) > 0) {
                json_t *value = json_loads(line, 0, NULL);

                read_line(reading, value);
                json_decref(value);
        }
}

/* The worlds before the last restart (job/run/run_world.c), and the last one. */
static void read_worlds(const char *folder, size_t index, struct report_rank *rank)
{
        static const char *const suffixes[] = { "history", "progress" };
        struct reading reading = { .rank = rank, .every = 1 };
        char path[PATH_MAX];

        rank->points = calloc(POINTS_MAX + 1, sizeof(*rank->points));
        for (size_t i = 0; rank->points != NULL && i < ARRAY_SIZE(suffixes); i++) {
                (void) text_format(path, sizeof(path), "%s/rank-%zu.%s", folder, index, suffixes[i]);
                read_points(path, &reading);
        }
}

/* --- the status' history
 * --------------------------------------------------------------------------------------------- */

/* What of a moment one rank computed, then what it did not. */
static void add_moment(struct report *report, size_t rank, double from, double to, double busy)
{
        struct report_totals *totals = &report->ranks[rank].totals;
        uint64_t begin = (uint64_t) (from * 1e6), end = (uint64_t) (to * 1e6),
                 turn = begin + (uint64_t) ((double) (end - begin) * fmin(fmax(busy, 0), 100) / 100);

        if (report->activity_count + 2 > EXCERPT_MAX)
                return;
        report->activities[report->activity_count++] = (struct report_activity){
                .rank = (uint32_t) rank, .what = REPORT_COMPUTE, .begin_usec = begin, .end_usec = turn
        };
        report->activities[report->activity_count++] = (struct report_activity){
                .rank = (uint32_t) rank, .what = REPORT_WAIT, .begin_usec = turn, .end_usec = end
        };
        add_to_totals(totals, &report->activities[report->activity_count - 2]);
        add_to_totals(totals, &report->activities[report->activity_count - 1]);
}

static void read_history(const json_t *history, struct report *report)
{
        double last = NAN, last_world = NAN;
        const json_t *moment;
        size_t i;

        if (json_array_size(history) == 0 || report->rank_count == 0)
                return;
        report->coarse = true;
        report->ranks[0].points = calloc(json_array_size(history) + 1, sizeof(*report->ranks[0].points));
        json_array_foreach((json_t *) history, i, moment)
        {
                const json_t *busy = json_object_get(moment, "busy");
                double seconds = number_in(moment, "seconds"), world = number_in(moment, "world");

                if (report->ranks[0].points != NULL)
                        report->ranks[0].points[report->ranks[0].point_count++] =
                                (struct report_point){ .step = number_in(moment, "step"),
                                                       .seconds = seconds,
                                                       .samples = number_in(moment, "samples"),
                                                       .loss = number_in(moment, "loss"),
                                                       .accuracy = NAN };
                for (size_t k = 0; k < json_array_size(busy) && k < report->rank_count && seconds > last &&
                                   !(world > last_world);
                     k++)
                        add_moment(report, k, last, seconds,
                                   (double) json_integer_value(json_array_get(busy, k)));
                last = seconds;
                last_world = world;
        }
}

/* --- the whole
 * -------------------------------------------------------------------------------------------------------- */

static uint64_t middle_step(const json_t *view)
{
        double step = view_number(view, "step");

        return isfinite(step) && step > 2 * EXCERPT_STEPS ? (uint64_t) (step / 2) : 1;
}

static int gather(const json_t *view, struct report *report, struct err *err)
{
        const char *folder = view_text(view, "folder");
        struct excerpt excerpt = { .first_step = middle_step(view) };
        size_t ranks = json_array_size(json_object_get(view, "ranks"));

        report->view = view;
        report->rank_count = ranks < RANKS_MAX ? ranks : RANKS_MAX;
        report->ranks = calloc(report->rank_count + 1, sizeof(*report->ranks));
        excerpt.activities = report->activities = calloc(EXCERPT_MAX, sizeof(*report->activities));
        if (report->ranks == NULL || report->activities == NULL)
                return err_set(err, -ENOMEM, "no memory for the report");
        for (size_t i = 0; folder[0] != '\0' && i < report->rank_count; i++) {
                char path[PATH_MAX];

                (void) text_format(path, sizeof(path), "%s/timeline.%zu", folder, i);
                if (read_timeline(path, (uint32_t) i, &report->ranks[i].totals, &excerpt))
                        report->cut = true;
                read_worlds(folder, i, &report->ranks[i]);
        }
        report->activity_count = excerpt.count;
        if (folder[0] == '\0')
                read_history(json_object_get(view, "history"), report);
        return 0;
}

static void report_free(struct report *report)
{
        for (size_t i = 0; report->ranks != NULL && i < report->rank_count; i++)
                free(report->ranks[i].points);
        free(report->ranks);
        free(report->activities);
}

static int write_file(const char *file, const struct text *page, struct err *err)
{
        bool standard = strcmp(file, "-") == 0;
        FILE *f = standard ? stdout : fopen(file, "we");
        bool good;

        if (f == NULL)
                return err_set(err, -errno, "--file: '%.200s': %m", file);
        good = fwrite(page->data, 1, page->size_bytes, f) == page->size_bytes && fflush(f) == 0;
        if (!standard && fclose(f) != 0)
                good = false;
        return good ? 0 : err_set(err, -EIO, "--file: '%.200s' could not be written whole: %m", file);
}

int jobs_write_report(const json_t *view, const char *file, const char *picture, struct err *err)
{
        struct report report = { 0 };
        struct text page = { 0 };
        int r = gather(view, &report, err);

        if (r == 0 && picture == NULL)
                report_html(&report, &page);
        else if (r == 0 && report_picture(&report, picture, &page) < 0)
                r = err_set(err, -ENOENT, "job '%.80s' has left nothing that a %.20s could be drawn from",
                            view_text(view, "job"), picture);
        if (r == 0 && page.failed)
                r = err_set(err, -ENOMEM, "no memory for the report");
        if (r == 0)
                r = write_file(file, &page, err);
        text_free(&page);
        report_free(&report);
        return r;
}

int jobs_report(const struct jobs_options *options, const char *name)
{
        char file[256];
        struct err err = { 0 };
        json_t *views = NULL;
        int r = jobs_read(options, name, &views, &err);

        if (r < 0)
                return jobs_refuse("report", r, &err);
        (void) text_format(file, sizeof(file), "%.200s.%s", name, options->picture == NULL ? "html" : "svg");
        if (options->file != NULL)
                r = jobs_write_report(json_array_get(views, 0), options->file, options->picture, &err);
        else
                r = jobs_write_report(json_array_get(views, 0), file, options->picture, &err);
        json_decref(views);
        if (r < 0)
                return jobs_refuse("report", r, &err);
        if (options->file == NULL || strcmp(options->file, "-") != 0)
                (void) printf("%s\n", options->file != NULL ? options->file : file);
        return EXIT_DONE;
}
