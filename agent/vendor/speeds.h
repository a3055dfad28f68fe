/* Speeds: dense peak rates per device by model, from public data sheets (no sparsity). Pure.
 *
 * For scheduling weights until something is measured; not a promise. 0 = not known, or (bf16) not supported.
 */
#pragma once

#include <stddef.h>

#include "base/near.h"

struct speed {
        const char *vendor, *model; /* a model matches by the longest prefix that cuts no number in two */
        double bf16, fp16, fp32;    /* TFLOP/s */
        unsigned gib;               /* memory where neither sysfs nor the PCI id tells; 0 = not known */
};

const struct speed *speed_find(const char *vendor, const char *model); /* or NULL */

/* speed_find_model() - of a model that a person wrote, whoever makes it, whatever the case: its row's name,
 * with more behind a '-' or not, or a name of a vendor's own table ("A10G"). NULL = there is none. */
const struct speed *speed_find_model(const char *model);

#define SPEED_NEAR_MAX NEAR_NAMES

/* speed_near_models() - the names that a person may have meant: those nearest to it, few letters apart.
 * Return: how many; 0 = nothing is like it. */
size_t speed_near_models(const char *model, const char *ret[SPEED_NEAR_MAX]);
