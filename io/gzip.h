/* Gzip: bytes as one gzip member (RFC 1952), without a name and a time in its head. Pure but for the heap. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* gzip_append() - Return: 0 or -ENOMEM. */
int gzip_append(struct text *out, const void *bytes, size_t size_bytes, struct err *err);
