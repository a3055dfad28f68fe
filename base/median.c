/* Sorts. */
#include "base/median.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

double median(double *values, size_t count)
{
        if (count == 0)
                return 0;
        qsort(values, count, sizeof(*values), compare);
        return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double median_percentile(double *values, size_t count, double share)
{
        size_t at = (size_t) ceil(share * (double) count);

        if (count == 0)
                return 0;
        qsort(values, count, sizeof(*values), compare);
        return values[(at > 0 && at <= count ? at : 1) - 1];
}
