/* Sorts. */
#include "base/median.h"

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
