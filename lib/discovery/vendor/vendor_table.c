#include "discovery/vendor.h"

#include <stddef.h>

extern const struct vendor vendor_nvidia, vendor_amd, vendor_huawei, vendor_unknown;

const struct vendor *const vendors[] = {
        &vendor_nvidia, &vendor_amd, &vendor_huawei, &vendor_unknown, /* last: it takes what nobody claimed */
        NULL,
};
