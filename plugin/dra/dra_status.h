/* DRA status: what the driver has done since it was opened, for whoever shows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"

/* Why a claim was not prepared. */
enum dra_status_refusal {
        DRA_STATUS_HELD,  /* somebody else has its device, or nobody knows yet */
        DRA_STATUS_CLAIM, /* what it says cannot be done on this node */
        DRA_STATUS_STORE, /* it is not there, or could not be read */
        DRA_STATUS_FILES, /* the state or the CDI spec could not be written */
        DRA_STATUS_REFUSALS
};

struct dra_status {
        bool registered; /* the kubelet has said so, of the sockets that are there, and is not gone */
        uint64_t prepared_total, unprepared_total; /* claims, answered from the state included */
        uint64_t refused_total[DRA_STATUS_REFUSALS];
        size_t claims;                                  /* that are prepared now */
        uint64_t slice_writes_total, slice_drops_total; /* that were asked of the store */
        uint64_t slice_failures_total;
        struct histogram prepare; /* seconds of a NodePrepareResources call, the store's included */
};
