/* IDX: the file format of MNIST and its kin (Y. LeCun), plain or gzip-compressed.
 *
 * Big-endian magic 0x00 0x00 TYPE RANK, then RANK sizes of 32 bits, then the values; here TYPE is 8 (unsigned
 * byte). The length must be exactly what the header says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define IDX_RANK_MAX  4
#define IDX_BYTES_MAX ((size_t) 1 << 34)

struct idx {
        size_t rank, sizes[IDX_RANK_MAX];
        size_t item_bytes; /* of one entry of the first dimension */
        uint8_t *values;   /* owned */
};

/* idx_read() - read PATH, or PATH.gz when there is no PATH.
 * @rank: expected number of dimensions
 * Return: 0, -ENOENT, -EINVAL (wrong magic, type, rank, size; cut short; trailing bytes), -ENOMEM, -EIO. */
int idx_read(const char *path, size_t rank, struct idx *ret, struct err *err);

/* idx_header() - the sizes of an IDX file of so many bytes in all, not compressed, from its first 4 + 4 *
 * rank. Return: 0 or -EINVAL. */
int idx_header(const uint8_t *header, uint64_t size_bytes, size_t rank, size_t *ret_sizes, struct err *err);

void idx_free(struct idx *x);
