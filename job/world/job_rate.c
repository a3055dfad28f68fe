/* Job rate: points of the last half minute, the oldest against the newest. */
#include "job/world/job_rate.h"

#include <math.h>
#include <string.h>

#define APART_USEC (JOB_RATE_USEC / (JOB_RATE_POINTS / 2))

static void drop(struct job_rate *rate, size_t n)
{
        rate->count -= n;
        memmove(rate->points, rate->points + n, rate->count * sizeof(rate->points[0]));
}

void job_rate_add(struct job_rate *rate, struct job_rate_point point)
{
        struct job_rate_point *last = rate->count > 0 ? &rate->points[rate->count - 1] : NULL;
        size_t old = 0;

        if (last != NULL &&
            (point.samples < last->samples || point.steps < last->steps || point.usec < last->usec))
                rate->count = 0; /* begun anew, from a checkpoint or from nothing */
        while (old + 1 < rate->count && rate->points[old + 1].usec + JOB_RATE_USEC <= point.usec)
                old++; /* the one at the window's edge stays: the window is at least as long as it says */
        drop(rate, old);
        if (rate->count > 1 && point.usec - rate->points[rate->count - 2].usec < APART_USEC)
                rate->count--;
        if (rate->count == JOB_RATE_POINTS)
                drop(rate, 1);
        rate->points[rate->count++] = point;
}

double job_rate_seconds(const struct job_rate *rate)
{
        return rate->count < 2 ? 0
                               : (double) (rate->points[rate->count - 1].usec - rate->points[0].usec) / 1e6;
}

bool job_rate_of(const struct job_rate *rate, uint64_t now_usec, double *ret_samples_per_s,
                 double *ret_step_seconds)
{
        const struct job_rate_point *first = &rate->points[0], *last;
        double seconds = job_rate_seconds(rate);

        if (rate->count < 2)
                return false;
        last = &rate->points[rate->count - 1];
        if (now_usec > last->usec + JOB_RATE_USEC || last->usec == first->usec)
                return false;
        *ret_samples_per_s = (double) (last->samples - first->samples) / seconds;
        *ret_step_seconds =
                last->steps > first->steps ? seconds / (double) (last->steps - first->steps) : NAN;
        return true;
}
