/* Core groups: what the many-core chips of Sunway are made of, a row a chip, from published descriptions.
 * Pure.
 *
 * A core group is a management core (MPE), which Linux sees, and slave cores (CPE), which it does not, each
 * with a local store of its own: an SW26010-Pro has 6 * (1 + 64) = 390 cores. What is not here: how fast a
 * transfer of so many bytes is, and what cores of a group say to each other (register communication, on the
 * Pro RMA), which nothing of ours uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct core_group {
        const char *chip;
        unsigned per_chip;               /* core groups */
        unsigned slave_cores;            /* of a group */
        size_t store_bytes;              /* local store of a slave core */
        uint64_t memory_bytes;           /* of a group */
        double memory_gbytes_per_s;      /* of a group, peak */
        double tflops_fp16, tflops_fp32; /* of a group, peak; 0 = not known */
};

/* core_group_find() - the chip that a text names, such as the model's name or all of /proc/cpuinfo, whatever
 * the case. NULL: none of them, such as an SMP server. */
const struct core_group *core_group_find(const char *text);
