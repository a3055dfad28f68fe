/* Reads what a job's ranks left behind, thinned to what can be drawn. */
#include "job/show/report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "job/launcher/rank_watch.h"

#define TIMELINE_MAX_BYTES ((off_t) 64 << 20) /* of one rank */
#define POINTS_MAX         400
#define EXCERPT_STEPS      6
#define EXCERPT_MAX        20000
#define RANKS_MAX          4096

struct interval {
        uint64_t begin, end;
};

struct intervals {
        struct interval *items;
        size_t count, capacity;
};

static void add_interval(struct intervals *list, uint64_t begin, uint64_t end)
{
        struct interval *added = array_add(&list->items, &list->count, &list->capacity, sizeof(*added));

        if (added != NULL)
                *added = (struct interval){ begin, end };
}

static int compare_intervals(const void *a, const void *b)
{
        const struct interval *x = a, *y = b;

        return (x->begin > y->begin) - (x->begin < y->begin);
}

/* clang-format off */
const char *const report_what_names[] = {
        [REPORT_LOAD]       = "load",
        [REPORT_FORWARD]    = "forward",
        [REPORT_BACKWARD]   = "backward",
        [REPORT_EXCHANGE]   = "exchange",
        [REPORT_UPDATE]     = "update",
        [REPORT_COMPUTE]    = "compute",
        [REPORT_WAIT]       = "wait",
        [REPORT_MEASURE]    = "measure",
        [REPORT_WHAT_COUNT] = NULL,
};
#define AT(member) JSON_TABLE_AT(struct report_activity, member), .required = true
static const struct json_table_row activity_rows[] = {
        { "name",      JSON_TABLE_CHOICE, AT(what), .names = report_what_names },
        { "ts",        JSON_TABLE_UINT,   AT(begin_usec) },
        { "dur",       JSON_TABLE_UINT,   AT(end_usec) }, /* behind the beginning */
        { "args.step", JSON_TABLE_UINT,   AT(step) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table activity_table = { .rows = activity_rows,
                                                  .size_bytes = sizeof(struct report_activity) };

static bool parse_activity(const char *line, struct report_activity *ret)
{
        json_t *value = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL); /* a comma comes after it */
        int r = json_table_decode(&activity_table, value, ret, NULL);

        json_decref(value);
        return r == 0 && !__builtin_add_overflow(ret->begin_usec, ret->end_usec, &ret->end_usec);
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

/* The time that intervals of `inner` are covered by those of `outer`: both sorted by begin, intervals of
 * `outer` not overlapping each other. */
static uint64_t overlap(const struct interval *inner, size_t inner_count, const struct interval *outer,
                        size_t outer_count)
{
        uint64_t sum = 0;
        size_t first = 0;

        for (size_t i = 0; i < inner_count; i++) {
                while (first < outer_count && outer[first].end <= inner[i].begin)
                        first++;
                for (size_t k = first; k < outer_count && outer[k].begin < inner[i].end; k++) {
                        uint64_t begin = inner[i].begin > outer[k].begin ? inner[i].begin : outer[k].begin;
                        uint64_t end = inner[i].end < outer[k].end ? inner[i].end : outer[k].end;

                        sum += end > begin ? end - begin : 0;
                }
        }
        return sum;
}

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
                if (a.what != REPORT_WAIT && a.what != REPORT_MEASURE)
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
        totals->exchange_beside_usec = overlap(exchange.items, exchange.count, busy.items, busy.count);
        totals->load_beside_usec = overlap(load.items, load.count, busy.items, busy.count);
        free(busy.items);
        free(exchange.items);
        free(load.items);
        return cut;
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

static void read_line(struct reading *reading, const struct progress_line *line)
{
        struct report_point point = { .step = line->step >= 0 ? (double) line->step : NAN,
                                      .seconds = line->seconds + reading->begins,
                                      .samples = line->samples >= 0 ? (double) line->samples : NAN,
                                      .loss = line->has_loss ? line->loss : NAN,
                                      .accuracy = line->accuracy,
                                      .world = reading->world };

        if (isfinite(line->begins_seconds)) {
                reading->begins = line->begins_seconds;
                reading->before = NAN;
                reading->rank->passed_last = 0;
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

/* A process counts what it passes from 0. */
static void note_passed(struct report_rank *rank, const char *line)
{
        json_t *value = strstr(line, "\"passed_bytes\"") != NULL ? json_loads(line, 0, NULL) : NULL;
        json_int_t said = json_integer_value(json_object_get(value, "passed_bytes"));
        uint64_t bytes = said > 0 ? (uint64_t) said : 0;

        if (value == NULL)
                return;
        rank->passed_bytes += bytes >= rank->passed_last ? bytes - rank->passed_last : bytes;
        rank->passed_last = bytes;
        json_decref(value);
}

static void read_points(const char *path, struct reading *reading)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        CLEANUP(free_p) char *text = NULL;
        struct progress_line line;
        size_t size = 0;

        while (f != NULL && getline(&text, &size, f) > 0)
                if (rank_watch_line(text, strlen(text), &line)) {
                        read_line(reading, &line);
                        note_passed(reading->rank, text);
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

static void read_history(const struct job_view *view, struct report *report)
{
        double last = NAN, last_world = NAN;

        if (view->history_count == 0 || report->rank_count == 0)
                return;
        report->coarse = true;
        report->ranks[0].points = calloc(view->history_count + 1, sizeof(*report->ranks[0].points));
        for (size_t i = 0; i < view->history_count; i++) {
                const struct job_view_moment *m = &view->history[i];

                if (report->ranks[0].points != NULL)
                        report->ranks[0].points[report->ranks[0].point_count++] =
                                (struct report_point){ .step = m->step,
                                                       .seconds = m->seconds,
                                                       .samples = m->samples,
                                                       .loss = m->loss,
                                                       .accuracy = NAN };
                for (size_t k = 0; k < m->busy_count && k < report->rank_count && m->seconds > last &&
                                   !(m->world > last_world);
                     k++)
                        add_moment(report, k, last, m->seconds, m->busy[k]);
                last = m->seconds;
                last_world = m->world;
        }
}

static uint64_t middle_step(const struct job_view *view)
{
        double step = view->step;

        return isfinite(step) && step > 2 * EXCERPT_STEPS ? (uint64_t) (step / 2) : 1;
}

int report_collect(const struct job_view *view, struct report *report, struct err *err)
{
        const char *folder = job_view_word(view->folder);
        struct excerpt excerpt = { .first_step = middle_step(view) };
        size_t ranks = view->rank_count;

        *report = (struct report){ .view = view };
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
                read_history(view, report);
        return 0;
}

void report_free(struct report *report)
{
        for (size_t i = 0; report->ranks != NULL && i < report->rank_count; i++)
                free(report->ranks[i].points);
        free(report->ranks);
        free(report->activities);
}
