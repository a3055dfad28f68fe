/* Checkpoint file: the form of one, apart from the run that it belongs to (trainer/checkpoint.h says what is
 * in it). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CHECKPOINT_FILE_VERSION    1
#define CHECKPOINT_FILE_HEADER_MAX 256

struct checkpoint_file_facts {
        uint64_t step, seed, model;
        size_t batch, parameters;
        bool velocity;
        uint64_t shards;   /* names how shards were dealt that workers keep; 0 = they keep none */
        const char *dealt; /* trainer/data/dealings.h says how, in lines; borrowed, not ended by a NUL */
        size_t dealt_bytes;
};

/* checkpoint_file_parse() - one file's bytes.
 * @ret_values: where the float arrays begin; borrowed from `bytes`
 * Return: 0; -EPROTO: of another version; -EINVAL: damaged. */
int checkpoint_file_parse(const unsigned char *bytes, size_t size_bytes,
                          struct checkpoint_file_facts *ret_facts, const unsigned char **ret_values,
                          struct err *err);
