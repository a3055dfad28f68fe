/* Staleness: the sum, the most and the least of the workers' steps say it all. */
#include "job/world/staleness.h"

#include <math.h>
#include <string.h>

#include "job/spec/job.h"

bool staleness_is_told(const char *strategy)
{
        return strcmp(strategy, job_strategy_names[JOB_STRATEGY_PS_ASYNC]) == 0 ||
               strcmp(strategy, job_strategy_names[JOB_STRATEGY_PS_SSP]) == 0;
}

bool staleness_counts(uint64_t steps, uint64_t samples)
{
        return steps > 0 || samples > 0;
}

void staleness_add(struct staleness *s, uint64_t steps)
{
        s->most = s->workers == 0 || steps > s->most ? steps : s->most;
        s->least = s->workers == 0 || steps < s->least ? steps : s->least;
        s->sum += (double) steps;
        s->workers++;
}

uint64_t staleness_behind(const struct staleness *s, uint64_t steps)
{
        return steps < s->most ? s->most - steps : 0;
}

uint64_t staleness_max(const struct staleness *s)
{
        return s->most - s->least;
}

double staleness_mean(const struct staleness *s)
{
        double mean = s->workers == 0 ? 0 : (double) s->most - s->sum / (double) s->workers;

        return round(100 * mean) / 100;
}
