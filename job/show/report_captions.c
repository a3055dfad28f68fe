/* The workers are counted by what their shares and speeds are. */
#include "job/show/report_captions.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cli/command/duration.h"
#include "planner/speeds/chip_speed.h"

struct count {
        size_t workers, idle, of_processor;
        size_t by[CHIP_SPEED_COUNT]; /* workers with a share, by the source of their speed */
        size_t unknown;              /* ... whose plan does not say */
        double least, most;          /* of their batches */
        bool layers;
};

static size_t source_of(const struct job_view_rank *rank)
{
        const char *word =
                job_view_word(rank->speed_source != NULL ? rank->speed_source : rank->speed.source);
        size_t i = 0;

        while (i < CHIP_SPEED_COUNT && strcmp(word, chip_speed_names[i]) != 0)
                i++;
        return i;
}

static struct count count_workers(const struct job_view *view)
{
        struct count c = { .least = INFINITY };

        for (size_t i = 0; i < view->rank_count; i++) {
                const struct job_view_rank *rank = &view->ranks[i];
                size_t source = source_of(rank);

                if (strcmp(job_view_word(rank->runtime), "cpu") == 0)
                        c.of_processor++;
                if (strcmp(job_view_word(rank->role), "server") == 0)
                        continue;
                c.workers++;
                c.layers = c.layers || json_is_array(rank->layers);
                if (!(rank->batch > 0)) {
                        c.idle++;
                        continue;
                }
                if (source < CHIP_SPEED_COUNT)
                        c.by[source]++;
                else
                        c.unknown++;
                c.least = fmin(c.least, rank->batch);
                c.most = fmax(c.most, rank->batch);
        }
        return c;
}

/* "measured of 2, assumed of 1" */
static void say_sources(const struct count *c, struct text *out)
{
        static const char *const words[] = { [CHIP_SPEED_ASSUMED] = "assumed",
                                             [CHIP_SPEED_TABLE] = "from the table of device models",
                                             [CHIP_SPEED_KERNEL] = "by a kernel's measurement",
                                             [CHIP_SPEED_MEASURED] = "measured" };
        size_t kinds = 0, said = 0;

        for (size_t i = 0; i < CHIP_SPEED_COUNT; i++)
                kinds += c->by[i] > 0;
        for (size_t i = CHIP_SPEED_COUNT; i-- > 0;) {
                if (c->by[i] == 0)
                        continue;
                text_printf(out, "%s%s", said++ > 0 ? ", " : "", words[i]);
                if (kinds > 1)
                        text_printf(out, " of %zu", c->by[i]);
        }
}

static void say_batches(const struct job_view *view, const struct count *c, struct text *out)
{
        size_t with = c->workers - c->idle;
        bool equal = c->most - c->least <= 1;

        if (with == 0)
                text_append(out, "No shares are known.");
        else if (with == 1)
                text_append(out, "One worker has every batch.");
        else if (strcmp(job_view_word(view->shards), "equal") == 0)
                text_append(out, "Each batch is cut into equal shares, as the job asks.");
        else if (c->unknown == with)
                text_append(out,
                            equal ? "Each batch is cut into equal shares."
                                  : "Each batch is cut into unequal shares; by what, the plan does not say.");
        else if (c->by[CHIP_SPEED_ASSUMED] == with)
                text_append(out,
                            equal ? "Each batch is cut into equal shares: nothing is known of the ranks' "
                                    "speeds, which are assumed to be alike."
                                  : "Each batch is cut by speeds that are assumed, nothing being known.");
        else {
                text_append(out,
                            equal ? "Each batch is cut into equal shares, for the ranks are equally fast ("
                                  : "Each batch is cut by the ranks' speeds (");
                say_sources(c, out);
                text_append(out, equal ? ")." : "), so that all are done at the same time.");
        }
        if (c->idle > 0 && with > 0)
                text_printf(out, " %zu %s no share.", c->idle, c->idle == 1 ? "worker has" : "workers have");
}

void report_captions_shares(const struct job_view *view, struct text *out)
{
        struct count c = count_workers(view);

        if (c.layers || strcmp(job_view_word(view->strategy), "split") == 0)
                text_append(out,
                            "Each rank has layers of the model, and every batch goes through all of them.");
        else
                say_batches(view, &c, out);
        if (view->cores > 0 && (double) c.of_processor > view->cores)
                text_printf(out,
                            " %zu ranks share %.0f %s and take turns on %s: they are slower together than "
                            "each is "
                            "alone.",
                            c.of_processor, view->cores, view->cores > 1 ? "processors" : "processor",
                            view->cores > 1 ? "them" : "it");
}

const char *report_captions_rate(const struct job_view *view)
{
        return job_view_ended(view) ? "mean while its ranks ran" : "the last half minute";
}

struct report_captions_columns report_captions_columns(const struct job_view *view)
{
        struct report_captions_columns has = { .samples_per_s = false };

        for (size_t i = 0; i < view->rank_count; i++) {
                has.samples_per_s = has.samples_per_s || isfinite(view->ranks[i].samples_per_s);
                has.steps_behind =
                        has.steps_behind || (!job_view_ended(view) && isfinite(view->ranks[i].steps_behind));
        }
        return has;
}

void report_captions_left(const struct job_view *view, struct text *out)
{
        char a[DURATION_BYTES], b[DURATION_BYTES];

        if (job_view_ended(view) || !isfinite(view->seconds_left))
                return;
        text_printf(out, "%s left", duration_format(a, view->seconds_left));
        if (isfinite(view->seconds_left_least) && isfinite(view->seconds_left_most))
                text_printf(out, ", between %s and %s", duration_format(a, view->seconds_left_least),
                            duration_format(b, view->seconds_left_most));
}

void report_captions_staleness(const struct job_view *view, struct text *out)
{
        if (!job_view_ended(view) && isfinite(view->steps_behind_mean) && isfinite(view->steps_behind_max))
                text_printf(out, "workers are %.3g steps behind the first in the mean, %.0f at most",
                            view->steps_behind_mean, view->steps_behind_max);
}
