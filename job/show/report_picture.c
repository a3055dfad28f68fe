/* Bars, lines and boxes: each picture of a report is drawn by one function, with the few shapes before it. */
#include "job/show/report_picture.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/show/report_words.h"

#define WIDTH 960
#define LEFT  80
#define RIGHT 30
#define LANE  34
#define RANKS 64 /* lanes that are drawn; more would be hair */

/* clang-format off */
static const char *const what_colours[REPORT_WHAT_COUNT] = {
        [REPORT_LOAD]     = "#9aa5b1",
        [REPORT_FORWARD]  = "#3f6fb5",
        [REPORT_BACKWARD] = "#2f9e76",
        [REPORT_EXCHANGE] = "#d98e04",
        [REPORT_UPDATE]   = "#8b5fbf",
        [REPORT_COMPUTE]  = "#4f7f9f",
        [REPORT_WAIT]     = "#e4e7eb",
        [REPORT_MEASURE]  = "#b5527a",
};
static const char *const rank_colours[] = { "#3f6fb5", "#d98e04", "#2f9e76", "#8b5fbf", "#c43a2b", "#0f7f8f", "#7a6a00", "#b3123a" };
/* clang-format on */

static void label(struct text *out, double x, double y, const char *anchor, const char *words)
{
        text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
        report_words_escaped(out, words);
        text_append(out, "</text>");
}

static void begin_picture(struct text *out, double height, const char *title)
{
        text_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
                    "font-family=\"sans-serif\" "
                    "font-size=\"12\" fill=\"#1f2933\" role=\"img\" aria-label=\"",
                    WIDTH, height);
        report_words_escaped(out, title);
        text_append(out, "\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
}

static void end_picture(struct text *out)
{
        text_append(out, "</svg>\n");
}

static void legend(const struct report *report, struct text *out, double y)
{
        int place = 0;

        for (int i = 0; i < REPORT_WHAT_COUNT; i++) {
                bool there = false;

                for (size_t k = 0; k < report->activity_count && !there; k++)
                        there = (int) report->activities[k].what == i;
                if (!there)
                        continue;
                text_printf(out, "<rect x=\"%d\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/>",
                            LEFT + 100 * place, y, what_colours[i]);
                label(out, LEFT + 100 * place++ + 17, y + 10, "start", report_what_names[i]);
        }
}

static void range_of(const struct report *report, uint64_t *ret_begin, uint64_t *ret_end, uint64_t *ret_steps)
{
        uint64_t first = UINT64_MAX, last = 0;

        *ret_begin = UINT64_MAX;
        *ret_end = 0;
        for (size_t i = 0; i < report->activity_count; i++) {
                const struct report_activity *a = &report->activities[i];

                *ret_begin = a->begin_usec < *ret_begin ? a->begin_usec : *ret_begin;
                *ret_end = a->end_usec > *ret_end ? a->end_usec : *ret_end;
                first = a->step < first ? a->step : first;
                last = a->step > last ? a->step : last;
        }
        *ret_steps = last - first + 1;
}

static size_t lanes(const struct report *report)
{
        return report->rank_count < RANKS ? report->rank_count : RANKS;
}

/* Computing in the upper half of a lane; what goes on beside it in the lower. */
static void draw_activity(struct text *out, const struct report_activity *a, uint64_t begin, double scale)
{
        bool beside = a->what == REPORT_LOAD || a->what == REPORT_EXCHANGE || a->what == REPORT_WAIT;
        double y = 30 + LANE * (double) a->rank + (beside ? 17 + (a->what == REPORT_LOAD ? 6 : 0) : 0);

        text_printf(out,
                    "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>rank %u, "
                    "step %" PRIu64 ", %s, %.3f ms</title></rect>",
                    LEFT + (double) (a->begin_usec - begin) * scale, y,
                    fmax((double) (a->end_usec - a->begin_usec) * scale, 0.3), beside ? 6 : 16,
                    what_colours[a->what], a->rank, a->step, report_what_names[a->what],
                    (double) (a->end_usec - a->begin_usec) / 1e3);
}

static int draw_timeline(const struct report *report, struct text *out)
{
        uint64_t begin, end, steps;
        double scale, bottom = 30 + LANE * (double) lanes(report);
        char words[96];

        if (report->activity_count == 0)
                return -ENOENT;
        range_of(report, &begin, &end, &steps);
        scale = (WIDTH - LEFT - RIGHT) / fmax(1, (double) (end - begin));
        begin_picture(out, bottom + 24, "what every rank did when");
        legend(report, out, 6);
        for (size_t i = 0; i < lanes(report); i++) {
                text_printf(out, "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"29\" fill=\"#f5f7fa\"/>",
                            LEFT, 30 + LANE * (double) i, WIDTH - LEFT - RIGHT);
                (void) text_format(words, sizeof(words), "rank %zu", i);
                label(out, 6, 30 + LANE * (double) i + 18, "start", words);
        }
        for (size_t i = 0; i < report->activity_count; i++)
                if (report->activities[i].rank < lanes(report))
                        draw_activity(out, &report->activities[i], begin, scale);
        if (report->coarse)
                (void) text_format(words, sizeof(words), "%.1f s", (double) begin / 1e6);
        else
                (void) text_format(words, sizeof(words), "%.1f ms", (double) begin / 1e3);
        label(out, LEFT, bottom + 16, "start", words);
        if (report->coarse)
                (void) text_format(words, sizeof(words), "%.1f s after the start", (double) end / 1e6);
        else
                (void) text_format(words, sizeof(words), "%.1f ms, %" PRIu64 " steps", (double) end / 1e3,
                                   steps);
        label(out, WIDTH - RIGHT, bottom + 16, "end", words);
        end_picture(out);
        return 0;
}

struct axes {
        double x_max, y_min, y_max, top, bottom;
        double (*x)(const struct report_point *point);
        double (*y)(const struct report_point *point);
};

static double step_of(const struct report_point *point)
{
        return point->step;
}
static double seconds_of(const struct report_point *point)
{
        return point->seconds;
}
static double loss_of(const struct report_point *point)
{
        return point->loss;
}
static double samples_of(const struct report_point *point)
{
        return point->samples;
}
static double accuracy_of(const struct report_point *point)
{
        return point->accuracy;
}

static bool point_known(const struct axes *axes, const struct report_point *point)
{
        return isfinite(axes->x(point)) && isfinite(axes->y(point));
}

/* Return: is there anything to draw? */
static bool fit_axes(const struct report *report, struct axes *axes)
{
        bool any = false;

        for (size_t i = 0; i < report->rank_count; i++)
                for (size_t k = 0; k < report->ranks[i].point_count; k++) {
                        const struct report_point *point = &report->ranks[i].points[k];

                        if (!point_known(axes, point))
                                continue;
                        any = true;
                        axes->x_max = fmax(axes->x_max, axes->x(point));
                        axes->y_max = fmax(axes->y_max, axes->y(point));
                        axes->y_min = fmin(axes->y_min, axes->y(point));
                }
        if (axes->y_max <= axes->y_min)
                axes->y_max = axes->y_min + 1;
        return any;
}

static double x_at(const struct axes *axes, double x)
{
        return LEFT + (WIDTH - LEFT - RIGHT) * x / fmax(axes->x_max, 1e-9);
}

static double y_at(const struct axes *axes, double y)
{
        return axes->bottom - (axes->bottom - axes->top) * (y - axes->y_min) / (axes->y_max - axes->y_min);
}

static void draw_axes(struct text *out, const struct axes *axes, const char *x_name, int decimals)
{
        char words[64];

        for (int i = 0; i <= 4; i++) {
                double value = axes->y_min + (axes->y_max - axes->y_min) * i / 4;

                text_printf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e4e7eb\"/>",
                            LEFT, y_at(axes, value), WIDTH - RIGHT, y_at(axes, value));
                (void) text_format(words, sizeof(words), "%.*f", decimals, value);
                label(out, LEFT - 6, y_at(axes, value) + 4, "end", words);
        }
        (void) text_format(words, sizeof(words), "%.*f %s", strcmp(x_name, "s") == 0 ? 1 : 0, axes->x_max,
                           x_name);
        label(out, WIDTH - RIGHT, axes->bottom + 18, "end", words);
        label(out, LEFT, axes->bottom + 18, "start", "0");
}

static void draw_line(struct text *out, const struct axes *axes, const struct report_rank *rank,
                      const char *colour)
{
        static const char begin[] = "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" points=\"";
        unsigned world = rank->points[0].world;

        text_printf(out, begin, colour);
        for (size_t k = 0; k < rank->point_count; k++) {
                if (rank->points[k].world != world) { /* a restart: what was done in vain is shown, too */
                        text_append(out, "\"/>");
                        text_printf(out, begin, colour);
                }
                world = rank->points[k].world;
                if (point_known(axes, &rank->points[k]))
                        text_printf(out, "%.1f,%.1f ", x_at(axes, axes->x(&rank->points[k])),
                                    y_at(axes, axes->y(&rank->points[k])));
        }
        text_append(out, "\"/>");
}

/* Where a world began after a restart. */
static void draw_restarts(struct text *out, const struct axes *axes, const struct report_rank *rank)
{
        for (size_t k = 1; k < rank->point_count; k++) {
                double x = x_at(axes, axes->x(&rank->points[k]));

                if (rank->points[k].world != rank->points[k - 1].world && isfinite(x))
                        text_printf(
                                out,
                                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#8a94a0\" "
                                "stroke-dasharray=\"3 3\"><title>restart %u</title></line>",
                                x, axes->top, x, axes->bottom, rank->points[k].world);
        }
}

static void draw_lines(const struct report *report, const struct axes *axes, struct text *out)
{
        for (size_t i = 0; i < report->rank_count && i < RANKS; i++) {
                const char *colour = rank_colours[i % ARRAY_SIZE(rank_colours)];
                char words[32];

                if (report->ranks[i].point_count == 0)
                        continue;
                draw_line(out, axes, &report->ranks[i], colour);
                if (i < 8) {
                        if (report->coarse)
                                (void) text_copy(words, sizeof(words), "all ranks");
                        else
                                (void) text_format(words, sizeof(words), "rank %zu", i);
                        text_printf(out, "<rect x=\"%zu\" y=\"6\" width=\"12\" height=\"12\" fill=\"%s\"/>",
                                    LEFT + 100 * i, colour);
                        label(out, (double) (LEFT + 100 * i + 17), 16, "start", words);
                }
        }
}

static int draw_progress(const struct report *report, struct text *out)
{
        struct axes axes = { .top = 30, .bottom = 190, .x = seconds_of, .y = samples_of };

        if (!fit_axes(report, &axes))
                return -ENOENT;
        begin_picture(out, 214, "samples of every rank over time");
        draw_axes(out, &axes, "s", 0);
        if (report->rank_count > 0)
                draw_restarts(out, &axes, &report->ranks[report->rank_count - 1]);
        draw_lines(report, &axes, out);
        end_picture(out);
        return 0;
}

static int draw_loss(const struct report *report, struct text *out)
{
        struct axes axes = { .top = 30, .bottom = 190, .x = step_of, .y = loss_of };
        struct axes accuracy = { .top = 30, .bottom = 190, .y_max = 1, .x = step_of, .y = accuracy_of };

        if (!fit_axes(report, &axes))
                return -ENOENT;
        begin_picture(out, 214, "loss of every rank over the steps, and the accuracy on the test data");
        draw_axes(out, &axes, "steps", 2);
        draw_lines(report, &axes, out);
        accuracy.x_max = axes.x_max;
        for (size_t k = 0; report->rank_count > 0 && k < report->ranks[0].point_count; k++) {
                const struct report_point *point = &report->ranks[0].points[k];

                if (point_known(&accuracy, point))
                        text_printf(out,
                                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" "
                                    "fill=\"#c43a2b\"><title>accuracy %.4f on the "
                                    "test data, after step %.0f</title></circle>",
                                    x_at(&accuracy, point->step), y_at(&accuracy, point->accuracy),
                                    point->accuracy, point->step);
        }
        end_picture(out);
        return 0;
}

/* First and last layer of a rank, [0, 5]. Return: does it have any? */
static bool layers_of(const struct job_view_rank *rank, double *ret_first, double *ret_last)
{
        *ret_first = (double) json_integer_value(json_array_get(rank->layers, 0));
        *ret_last = (double) json_integer_value(json_array_get(rank->layers, 1));
        return json_array_size(rank->layers) == 2 && *ret_first >= 0 && *ret_last >= *ret_first;
}

/* A row a pipeline, each of which begins with layer 0; a box a rank, as wide as it has layers. */
static int draw_layers(const struct report *report, struct text *out)
{
        const struct job_view *view = report->view;
        double first, last, layers = 0, rows = 0, y = 0, scale;

        for (size_t i = 0; i < view->rank_count; i++)
                if (layers_of(&view->ranks[i], &first, &last)) {
                        layers = fmax(layers, last + 1);
                        rows += first == 0;
                }
        if (layers == 0 || rows > RANKS)
                return -ENOENT;
        scale = (WIDTH - LEFT - RIGHT) / layers;
        begin_picture(out, 20 + 44 * rows, "the layers of the model, by the ranks that have them");
        for (size_t i = 0; i < view->rank_count; i++) {
                const struct job_view_rank *rank = &view->ranks[i];
                char words[160];

                if (!layers_of(rank, &first, &last))
                        continue;
                if (first == 0) {
                        y += y == 0 ? 14 : 44;
                        label(out, 6, y + 20, "start", "layers");
                }
                text_printf(out,
                            "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"32\" fill=\"%s\" "
                            "stroke=\"#ffffff\"><title>rank %zu: layers %.0f to %.0f</title></rect>",
                            LEFT + first * scale, y, (last - first + 1) * scale,
                            rank_colours[i % ARRAY_SIZE(rank_colours)], i, first, last);
                (void) text_format(words, sizeof(words), "layers %.0f-%.0f, rank %zu (%.20s)", first, last, i,
                                   job_view_word(rank->runtime));
                if ((last - first + 1) * scale > 100) {
                        text_append(out, "<g fill=\"#ffffff\">");
                        label(out, LEFT + first * scale + 6, y + 20, "start", words);
                        text_append(out, "</g>");
                }
        }
        end_picture(out);
        return 0;
}

static int draw_shares(const struct report *report, struct text *out)
{
        double x = LEFT;

        if (draw_layers(report, out) == 0)
                return 0;
        if (report->view->rank_count == 0)
                return -ENOENT;
        begin_picture(out, 64, "each batch, by the shares of the ranks");
        label(out, 6, 34, "start", "a batch");
        for (size_t i = 0; i < report->view->rank_count; i++) {
                const struct job_view_rank *rank = &report->view->ranks[i];
                double weight = rank->weight, width = (WIDTH - LEFT - RIGHT) * weight;
                char words[160], speed[40];

                if (!(weight > 0 && weight <= 1))
                        continue;
                text_printf(out,
                            "<rect x=\"%.2f\" y=\"14\" width=\"%.2f\" height=\"32\" fill=\"%s\" "
                            "stroke=\"#ffffff\"><title>rank "
                            "%zu: %.0f samples, %.4f</title></rect>",
                            x, width, rank_colours[i % ARRAY_SIZE(rank_colours)], i, rank->batch, weight);
                (void) text_format(words, sizeof(words), "%.0f %.20s (%.20s)", rank->batch,
                                   job_view_word(rank->runtime), job_view_speed(rank, speed));
                if (width > 110) {
                        text_append(out, "<g fill=\"#ffffff\">");
                        label(out, x + 6, 34, "start", words);
                        text_append(out, "</g>");
                }
                x += width;
        }
        end_picture(out);
        return 0;
}

static const char *place_of(const struct job_view_rank *rank)
{
        return job_view_word(rank->node)[0] != '\0' ? rank->node : "this machine";
}

/* The same node and the same group: one row. */
static bool same_row(const struct job_view_rank *a, const struct job_view_rank *b)
{
        return strcmp(place_of(a), place_of(b)) == 0 &&
               strcmp(job_view_word(a->group), job_view_word(b->group)) == 0;
}

static bool first_of_row(const struct job_view *view, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (same_row(&view->ranks[i], &view->ranks[index]))
                        return false;
        return true;
}

static void draw_row(struct text *out, const struct job_view *view, size_t first, double y)
{
        const struct job_view_rank *head = &view->ranks[first];
        double x = 400;
        char words[128];

        (void) text_format(words, sizeof(words), "%.28s", place_of(head));
        label(out, 6, y + 20, "start", words);
        (void) text_format(words, sizeof(words), "%.24s%s%.24s", job_view_word(head->group),
                           job_view_word(head->device_model)[0] == '\0' ? "" : ", ",
                           job_view_word(head->device_model));
        label(out, 190, y + 20, "start", words);
        for (size_t i = first; i < view->rank_count && x < WIDTH - 40; i++) {
                const struct job_view_rank *rank = &view->ranks[i];

                if (!same_row(rank, head))
                        continue;
                text_printf(
                        out,
                        "<rect x=\"%.0f\" y=\"%.0f\" width=\"34\" height=\"24\" rx=\"3\" fill=\"%s\"><title>",
                        x, y + 4, rank_colours[i % ARRAY_SIZE(rank_colours)]);
                report_words_escaped(out, job_view_word(rank->device));
                text_append(out, "</title></rect><g fill=\"#ffffff\">");
                (void) text_format(words, sizeof(words), "%s%zu",
                                   strcmp(job_view_word(rank->role), "server") == 0 ? "s" : "", i);
                label(out, x + 17, y + 20, "middle", words);
                text_append(out, "</g>");
                x += 38;
        }
}

static int draw_placement(const struct report *report, struct text *out)
{
        const struct job_view *view = report->view;
        size_t rows = 0, count = view->rank_count < 1024 ? view->rank_count : 1024;

        for (size_t i = 0; i < count; i++)
                rows += first_of_row(view, i);
        if (rows == 0)
                return -ENOENT;
        begin_picture(out, 34.0 * (double) (rows < RANKS ? rows : RANKS) + 8,
                      "the chips of every rank, by node and group");
        rows = 0;
        for (size_t i = 0; i < count && rows < RANKS; i++)
                if (first_of_row(view, i))
                        draw_row(out, view, i, 4 + 34.0 * (double) rows++);
        end_picture(out);
        return 0;
}

int report_picture(const struct report *report, const char *name, struct text *out)
{
        if (strcmp(name, "timeline") == 0)
                return draw_timeline(report, out);
        if (strcmp(name, "progress") == 0)
                return draw_progress(report, out);
        if (strcmp(name, "loss") == 0)
                return draw_loss(report, out);
        if (strcmp(name, "placement") == 0)
                return draw_placement(report, out);
        return strcmp(name, "shares") == 0 ? draw_shares(report, out) : -ENOENT;
}
