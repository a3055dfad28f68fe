/* Writes a job's report, whole or one of its pictures; or its trace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/show/jobs.h"
#include "job/show/report_page.h"
#include "job/show/report_picture.h"
#include "job/show/report_trace.h"

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

int jobs_write_report(const struct job_view *view, const char *file, const char *picture, struct err *err)
{
        struct report report = { 0 };
        struct text page = { 0 };
        int r = report_collect(view, &report, err);

        if (r == 0 && picture == NULL)
                report_page(&report, &page);
        else if (r == 0 && report_picture(&report, picture, &page) < 0)
                r = err_set(err, -ENOENT, "job '%.80s' has left nothing that a %.20s could be drawn from",
                            job_view_word(view->job), picture);
        if (r == 0 && page.failed)
                r = err_set(err, -ENOMEM, "no memory for the report");
        if (r == 0)
                r = write_file(file, &page, err);
        text_free(&page);
        report_free(&report);
        return r;
}

/* A long run's is no text in memory. */
static int write_trace(const struct job_view *view, const char *file, struct err *err)
{
        struct report report = { 0 };
        bool standard = strcmp(file, "-") == 0;
        int r = report_collect(view, &report, err);
        FILE *f = r < 0 || standard ? stdout : fopen(file, "we");

        if (f == NULL)
                r = err_set(err, -errno, "--file: '%.200s': %m", file);
        if (r == 0)
                r = report_trace(&report, f, err);
        if (f != NULL && (f == stdout ? fflush(f) : fclose(f)) != 0 && r == 0)
                r = err_set(err, -EIO, "--file: '%.200s' could not be written whole: %m", file);
        if (r < 0 && f != NULL && f != stdout)
                (void) unlink(file);
        report_free(&report);
        return r;
}

int jobs_report(const struct jobs_options *options, const char *name)
{
        char own[256];
        const char *file;
        struct err err = { 0 };
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        int r = jobs_read(options, name, &views, &err);

        if (r == 0 && options->trace && options->picture != NULL)
                r = err_set(&err, -EINVAL, "--trace: a trace is no --picture: give one of the two");
        if (r < 0)
                return jobs_refuse("report", r, &err);
        (void) text_format(own, sizeof(own), "%.200s.%s", name,
                           options->trace             ? "trace.json"
                           : options->picture == NULL ? "html"
                                                      : "svg");
        file = options->file != NULL ? options->file : own;
        r = options->trace ? write_trace(&views.items[0], file, &err)
                           : jobs_write_report(&views.items[0], file, options->picture, &err);
        if (r < 0)
                return jobs_refuse("report", r, &err);
        if (strcmp(file, "-") != 0)
                (void) printf("%s\n", file);
        return EXIT_DONE;
}
