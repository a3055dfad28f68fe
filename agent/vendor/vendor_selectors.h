/* Vendor selectors: by what attributes a vendor's own DRA driver tells its devices apart, for selectors that
 * were written for it. A part of the vendor's row, as pure data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/vendor/vendor.h"

/* What an attribute of the vendor's own DRA driver says of a device; the last two are versions. */
enum vendor_selectors_says {
        VENDOR_SELECTORS_NOTHING, /* ends a list */
        VENDOR_SELECTORS_TYPE,
        VENDOR_SELECTORS_ID,
        VENDOR_SELECTORS_PRODUCT,
        VENDOR_SELECTORS_PROFILE,
        VENDOR_SELECTORS_ARCHITECTURE,
        VENDOR_SELECTORS_CAPABILITY,
        VENDOR_SELECTORS_DRIVER_VERSION
};

struct vendor_selectors_attribute {
        const char *name;
        enum vendor_selectors_says what;
};

struct vendor_selectors_generation {
        const char *model; /* how a model's name begins; NULL ends the table */
        const char *architecture, *capability;
};

#define VENDOR_SELECTORS_MAX 8

/* Of the first driver of `claimed`. */
struct vendor_selectors {
        struct vendor_selectors_attribute attributes[VENDOR_SELECTORS_MAX];
        bool memory;      /* capacity `memory` in its domain, too */
        const char *part; /* what `type` says of a partition */
        const char *product_under,
                *product_file;   /* before and behind its PCI address: where its product is named */
        const char *product_key; /* ... in the line that begins so; NULL = it is all of the file */
        char product_space;      /* what stands for a space in it */
        const struct vendor_selectors_generation *generations; /* NULL = none */
};

/* vendor_selectors_of() - the first row of this name whose selectors are known, or NULL. Return of
 * vendor_selectors_count(): how many attributes and capacities they are. */
const struct vendor *vendor_selectors_of(const char *name);
size_t vendor_selectors_count(const struct vendor *vendor);

/* vendor_selectors_generation_of() - of a model of the row; NULL = not known. */
const struct vendor_selectors_generation *vendor_selectors_generation_of(const struct vendor *vendor,
                                                                         const char *model);
