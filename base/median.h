/* Median: the value in the middle, or the mean of the two that are. Pure. */
#pragma once

#include <stddef.h>

/* median() - puts the values in order. Return: 0 of none. */
double median(double *values, size_t count);
