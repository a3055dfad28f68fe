/* Export file: reads what export_run() wrote (the form is in export.h), tensor by tensor. The bytes are
 * untrusted. Pure but for the caller's memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct export_file {
        const unsigned char *bytes; /* borrowed */
        size_t size_bytes, at;
        char model[32];
        size_t tensors;
        bool int8;
};

/* export_file_open() - Return: 0 or -EINVAL. */
int export_file_open(struct export_file *r, const unsigned char *bytes, size_t size_bytes, struct err *err);

/* export_file_bytes() - the next tensor, of rows x cols 8-bit values, those left out being 0, and the scales
 * of its columns, cols of them. export_file_floats() - the same for one of floats. Return: 0 or -EINVAL. */
int export_file_bytes(struct export_file *r, size_t rows, size_t cols, int8_t *ret, float *ret_scales,
                      struct err *err);
int export_file_floats(struct export_file *r, size_t count, float *ret, struct err *err);
