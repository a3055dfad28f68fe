/* Jobs as tables and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command/table.h"
#include "job/show/jobs.h"

static int print_json(const json_t *value)
{
        if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) < 0)
                return EXIT_FAILED;
        (void) fputc('\n', stdout);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
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
                (void) snprintf(text, 32, format, value); /* NOLINT: the formats are below */
        return text;
}

/* 3 of 10; the epoch under way counts from 0. */
static const char *epoch(char text[32], const json_t *view)
{
        double now = view_number(view, "epoch"), all = view_number(view, "epochs");

        text[0] = '\0';
        if (isfinite(all))
                (void) text_format(text, 32, "%.0f of %.0f",
                                   isfinite(now) ? fmin(now + !jobs_ended(view), all) : 0, all);
        return text;
}

static const char *duration(char text[32], double seconds)
{
        text[0] = '\0';
        if (!isfinite(seconds) || seconds < 0)
                return text;
        if (seconds < 100)
                (void) text_format(text, 32, "%.0fs", seconds);
        else if (seconds < 6000)
                (void) text_format(text, 32, "%.0fm", seconds / 60);
        else
                (void) text_format(text, 32, "%.1fh", fmin(seconds / 3600, 1e6));
        return text;
}

static const char *workers(char text[32], const json_t *view)
{
        const json_t *value = json_object_get(view, "workers");

        if (json_is_string(value))
                (void) text_copy(text, 32, json_string_value(value));
        else
                (void) number(text, "%.0f", view_number(view, "workers"));
        return text;
}

static void add_job(struct table *table, const json_t *view, bool namespaces)
{
        char a[32];
        const char *phase = view_text(view, "phase");

        if (namespaces)
                table_add(table, TABLE_PLAIN, "%s", view_text(view, "namespace"));
        table_add(table, TABLE_PLAIN, "%s", view_text(view, "job"));
        table_add(table, colour_of(phase), "%s", phase);
        table_add(table, TABLE_PLAIN, "%s", epoch(a, view));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(view, "samples_per_s")));
        table_add(table, TABLE_PLAIN, "%s",
                  jobs_ended(view) ? "" : duration(a, view_number(view, "seconds_left")));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.4f", view_number(view, "loss")));
        table_add(table, TABLE_PLAIN, "%s", workers(a, view));
        table_add(table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(view, "restarts")));
        table_add(table, TABLE_PLAIN, "%s", duration(a, view_number(view, "seconds")));
        table_add(table, TABLE_FAINT, "%s", view_text(view, "reason"));
}

int jobs_list(const struct jobs_options *options)
{
        static const char *const headings[] = { "NAMESPACE", "JOB",  "PHASE",  "EPOCH",
                                                "SAMPLES/S", "LEFT", "LOSS",   "WORKERS",
                                                "RESTARTS",  "TIME", "REASON", NULL };
        struct table table = { 0 };
        struct err err = { 0 };
        json_t *views, *view;
        size_t i;
        int r = jobs_read(options, NULL, &views, &err), exit_code;

        if (r < 0)
                return jobs_refuse("", r, &err);
        if (strcmp(options->output, "json") == 0) {
                exit_code = print_json(views);
        } else if (json_array_size(views) == 0) {
                exit_code = EXIT_DONE;
                (void) printf("no jobs\n");
        } else {
                table_begin(&table, options->all_namespaces ? headings : headings + 1);
                json_array_foreach(views, i, view)
                {
                        add_job(&table, view, options->all_namespaces);
                }
                exit_code = table_print(&table, table_wants_colour(stdout), stdout) == 0 ? EXIT_DONE
                                                                                         : EXIT_FAILED;
                table_free(&table);
        }
        json_decref(views);
        return exit_code;
}

/* fashion: epoch 2 of 3, step 412, 11,532 samples/s, loss 0.5213, 12s left */
static void print_progress(const json_t *view)
{
        char a[32];

        if (!isfinite(view_number(view, "samples")))
                return;
        (void) printf("epoch %s", epoch(a, view));
        if (isfinite(view_number(view, "step")))
                (void) printf(", step %.0f", view_number(view, "step"));
        (void) printf(", %.0f samples", view_number(view, "samples"));
        if (isfinite(view_number(view, "samples_per_s")))
                (void) printf(", %.0f samples/s", view_number(view, "samples_per_s"));
        if (isfinite(view_number(view, "loss")))
                (void) printf(", loss %.4f", view_number(view, "loss"));
        if (isfinite(view_number(view, "accuracy")))
                (void) printf(", accuracy %.4f", view_number(view, "accuracy"));
        if (!jobs_ended(view) && isfinite(view_number(view, "seconds_left")))
                (void) printf(", %s left", duration(a, view_number(view, "seconds_left")));
        (void) printf("\n");
}

static void print_ranks(const json_t *view)
{
        static const char *const headings[] = { "RANK",   "ROLE",  "RUNTIME", "DEVICE",   "NODE", "BATCH",
                                                "WEIGHT", "SPEED", "SAMPLES", "RESTARTS", "EXIT", NULL };
        struct table table = { 0 };
        const json_t *rank;
        char a[32];
        size_t i;

        if (json_array_size(json_object_get(view, "ranks")) == 0)
                return;
        (void) printf("\n");
        table_begin(&table, headings);
        json_array_foreach(json_object_get(view, "ranks"), i, rank)
        {
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(rank, "rank")));
                table_add(&table, TABLE_PLAIN, "%s", view_text(rank, "role"));
                table_add(&table, TABLE_PLAIN, "%s", view_text(rank, "runtime"));
                table_add(&table, TABLE_PLAIN, "%s", view_text(rank, "device"));
                table_add(&table, TABLE_PLAIN, "%s", view_text(rank, "node"));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(rank, "batch")));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.4f", view_number(rank, "weight")));
                table_add(&table, TABLE_FAINT, "%s", view_text(rank, "speed_source"));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(rank, "samples")));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(rank, "restarts")));
                table_add(&table, TABLE_PLAIN, "%s", number(a, "%.0f", view_number(rank, "exit_code")));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_events(const json_t *view)
{
        static const char *const headings[] = { "TIME", "REASON", "WHAT HAPPENED", NULL };
        struct table table = { 0 };
        const json_t *event;
        size_t i;

        if (json_array_size(json_object_get(view, "events")) == 0)
                return;
        (void) printf("\n");
        table_begin(&table, headings);
        json_array_foreach(json_object_get(view, "events"), i, event)
        {
                table_add(&table, TABLE_FAINT, "%.19s", view_text(event, "time"));
                table_add(&table, TABLE_PLAIN, "%s", view_text(event, "reason"));
                table_add(&table, TABLE_PLAIN, "%s", view_text(event, "message"));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_view(const json_t *view)
{
        const json_t *note;
        char a[32];
        size_t i;

        (void) printf("%s: %s%s%s", view_text(view, "job"), view_text(view, "phase"),
                      view_text(view, "reason")[0] == '\0' ? "" : ", ", view_text(view, "reason"));
        if (isfinite(view_number(view, "seconds")))
                (void) printf(", %s%s", jobs_ended(view) ? "after " : "for ",
                              duration(a, view_number(view, "seconds")));
        (void) printf("%s%s\n", view_text(view, "message")[0] == '\0' ? "" : "\n",
                      view_text(view, "message"));
        print_progress(view);
        if (isfinite(view_number(view, "global_batch")))
                (void) printf("%s of %s, %s shares of a batch of %.0f\n", view_text(view, "strategy"),
                              view_text(view, "model"), view_text(view, "shards"),
                              view_number(view, "global_batch"));
        json_array_foreach(json_object_get(view, "notes"), i, note)
        {
                (void) printf("note: %s\n", json_is_string(note) ? json_string_value(note) : "");
        }
        print_ranks(view);
        print_events(view);
        if (view_text(view, "folder")[0] != '\0')
                (void) printf("\nlogs and plan: %s\n", view_text(view, "folder"));
}

int jobs_show(const struct jobs_options *options, const char *name)
{
        struct err err = { 0 };
        json_t *views;
        int r = jobs_read(options, name, &views, &err), exit_code = EXIT_DONE;

        if (r < 0)
                return jobs_refuse("show", r, &err);
        if (strcmp(options->output, "json") == 0)
                exit_code = print_json(json_array_get(views, 0));
        else
                print_view(json_array_get(views, 0));
        json_decref(views);
        return exit_code;
}
