#include "agent/vendor/vendor.h"

#include <stddef.h>

extern const struct vendor vendor_nvidia, vendor_amd, vendor_huawei, vendor_cambricon, vendor_hygon,
        vendor_mthreads, vendor_metax, vendor_iluvatar, vendor_enflame, vendor_kunlunxin, vendor_biren,
        vendor_thead, vendor_habana, vendor_intel, vendor_intel_npu, vendor_intel_phi, vendor_aws,
        vendor_google, vendor_tenstorrent, vendor_rebellions, vendor_furiosa, vendor_graphcore,
        vendor_qualcomm, vendor_nec, vendor_xilinx, vendor_horizon, vendor_unknown;

const struct vendor *const vendors[] = {
        &vendor_nvidia,
        &vendor_amd,
        &vendor_huawei,
        &vendor_cambricon,
        &vendor_hygon,
        &vendor_mthreads,
        &vendor_metax,
        &vendor_iluvatar,
        &vendor_enflame,
        &vendor_kunlunxin,
        &vendor_biren,
        &vendor_thead,
        &vendor_habana,
        &vendor_intel,
        &vendor_intel_npu,
        &vendor_intel_phi,
        &vendor_aws,
        &vendor_google,
        &vendor_tenstorrent,
        &vendor_rebellions,
        &vendor_furiosa,
        &vendor_graphcore,
        &vendor_qualcomm,
        &vendor_nec,
        &vendor_xilinx,
        &vendor_horizon,
        &vendor_unknown, /* last: it takes what nobody claimed */
        NULL,
};
