/* Totals in memory; logs, timeline and progress lines in files that a run that goes on cuts back. */
#include "trainer/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "trainer/json_line.h"

#define STEP_FIELD      1 /* of `epoch step rank sample` */
#define ALIVE_USEC      5000000
#define SAMPLE_LINE_MAX 80

static const char *const names[RECORD_ACTIVITIES] = { "load",   "forward", "backward", "exchange",
                                                      "update", "wait",    "measure" };

uint64_t record_now(void)
{
        return clock_monotonic_usec();
}

int record_cut_log(FILE *f, size_t field, uint64_t end)
{
        char line[128];
        long kept = 0;

        while (fgets(line, sizeof(line), f) != NULL && strchr(line, '\n') != NULL) {
                char *at = line, *before = NULL;
                unsigned long long number = 0;

                for (size_t i = 0; i <= field && at != before; i++) {
                        before = at;
                        number = strtoull(before, &at, 10);
                }
                if (at == before || number >= end)
                        break;
                kept = ftell(f);
        }
        return fseek(f, kept, SEEK_SET) < 0 || ftruncate(fileno(f), kept) < 0 ? -errno : 0;
}

static int open_file(const char *option, const char *name, int rank, uint64_t first_step, FILE **ret,
                     struct err *err)
{
        char path[4096];

        if (!text_format(path, sizeof(path), "%s.%d", name, rank))
                return err_set(err, -EINVAL, "%s: the file's name is too long", option);
        *ret = first_step > 0 ? fopen(path, "r+e") : NULL;
        if (*ret != NULL && record_cut_log(*ret, STEP_FIELD, first_step) < 0)
                return err_set(err, -EIO, "%s: file '%s' cannot be cut back: %m", option, path);
        if (*ret == NULL)
                *ret = fopen(path, "we");
        return *ret != NULL ? 0 : err_set(err, -EINVAL, "%s: file '%s': %m", option, path);
}

static int open_progress(struct record *r, const char *where, struct err *err)
{
        uint64_t fd;

        if (text_parse_uint64(where, &fd) == 0) {
                if (fd > 1 << 20 || fcntl((int) fd, F_GETFD) < 0)
                        return err_set(err, -EINVAL, "--progress: descriptor %s is not open", where);
                r->progress = (int) fd;
                return 0;
        }
        r->progress = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        r->progress_owned = true;
        return r->progress >= 0 ? 0 : err_set(err, -EINVAL, "--progress: file '%s': %m", where);
}

int record_cut_others(const struct train_options *o, int size, uint64_t first_step, struct err *err)
{
        char path[4096];

        for (int rank = size; o->sample_log != NULL; rank++) {
                if (!text_format(path, sizeof(path), "%s.%d", o->sample_log, rank))
                        return err_set(err, -EINVAL, "--sample-log: the file's name is too long");
                CLEANUP(fclose_p) FILE *f = fopen(path, "r+e");
                if (f == NULL)
                        break;
                if (record_cut_log(f, STEP_FIELD, first_step) < 0)
                        return err_set(err, -EINVAL, "--sample-log: file '%s' cannot be cut back: %m", path);
        }
        return 0;
}

int record_open(struct record *r, const struct train_options *o, int rank, uint64_t first_step,
                struct err *err)
{
        int result = 0;

        *r = (struct record){ .rank = rank, .progress = -1, .start_usec = record_now() };
        if (o->sample_log != NULL)
                result = open_file("--sample-log", o->sample_log, rank, first_step, &r->samples, err);
        if (result == 0 && o->timeline != NULL)
                result = open_file("--timeline", o->timeline, rank, 0, &r->timeline, err);
        if (result == 0 && r->timeline != NULL)
                (void) fputs("[\n", r->timeline);
        if (result == 0 && o->progress != NULL)
                result = open_progress(r, o->progress, err);
        return result;
}

static int close_file(FILE **f, const char *what, struct err *err)
{
        bool failed = *f != NULL && (ferror(*f) != 0 || fflush(*f) != 0);

        if (*f != NULL && fclose(*f) != 0)
                failed = true;
        *f = NULL;
        return failed ? err_set(err, -EIO, "%s: not written whole: %m", what) : 0;
}

int record_close(struct record *r, struct err *err)
{
        int samples = close_file(&r->samples, "--sample-log", err);
        int timeline = close_file(&r->timeline, "--timeline", err);

        if (r->progress_owned && r->progress >= 0)
                (void) close(r->progress);
        r->progress = -1;
        return samples < 0 ? samples : timeline;
}

void record_flush(struct record *r)
{
        if (r->samples != NULL)
                (void) fflush(r->samples);
}

uint64_t record_done(struct record *r, enum record_activity what, uint64_t step, uint64_t begin_usec)
{
        uint64_t now = record_now();

        r->total_usec[what] += now - begin_usec;
        if (r->timeline != NULL) {
                struct json_line line = { 0 };

                json_line_open(&line, NULL, '{');
                json_line_text(&line, "name", names[what]);
                json_line_text(&line, "ph", "X");
                json_line_uint(&line, "ts", begin_usec - r->start_usec);
                json_line_uint(&line, "dur", now - begin_usec);
                json_line_uint(&line, "pid", 0);
                json_line_uint(&line, "tid", (uint64_t) r->rank);
                json_line_open(&line, "args", '{');
                json_line_uint(&line, "step", step);
                json_line_close(&line, '}');
                json_line_close(&line, '}');
                text_append_char(&line.text, ',');
                json_line_print(&line, r->timeline);
        }
        return now;
}

void record_paused(struct record *r, enum record_activity what, uint64_t step, uint64_t begin_usec)
{
        r->paused_usec += record_done(r, what, step, begin_usec) - begin_usec;
}

double record_training_seconds(const struct record *r)
{
        return (double) (record_now() - r->start_usec - r->paused_usec) / 1e6;
}

/* Return: where the decimals of n end. */
static char *put_decimal(char *to, uint32_t n)
{
        char digits[10];
        size_t count = 0;

        do
                digits[count++] = (char) ('0' + n % 10);
        while ((n /= 10) > 0);
        while (count > 0)
                *to++ = digits[--count];
        return to;
}

/* By hand: a line a sample, formatted by the library, is two percent of a step. */
void record_samples(struct record *r, uint64_t epoch, size_t step, const uint32_t *ids, size_t count)
{
        char head[SAMPLE_LINE_MAX], block[SAMPLE_LINE_MAX * 64], *at = block;
        size_t length;

        r->sample_count += count;
        if (r->samples == NULL ||
            !text_format(head, sizeof(head), "%llu %zu %d ", (unsigned long long) epoch, step, r->rank))
                return;
        length = strlen(head);
        for (size_t i = 0; i < count; i++) {
                memcpy(at, head, length);
                at = put_decimal(at + length, ids[i]);
                *at++ = '\n';
                if (at - block <= (ptrdiff_t) (sizeof(block) - SAMPLE_LINE_MAX) && i + 1 < count)
                        continue;
                (void) fwrite(block, 1, (size_t) (at - block), r->samples);
                at = block;
        }
}

static struct json_line begin_line(const struct record *r)
{
        struct json_line line = { 0 };

        json_line_open(&line, NULL, '{');
        json_line_uint(&line, "rank", (uint64_t) r->rank);
        json_line_uint(&line, "step", r->step);
        json_line_uint(&line, "epoch", r->epoch);
        json_line_uint(&line, "samples", r->sample_count);
        if (r->cuts != NULL)
                json_line_uint(&line, "shares_step", sampler_since(r->cuts, r->step));
        else
                json_line_real(&line, "shares_step", NAN, 0); /* null: they stay */
        return line;
}

static void end_line(struct record *r, struct json_line *line)
{
        const struct text *t = &line->text;

        json_line_close(line, '}');
        text_append_char(&line->text, '\n');
        /* a reader that went away must not end the training */
        if (!t->failed && r->progress >= 0 && write(r->progress, t->data, t->size_bytes) < 0 &&
            errno == EPIPE)
                r->progress = -1;
        r->said_usec = record_now();
        json_line_free(line);
}

void record_alive(struct record *r)
{
        struct json_line line;

        if (r->progress < 0 || record_now() - r->said_usec < ALIVE_USEC)
                return;
        line = begin_line(r);
        json_line_bool(&line, "evaluating", true);
        end_line(r, &line);
}

void record_progress(struct record *r, uint64_t epoch, uint64_t step, double loss)
{
        struct json_line line;
        uint64_t busy =
                r->total_usec[RECORD_FORWARD] + r->total_usec[RECORD_BACKWARD] + r->total_usec[RECORD_UPDATE];

        r->epoch = epoch;
        r->step = step;
        if (r->progress < 0)
                return;
        line = begin_line(r);
        json_line_real(&line, "loss", loss, 6);
        if (r->epoch_samples > 0)
                json_line_uint(&line, "epoch_samples", r->epoch_samples);
        json_line_real(&line, "seconds", (double) (record_now() - r->start_usec) / 1e6, 6);
        json_line_real(&line, "busy_seconds", (double) busy / 1e6, 6);
        json_line_real(&line, "samples_per_s",
                       busy > 0 ? (double) r->sample_count * 1e6 / (double) busy : 0.0, 1);
        if (r->passes)
                json_line_uint(&line, "passed_bytes", r->passed_bytes);
        end_line(r, &line);
}

void record_accuracy(struct record *r, uint64_t at_usec, double accuracy, double loss)
{
        struct json_line line;

        if (r->progress < 0)
                return;
        line = begin_line(r);
        json_line_real(&line, "seconds", (double) (at_usec - r->start_usec) / 1e6, 6);
        json_line_real(&line, "accuracy", accuracy, 6);
        json_line_real(&line, "loss", loss, 6);
        end_line(r, &line);
}
