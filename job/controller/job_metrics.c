/* Job metrics: a table of families, each asked of every job that runs. */
#include "job/controller/job_metrics.h"

#include <math.h>

#include "base/metrics.h"
#include "job/controller/ages.h"
#include "job/controller/controller_internal.h"

struct look {
        const struct record *record;
        uint64_t monotonic_usec, realtime_usec;
};

static double samples_per_s(const struct look *look)
{
        double samples, step;

        return job_rate_of(&look->record->rate, look->monotonic_usec, &samples, &step) ? samples : NAN;
}

static double step_seconds(const struct look *look)
{
        double samples, step;

        return job_rate_of(&look->record->rate, look->monotonic_usec, &samples, &step) ? step : NAN;
}

static struct ages ages(const struct look *look)
{
        return ages_of(&look->record->job, &look->record->state, look->realtime_usec);
}

static double report_age_seconds(const struct look *look)
{
        return (double) ages(look).silent_usec / 1e6;
}

static double checkpoint_age_seconds(const struct look *look)
{
        uint64_t usec = ages(look).checkpoint_usec;

        return usec > 0 ? (double) usec / 1e6 : NAN;
}

static double progress_ratio(const struct look *look)
{
        const struct job_progress *p = &look->record->state.progress;

        return p->samples_total > 0 ? (double) p->samples / (double) p->samples_total : NAN;
}

static double loss(const struct look *look)
{
        return look->record->state.progress.loss;
}

static double world_restarts(const struct look *look)
{
        return (double) look->record->state.restarts;
}

static double stragglers(const struct look *look)
{
        return (double) look->record->stragglers;
}

static const struct {
        const char *name, *help;
        double (*of)(const struct look *look); /* not finite: not said */
} families[] = {
        { "remuda_job_samples_per_second", "Samples that the job trains on a second, over half a minute",
          samples_per_s },
        { "remuda_job_step_seconds", "How long a step of the job takes, over half a minute", step_seconds },
        { "remuda_job_progress_ratio", "How much of its samples the job has trained on", progress_ratio },
        { "remuda_job_loss", "The last loss that the job's ranks told", loss },
        { "remuda_job_report_age_seconds",
          "How long ago the job's manager was last heard, or the job began to run", report_age_seconds },
        { "remuda_job_checkpoint_age_seconds",
          "How old the last checkpoint is that outlives the job's pods, as far as its progress tells",
          checkpoint_age_seconds },
        { "remuda_job_world_restarts", "Faults that the job was repaired after", world_restarts },
        { "remuda_job_stragglers", "Times that a rank of the job was named slow since this controller began",
          stragglers },
};

static bool is_shown(const struct record *record)
{
        return record->uid[0] != '\0' && !record->gone && record->state.phase == JOB_RUNNING;
}

static void append_family(const struct controller *c, struct text *page, size_t family)
{
        struct look look = { .monotonic_usec = controller_monotonic(c), .realtime_usec = controller_now(c) };
        size_t shown = 0;

        metrics_family(page, families[family].name, METRIC_GAUGE, families[family].help);
        for (const struct name_map_entry *e = name_map_first(&c->records);
             e != NULL && shown < JOB_METRICS_MAX; e = name_map_next(&c->records, e)) {
                double value;

                look.record = (const struct record *) e;
                if (!is_shown(look.record))
                        continue;
                shown++;
                value = families[family].of(&look);
                if (isfinite(value))
                        metrics_sample(page, families[family].name,
                                       METRIC_LABELS({ "namespace", look.record->namespace_ },
                                                     { "job", look.record->name }),
                                       value);
        }
}

void job_metrics_append(const struct controller *c, struct text *page)
{
        size_t running = 0;

        if (!c->leading) /* a status is old: who leads knows better, and each job has one series */
                return;
        for (const struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e))
                running += is_shown((const struct record *) e);
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
                append_family(c, page, i);
        metrics_gauge(page, "remuda_job_series_left_out",
                      "Running jobs that have no series of their own here",
                      running > JOB_METRICS_MAX ? (double) (running - JOB_METRICS_MAX) : 0);
}
