/* State file: the faults, and the devices' numbers, that must not be forgotten by a restart. JSON, replaced
 * by rename after a sync, so that it is whole or not there; one that cannot be read whole is discarded.
 *
 * Of health only what is not plainly healthy is written. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/health/judge.h"
#include "agent/inventory/numbers.h"
#include "base/err.h"

#define STATE_FILE_MAX_BYTES ((size_t) 4 << 20)

struct state_file_device {
        char id[DEVICE_ID_BYTES];
        struct health health;
        uint64_t since_usec;
};

struct state_file {
        unsigned version;
        char boot_id[40];
        uint64_t generation;
        uint64_t kernel_sequence;
        struct state_file_device *devices;
        size_t device_count;
        struct numbers numbers;
};

/* state_file_load() - Return: 0; -ENOENT; -EBADMSG and a sentence (the file is of no use). @ret is empty
 * then. */
int state_file_load(const char *path, struct state_file *ret, struct err *err);
void state_file_free(struct state_file *state); /* accepts NULL */
const struct state_file_device *state_file_find(const struct state_file *state, const char *id);

/* What is known besides the health of devices. */
struct state_file_rest {
        const char *boot_id;
        uint64_t generation, kernel_sequence;
        const struct numbers *numbers;
        bool always; /* make a file even if all is as a look that knows nothing of before would find it */
};

/* state_file_save() - of every record whose past matters. */
int state_file_save(const char *path, const struct judge *judge, const struct state_file_rest *rest,
                    struct err *err);

/* state_file_hash() - changes exactly when the file should be written again (times apart). */
uint64_t state_file_hash(const struct judge *judge, const struct numbers *numbers);
