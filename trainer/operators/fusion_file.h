/* Fusion file: a user's own rows of the table of fusion rules, from JSON.
 *
 *         {"rules": [
 *           {"operators": ["matmul", "bias", "activation"], "fused": "dense_silu", "library": "./own.so"},
 *           {"operators": ["matmul", "bias"], "fused": "none"}
 *         ]}
 *
 * The operators follow each other and are named as --explain-fusion names them. remuda_fused_dense_silu of
 * the library does the first three in one pass; the other two stay by themselves. A row replaces the
 * trainer's own with the same operators. What a library must have for a row says
 * trainer/operators/operator_library.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "trainer/operators/fusion.h"

#define FUSION_FILE_ROWS_MAX  16
#define FUSION_FILE_MAX_BYTES 65536

struct fusion_file_row {
        size_t part_count; /* 2..OP_PARTS_MAX */
        enum op parts[OP_PARTS_MAX];
        char fused[FUSION_NAME_BYTES]; /* "none", or a name of the library */
        char library[256];             /* a name for dlopen() */
};

struct fusion_file {
        size_t count;
        struct fusion_file_row rows[FUSION_FILE_ROWS_MAX];
};

/* fusion_file_never() - does the row say that its operators stay by themselves? */
bool fusion_file_never(const struct fusion_file_row *row);

/* fusion_file_parse() - @name: of the file, which errors begin with.
 * Return: 0; -EINVAL: the place, what is there and what is wanted; -ENOMEM. */
int fusion_file_parse(const char *name, const char *bytes, size_t size_bytes, struct fusion_file *ret,
                      struct err *err);
