/* Timestamp: microseconds since 1970 (UTC) <-> RFC 3339 text, as the Kubernetes API writes it. Pure. */
#pragma once

#include <stdint.h>

#define TIMESTAMP_BYTES 32

/* timestamp_format() - "2026-11-21T10:00:00Z", with ".123456" when there is a fraction; "" for 0 and beyond
 * the year 9999. */
const char *timestamp_format(uint64_t usec, char text[TIMESTAMP_BYTES]);

/* timestamp_parse() - the same back; offsets ("+01:00") are understood; "" is 0. Return: 0 or -EINVAL. */
int timestamp_parse(const char *text, uint64_t *ret_usec);
