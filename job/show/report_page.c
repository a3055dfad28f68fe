/* The sections of the page, one after the other. */
#include "job/show/report_page.h"

#include <math.h>

#include "base/cleanup.h"
#include "job/show/report_captions.h"
#include "job/show/report_picture.h"
#include "job/show/report_words.h"

static void section(struct text *out, const char *id, const char *title, const char *words)
{
        text_printf(out, "<section id=\"%s\"><h2>%s</h2>", id, title);
        if (words != NULL)
                text_printf(out, "<p>%s</p>\n", words);
}

static void cell(struct text *out, const char *words)
{
        text_append(out, "<td>");
        report_words_escaped(out, words);
        text_append(out, "</td>");
}

static void number_cell(struct text *out, const char *unit, int decimals, double value)
{
        text_append(out, "<td class=\"n\">");
        report_words_number(out, unit, decimals, value);
        text_append(out, "</td>");
}

static void write_ranks(const struct report *report, struct text *out)
{
        const struct report_captions_columns has = report_captions_columns(report->view);

        text_append(out, "<table><tr><th>rank<th>role<th>runtime<th>device<th>node<th>batch<th>weight<th>"
                         "speed");
        text_append(out, has.samples_per_s ? "<th>samples/s while it computes" : "");
        text_append(out, has.steps_behind ? "<th>steps behind" : "");
        text_append(out, "<th>samples<th>restarts<th>exit</tr>\n");
        for (size_t i = 0; i < report->view->rank_count; i++) {
                const struct job_view_rank *rank = &report->view->ranks[i];
                char words[40];

                text_append(out, "<tr>");
                number_cell(out, "", 0, rank->rank);
                cell(out, job_view_word(rank->role));
                cell(out, job_view_word(rank->runtime));
                cell(out, job_view_word(rank->device));
                cell(out, job_view_word(rank->node));
                number_cell(out, "", 0, rank->batch);
                number_cell(out, "", 4, rank->weight);
                cell(out, job_view_speed(rank, words));
                if (has.samples_per_s)
                        number_cell(out, "", 1, rank->samples_per_s);
                if (has.steps_behind)
                        number_cell(out, "", 0, rank->steps_behind);
                number_cell(out, "", 0, rank->samples);
                number_cell(out, "", 0, rank->restarts);
                number_cell(out, "", 0, rank->exit_code);
                text_append(out, "</tr>\n");
        }
        text_append(out, "</table>\n");
}

static double share(uint64_t part, uint64_t whole)
{
        return whole == 0 ? NAN : 100 * (double) part / (double) whole;
}

/* How much of its time each rank computed: all that a rank says of itself. */
static void write_busy(const struct report *report, struct text *out)
{
        text_append(out, "<table><tr><th>rank<th>computing<th>exchange, loading, waiting</tr>\n");
        for (size_t i = 0; i < report->rank_count; i++) {
                const struct report_totals *t = &report->ranks[i].totals;
                uint64_t all = t->end_usec - t->begin_usec;

                if (t->end_usec == 0)
                        continue;
                text_append(out, "<tr>");
                number_cell(out, "", 0, (double) i);
                number_cell(out, " %", 1, share(t->usec[REPORT_COMPUTE], all));
                number_cell(out, " %", 1, share(t->usec[REPORT_WAIT], all));
                text_append(out, "</tr>\n");
        }
        text_append(out, "</table>\n");
}

static void write_passed(const struct report *report, struct text *out)
{
        bool any = false;

        for (size_t i = 0; i < report->rank_count; i++)
                any = any || report->ranks[i].passed_bytes > 0;
        if (!any)
                return;
        text_append(out, "<table><tr><th>rank<th>samples passed to its neighbour</tr>\n");
        for (size_t i = 0; i < report->rank_count; i++) {
                text_append(out, "<tr>");
                number_cell(out, "", 0, (double) i);
                number_cell(out, " MB", 1, (double) report->ranks[i].passed_bytes / 1e6);
                text_append(out, "</tr>\n");
        }
        text_append(out, "</table>\n");
}

static void write_overlap(const struct report *report, struct text *out)
{
        if (report->coarse) {
                write_busy(report, out);
                return;
        }
        text_append(out, "<table><tr><th>rank<th>computing<th>exchange<th>of it beside "
                         "computing<th>loading<th>of it beside "
                         "computing<th>"
                         "waiting<th>evaluations and trials</tr>\n");
        for (size_t i = 0; i < report->rank_count; i++) {
                const struct report_totals *t = &report->ranks[i].totals;
                uint64_t all = t->end_usec - t->begin_usec;

                if (t->end_usec == 0)
                        continue;
                text_append(out, "<tr>");
                number_cell(out, "", 0, (double) i);
                number_cell(out, " %", 1,
                            share(t->usec[REPORT_FORWARD] + t->usec[REPORT_BACKWARD] + t->usec[REPORT_UPDATE],
                                  all));
                number_cell(out, " %", 1, share(t->usec[REPORT_EXCHANGE], all));
                number_cell(out, " %", 1, share(t->exchange_beside_usec, t->usec[REPORT_EXCHANGE]));
                number_cell(out, " %", 1, share(t->usec[REPORT_LOAD], all));
                number_cell(out, " %", 1, share(t->load_beside_usec, t->usec[REPORT_LOAD]));
                number_cell(out, " %", 1, share(t->usec[REPORT_WAIT], all));
                number_cell(out, " %", 1, share(t->usec[REPORT_MEASURE], all));
                text_append(out, "</tr>\n");
        }
        text_append(out, "</table>\n");
        write_passed(report, out);
        if (report->cut)
                text_append(out, "<p>The timeline is long: its beginning alone was read.</p>\n");
}

static void write_events(const struct report *report, struct text *out)
{
        text_append(out, "<table><tr><th>time<th>reason<th>what happened</tr>\n");
        for (size_t i = 0; i < report->view->event_count; i++) {
                const struct job_view_event *event = &report->view->events[i];

                text_append(out, "<tr>");
                cell(out, job_view_word(event->time));
                cell(out, job_view_word(event->reason));
                cell(out, job_view_word(event->message));
                text_append(out, "</tr>\n");
        }
        text_append(out, "</table>\n");
}

static void write_head(const struct job_view *view, struct text *out)
{
        text_append(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>job ");
        report_words_escaped(out, job_view_word(view->job));
        text_append(
                out,
                "</title><style>body{font:15px/1.5 sans-serif;color:#1f2933;max-width:1000px;margin:2em "
                "auto;padding:0 1em}"
                "h1{margin-bottom:0}h2{margin:1.6em 0 .3em}svg{width:100%;height:auto;border:1px solid "
                "#e4e7eb}"
                "table{border-collapse:collapse;width:100%;font-size:13px}td,th{text-align:left;padding:3px "
                "9px;"
                "border-bottom:1px solid "
                "#e4e7eb;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
                ".Succeeded{color:#2f7d4f}.Failed{color:#b3123a}p{margin:.4em 0}</style></head><body>\n<h1>");
        report_words_escaped(out, job_view_word(view->job));
        text_append(out, ": <span class=\"");
        report_words_escaped(out, job_view_word(view->phase));
        text_append(out, "\">");
        report_words_escaped(out, job_view_word(view->phase));
        text_append(out, "</span></h1>\n<p>");
        report_words_escaped(out, job_view_word(view->reason));
        if (job_view_word(view->message)[0] != '\0')
                text_append(out, ": ");
        report_words_escaped(out, job_view_word(view->message));
        text_append(out, "</p>\n");
}

/* Of a caption, if there is one. */
static void sentence(struct text *out, const struct job_view *view,
                     void (*caption)(const struct job_view *view, struct text *out))
{
        CLEANUP(text_free) struct text words = { 0 };

        caption(view, &words);
        if (words.size_bytes > 0)
                text_printf(out, "<p>%s</p>\n", words.data);
}

static void write_figures(const struct job_view *view, struct text *out)
{
        text_append(out, "<table><tr><th>model<th>strategy<th>batch<th>epochs<th>seconds<th>samples<th>"
                         "samples/s, ");
        text_append(out, report_captions_rate(view));
        text_append(out, "<th>loss<th>accuracy<th>restarts</tr><tr>");
        cell(out, job_view_word(view->model));
        cell(out, job_view_word(view->strategy));
        number_cell(out, "", 0, view->global_batch);
        number_cell(out, "", 0, view->epochs);
        number_cell(out, "", 1, view->seconds);
        number_cell(out, "", 0, view->samples);
        number_cell(out, "", 0, view->samples_per_s);
        number_cell(out, "", 4, view->loss);
        number_cell(out, "", 4, view->accuracy);
        number_cell(out, "", 0, view->restarts);
        text_append(out, "</tr></table>\n");
        sentence(out, view, report_captions_left);
        sentence(out, view, report_captions_staleness);
}

static void picture_or(struct text *out, int drawn, const char *otherwise)
{
        if (drawn < 0)
                text_printf(out, "<p>%s</p>", otherwise);
        text_append(out, "</section>\n");
}

void report_page(const struct report *report, struct text *out)
{
        write_head(report->view, out);
        write_figures(report->view, out);
        section(out, "placement", "Placement", "The chips that the ranks are on, by node and device group.");
        picture_or(out, report_picture(report, "placement", out), "No rank has been given a chip.");
        section(out, "shares", "Shares", NULL);
        text_append(out, "<p>");
        report_captions_shares(report->view, out);
        text_append(out, "</p>\n");
        if (isfinite(job_view_gain(report->view)))
                text_printf(
                        out,
                        "<p>Equal shares would make the computing of a step <b>%.2f times</b> as long, by "
                        "the speeds that were measured.</p>\n",
                        job_view_gain(report->view));
        (void) report_picture(report, "shares", out);
        write_ranks(report, out);
        text_append(out, "</section>\n");
        section(out, "timeline", "Timeline of the ranks",
                report->coarse
                        ? "The whole job in a few moments, as its ranks say: how much of each a rank "
                          "computed; "
                          "the rest is exchange, loading and waiting. Gaps are restarts."
                        : "A few steps from the middle. Upper bars: computing; lower bars: what goes on "
                          "beside it.");
        picture_or(
                out, report_picture(report, "timeline", out),
                "No timeline was written: the reference trainer writes one where `remuda run` starts it, and "
                "of a cluster's job nothing was heard while its ranks ran.");
        section(out, "overlap", "Overlap",
                report->coarse
                        ? "Shares of each rank's time over the whole run."
                        : "Shares of each rank's time over the whole run, and how much of the exchange and "
                          "of the loading went on while it computed: what that saved is another question.");
        write_overlap(report, out);
        text_append(out, "</section>\n");
        section(out, "loss", "Loss",
                "Of every rank over the steps; red dots are the accuracy on the test data, 0 to 1.");
        picture_or(out, report_picture(report, "loss", out), "No loss was reported.");
        section(out, "progress", "Progress", "Samples of every rank over time.");
        picture_or(out, report_picture(report, "progress", out),
                   "No rank has said when it made its steps (`seconds` of a progress line).");
        section(out, "events", "What happened", NULL);
        write_events(report, out);
        text_append(out, "</section>\n</body></html>\n");
}
