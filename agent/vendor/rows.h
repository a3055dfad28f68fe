/* Rows: one line a vendor registers it, see CONTRIBUTING.md. Each is `const struct vendor vendor_NAME` of its
 * file NAME.c. A vendor with unlike lines of products has a row for each. */
#pragma once

#include "agent/vendor/vendor.h"

/* clang-format off */
#define ROWS(ROW) \
        ROW(nvidia) \
        ROW(amd) \
        ROW(huawei) \
        ROW(cambricon) \
        ROW(hygon) \
        ROW(mthreads) \
        ROW(metax) \
        ROW(iluvatar) \
        ROW(enflame) \
        ROW(kunlunxin) \
        ROW(biren) \
        ROW(thead) \
        ROW(habana) \
        ROW(intel) \
        ROW(intel_npu) \
        ROW(intel_phi) \
        ROW(aws) \
        ROW(google) \
        ROW(tenstorrent) \
        ROW(rebellions) \
        ROW(furiosa) \
        ROW(graphcore) \
        ROW(qualcomm) \
        ROW(nec) \
        ROW(xilinx) \
        ROW(horizon) \
        ROW(cpu) \
        ROW(sunway) \
        ROW(unknown) /* last: it takes what nobody claimed */
/* clang-format on */

#define ROWS_DECLARE(name) extern const struct vendor vendor_##name;
ROWS(ROWS_DECLARE)
