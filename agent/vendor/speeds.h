/* Speeds: dense peak rates per device by model, from public data sheets (no sparsity). Pure.
 *
 * For scheduling weights until something is measured; not a promise. 0 = not known, or (bf16) not supported.
 */
#pragma once

struct speed {
        const char *vendor, *model; /* a model matches by the longest prefix */
        double bf16, fp16, fp32;    /* TFLOP/s */
        unsigned gib;               /* memory where neither sysfs nor the PCI id tells; 0 = not known */
};

const struct speed *speed_find(const char *vendor, const char *model); /* or NULL */

/* speed_find_model() - by the model alone, whoever makes it, whatever the case; or NULL. */
const struct speed *speed_find_model(const char *model);
