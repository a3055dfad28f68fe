/* Quantity: numbers as Kubernetes writes them ("8", "1k", "8000m", "2e3", "1Ki"). Pure. */
#pragma once

#include <stdint.h>

/* quantity_parse() - the value, rounded up to a whole number (as Kubernetes' Value() does).
 * Return: 0; -EINVAL (no quantity); -ERANGE (more than 2^63 - 1, or less than its negative). */
int quantity_parse(const char *text, int64_t *ret);

/* quantity_parse_milli() - the same in thousandths (as MilliValue() does): "2500m" is 2,500, "2" 2,000. */
int quantity_parse_milli(const char *text, int64_t *ret);
