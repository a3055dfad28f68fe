/* Jobs as tables and as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command/document.h"
#include "cli/command/duration.h"
#include "cli/command/listing.h"
#include "job/show/jobs.h"
#include "job/show/report_captions.h"

/* Takes the reference. */
static int print_document(json_t *value, bool yaml)
{
        int r = document_print(value, yaml, JSON_REAL_PRECISION(10));

        json_decref(value);
        return r == 0 && fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static enum table_colour colour_of(const char *phase)
{
        return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Running") == 0 ? TABLE_GOOD
               : strcmp(phase, "Failed") == 0                                   ? TABLE_BAD
                                                                                : TABLE_WARN;
}

static const char *number(char text[32], const char *format, double value)
{
        text[0] = '\0';
        if (isfinite(value))
                (void) snprintf(text, 32, format, value); /* the formats are below */
        return text;
}

/* 3 of 10; the epoch under way counts from 0. Where there is no total, or it is passed: 3, while it runs. */
static const char *epoch(char text[32], const struct job_view *view)
{
        double now = view->epoch, all = view->epochs;

        text[0] = '\0';
        if (isfinite(now) && !(now <= all)) {
                if (!job_view_ended(view))
                        (void) number(text, "%.0f", now + 1);
        } else if (isfinite(all))
                (void) text_format(text, 32, "%.0f of %.0f",
                                   isfinite(now) ? fmin(now + !job_view_ended(view), all) : 0, all);
        return text;
}

static const char *workers(char text[32], const struct job_view *view)
{
        text[0] = '\0';
        if (json_is_string(view->workers))
                (void) text_copy(text, 32, json_string_value(view->workers));
        else if (json_is_number(view->workers))
                (void) number(text, "%.0f", json_number_value(view->workers));
        return text;
}

static void add_job(struct table *table, const struct job_view *view, bool namespaces)
{
        char a[32];
        const char *phase = job_view_word(view->phase);

        if (namespaces)
                table_add(table, TABLE_PLAIN, "%s", job_view_word(view->namespace_));
        table_add(table, TABLE_PLAIN, "%s", job_view_word(view->job));
        table_add(table, colour_of(phase), "%s", phase);
        table_add(table, TABLE_PLAIN, "%s", epoch(a, view));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.0f", view->samples_per_s));
        table_add(table, TABLE_PLAIN, "%s",
                  job_view_ended(view) ? "" : duration_format(a, view->seconds_left));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.4f", view->loss));
        table_add(table, TABLE_PLAIN, "%s", workers(a, view));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.0f", view->restarts));
        table_add(table, TABLE_PLAIN, "%s", duration_format(a, view->seconds));
        table_add(table, TABLE_FAINT, "%s", job_view_word(view->reason));
}

static void add_more(struct table *table, const struct job_view *view)
{
        char a[32];

        table_add(table, TABLE_PLAIN, "%s", job_view_word(view->model));
        table_add(table, TABLE_PLAIN, "%s", job_view_word(view->strategy));
        table_add(table, TABLE_PLAIN, "%s", job_view_word(view->shards));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.0f", view->step));
        table_add(table, TABLE_FAINT, "%.19s", job_view_word(view->started));
}

static json_t *encode_all(const struct job_view_list *views)
{
        json_t *list = json_array();

        for (size_t i = 0; i < views->count; i++)
                (void) json_array_append_new(list, job_view_encode(&views->items[i]));
        return list;
}

static int print_table(const struct job_view_list *views, const struct jobs_options *options)
{
        static const char *const plain[] = { "NAMESPACE", "JOB",     "PHASE",    "EPOCH", "SAMPLES/S", "LEFT",
                                             "LOSS",      "WORKERS", "RESTARTS", "TIME",  "REASON",    NULL };
        static const char *const more[] = { "NAMESPACE", "JOB",   "PHASE",    "EPOCH",    "SAMPLES/S",
                                            "LEFT",      "LOSS",  "WORKERS",  "RESTARTS", "TIME",
                                            "REASON",    "MODEL", "STRATEGY", "SHARES",   "STEP",
                                            "STARTED",   NULL };
        bool wide = listing_form(&options->listing) == LISTING_WIDE;
        struct table table;

        listing_table(&options->listing, (wide ? more : plain) + !options->all_namespaces, &table);
        for (size_t i = 0; i < views->count; i++) {
                add_job(&table, &views->items[i], options->all_namespaces);
                if (wide)
                        add_more(&table, &views->items[i]);
        }
        return listing_table_end(&options->listing, &table);
}

static int print_csv(const struct job_view_list *views, const struct listing_arguments *listing)
{
        static const char *const names[] = { "namespace",
                                             "job",
                                             "phase",
                                             "reason",
                                             "model",
                                             "strategy",
                                             "shares",
                                             "workers",
                                             "epoch",
                                             "epochs",
                                             "step",
                                             "samples",
                                             "samples_per_second",
                                             "loss",
                                             "restarts",
                                             "started",
                                             "elapsed_seconds",
                                             "left_seconds",
                                             NULL };
        struct listing_csv rows;
        struct csv *csv = &rows.csv;
        char a[32];

        listing_csv(listing, names, &rows);
        for (size_t i = 0; i < views->count; i++) {
                const struct job_view *view = &views->items[i];

                csv_word(csv, view->namespace_);
                csv_word(csv, view->job);
                csv_word(csv, view->phase);
                csv_word(csv, view->reason);
                csv_word(csv, view->model);
                csv_word(csv, view->strategy);
                csv_word(csv, view->shards);
                csv_word(csv, workers(a, view));
                csv_number(csv, view->epoch);
                csv_number(csv, view->epochs);
                csv_number(csv, view->step);
                csv_number(csv, view->samples);
                csv_number(csv, view->samples_per_s);
                csv_number(csv, view->loss);
                csv_number(csv, view->restarts);
                csv_word(csv, view->started);
                csv_number(csv, view->seconds);
                csv_number(csv, view->seconds_left);
                csv_end_row(csv);
        }
        return listing_csv_end(listing, &rows);
}

static int print_names(const struct job_view_list *views)
{
        for (size_t i = 0; i < views->count; i++)
                listing_name(job_view_word(views->items[i].job));
        return 0;
}

static int print_objects(const struct job_view_list *views, const struct listing_arguments *listing)
{
        int r = 0;

        for (size_t i = 0; i < views->count && r == 0; i++) {
                const struct job_view *view = &views->items[i];
                CLEANUP(text_free) struct text key = { 0 };

                text_printf(&key, "%s/%s", job_view_word(view->namespace_), job_view_word(view->job));
                r = key.failed ? -ENOMEM
                               : listing_object(listing, key.data, job_view_word(view->job),
                                                job_view_encode(view), JSON_REAL_PRECISION(10));
        }
        return r < 0 ? r : listing_objects_end(listing);
}

int jobs_print_changed(const struct jobs_options *options, const struct job_view_list *views)
{
        enum listing_form form = listing_form(&options->listing);

        if (listing_is_document(form) || form == LISTING_NAME)
                return print_objects(views, &options->listing);
        return form == LISTING_CSV ? print_csv(views, &options->listing) : print_table(views, options);
}

static int print_list(const struct jobs_options *options, const struct job_view_list *views)
{
        enum listing_form form = listing_form(&options->listing);

        if (form == LISTING_CSV)
                return print_csv(views, &options->listing);
        if (form == LISTING_NAME)
                return print_names(views);
        if (views->count > 0)
                return print_table(views, options);
        if (!options->listing.no_headers)
                (void) printf("no jobs\n");
        return 0;
}

int jobs_list(const struct jobs_options *options)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        enum listing_form form = listing_form(&options->listing);
        struct err err = { 0 };
        int r = jobs_read(options, NULL, &views, &err);

        if (r < 0)
                return jobs_refuse("", r, &err);
        if (listing_is_document(form))
                return print_document(encode_all(&views), form == LISTING_YAML);
        return print_list(options, &views) == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* fashion: epoch 2 of 3, step 412, 11,532 samples/s, loss 0.5213, 12s left */
static void print_progress(const struct job_view *view)
{
        CLEANUP(text_free) struct text left = { 0 }, stale = { 0 };
        char a[32];

        if (!isfinite(view->samples))
                return;
        if (epoch(a, view)[0] != '\0')
                (void) printf("epoch %s, ", a);
        if (isfinite(view->step))
                (void) printf("step %.0f, ", view->step);
        (void) printf("%.0f samples", view->samples);
        if (isfinite(view->samples_per_s))
                (void) printf(", %.0f samples/s (%s)", view->samples_per_s, report_captions_rate(view));
        if (isfinite(view->loss))
                (void) printf(", loss %.4f", view->loss);
        if (isfinite(view->accuracy))
                (void) printf(", accuracy %.4f", view->accuracy);
        report_captions_left(view, &left);
        if (left.size_bytes > 0)
                (void) printf(", %s", left.data);
        (void) printf("\n");
        report_captions_staleness(view, &stale);
        if (stale.size_bytes > 0)
                (void) printf("%s\n", stale.data);
}

static void print_ranks(const struct job_view *view)
{
        const char *headings[14] = {
                "RANK", "ROLE", "RUNTIME", "DEVICE", "NODE", "BATCH", "WEIGHT", "SPEED"
        };
        struct report_captions_columns has = report_captions_columns(view);
        struct table table = { 0 };
        size_t columns = 8;
        char a[32];

        if (view->rank_count == 0)
                return;
        if (has.samples_per_s)
                headings[columns++] = "SAMPLES/S";
        if (has.steps_behind)
                headings[columns++] = "BEHIND";
        headings[columns++] = "SAMPLES";
        headings[columns++] = "RESTARTS";
        headings[columns++] = "EXIT";
        (void) printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < view->rank_count; i++) {
                const struct job_view_rank *rank = &view->ranks[i];
                char words[40];

                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->rank));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(rank->role));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(rank->runtime));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(rank->device));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(rank->node));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->batch));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.4f", rank->weight));
                table_add(&table, TABLE_FAINT, "%s", job_view_speed(rank, words));
                if (has.samples_per_s)
                        table_add(
                                &table, TABLE_PLAIN, "%s",
                                number(a, rank->samples_per_s < 1000 ? "%.4g" : "%.0f", rank->samples_per_s));
                if (has.steps_behind)
                        table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->steps_behind));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->samples));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->restarts));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", rank->exit_code));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_events(const struct job_view *view)
{
        static const char *const headings[] = { "TIME", "REASON", "WHAT HAPPENED", NULL };
        struct table table = { 0 };

        if (view->event_count == 0)
                return;
        (void) printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < view->event_count; i++) {
                const struct job_view_event *event = &view->events[i];

                table_add(&table, TABLE_FAINT, "%.19s", job_view_word(event->time));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(event->reason));
                table_add(&table, TABLE_PLAIN, "%s", job_view_word(event->message));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_view(const struct job_view *view)
{
        char a[32];

        (void) printf("%s: %s%s%s", job_view_word(view->job), job_view_word(view->phase),
                      job_view_word(view->reason)[0] == '\0' ? "" : ", ", job_view_word(view->reason));
        if (isfinite(view->seconds))
                (void) printf(", %s%s", job_view_ended(view) ? "after " : "for ",
                              duration_format(a, view->seconds));
        (void) printf("%s%s\n", job_view_word(view->message)[0] == '\0' ? "" : "\n",
                      job_view_word(view->message));
        print_progress(view);
        if (isfinite(view->global_batch))
                (void) printf("%s%s%s, %s shares of a batch of %.0f\n", job_view_word(view->strategy),
                              job_view_word(view->model)[0] == '\0' ? "" : " of ", job_view_word(view->model),
                              job_view_word(view->shards), view->global_batch);
        if (isfinite(job_view_gain(view)))
                (void) printf("equal shares would make a step %.2f times as long, by the speeds that were "
                              "measured\n",
                              job_view_gain(view));
        for (size_t i = 0; i < view->note_count; i++)
                (void) printf("note: %s\n", job_view_word(view->notes[i]));
        print_ranks(view);
        print_events(view);
        if (job_view_word(view->folder)[0] != '\0')
                (void) printf("\nlogs and plan: %s\n", job_view_word(view->folder));
}

int jobs_show(const struct jobs_options *options, const char *name)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        enum listing_form form = listing_form(&options->listing);
        struct err err = { 0 };
        int r = listing_check(&options->listing, "one job", "table|json|yaml", &err);

        if (r == 0 && options->listing.watch)
                r = err_set(&err, -EINVAL,
                            "--watch is of the list: `remuda jobs -w`, or `jobs logs -f NAME`");
        if (r == 0)
                r = jobs_read(options, name, &views, &err);
        if (r < 0)
                return jobs_refuse("show", r, &err);
        if (views.items == NULL) /* who reads one job has it, or said why not */
                return EXIT_NOT_FOUND;
        if (listing_is_document(form))
                return print_document(job_view_encode(&views.items[0]), form == LISTING_YAML);
        print_view(&views.items[0]);
        return EXIT_DONE;
}
