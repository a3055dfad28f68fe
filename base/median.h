/* Median: the value in the middle, or the mean of the two that are; and percentiles, by nearest rank. Pure.
 */
#pragma once

#include <stddef.h>

/* median() - puts the values in order. Return: 0 of none. */
double median(double *values, size_t count);

/* median_percentile() - puts the values in order. Return: the least one that a share of all of them does not
 * exceed: of ten, with 0.9, the ninth. 0 of none. @share: > 0, 1 at most */
double median_percentile(double *values, size_t count, double share);
