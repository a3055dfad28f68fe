/* Job left: the rates of its windows, and two of them. */
#include "job/plan/progress/job_left.h"

#include <math.h>

#include "base/median.h"

/* Return: how many; rates[] has room for all points. */
static size_t read_windows(const struct job_progress_point *points, size_t count, double rates[])
{
        const struct job_progress_point *from = NULL;
        size_t windows = 0;

        for (size_t i = 0; i < count; i++) {
                const struct job_progress_point *to = &points[i];

                if (to->world != points[count - 1].world)
                        continue;
                if (from != NULL && to->samples > from->samples && to->seconds > from->seconds)
                        rates[windows++] =
                                (double) (to->samples - from->samples) / (to->seconds - from->seconds);
                if (from == NULL || to->samples != from->samples)
                        from = to;
        }
        return windows;
}

bool job_left_spread(const struct job_progress_point *points, size_t count, double samples_left,
                     double seconds_left, double *ret_least_sec, double *ret_most_sec)
{
        double rates[JOB_PROGRESS_POINTS_MAX];
        size_t first = count > JOB_PROGRESS_POINTS_MAX ? count - JOB_PROGRESS_POINTS_MAX : 0,
               windows = read_windows(points + first, count - first, rates);

        if (windows < JOB_LEFT_WINDOWS || !(samples_left > 0) || !(seconds_left > 0))
                return false;
        *ret_least_sec = fmin(seconds_left, samples_left / median_percentile(rates, windows, 0.9));
        *ret_most_sec = fmax(seconds_left, samples_left / median_percentile(rates, windows, 0.1));
        return true;
}
