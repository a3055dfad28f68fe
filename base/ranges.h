/* Ranges: the kernel's list form "0-3,8,10-11", as in cpulist and node/online. Pure. */
#pragma once

#include <stddef.h>

/* ranges_parse() - the members in ascending order of appearance.
 * @ret: filled with up to `max`; may be NULL when max is 0 (to count)
 * Return: how many members there are (can be larger than max); -EINVAL when it is no such list or holds more
 * than RANGES_MAX members. "" has none. */
#define RANGES_MAX 65536
int ranges_parse(const char *text, unsigned *ret, size_t max);
