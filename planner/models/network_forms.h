/* Network forms: a network on given devices, written as the files that the other planners read. Every one
 * says that it is an estimate, and by which assumptions. In memory only. */
#pragma once

#include "base/text.h"
#include "planner/models/network_estimate.h"

struct network_forms_request {
        const struct network *network;
        const struct network_estimate_device *devices;
        size_t device_count;
        struct network_estimate_assumptions assumptions;
        uint64_t batch; /* global, in samples */
        uint64_t microbatches;
        double link_gb_per_s;              /* between stages */
        double alpha_ms, beta_ms_per_byte; /* of an allreduce */
        bool has_network;
};

/* For `plan split`: the blocks as layers, one microbatch on each kind of device. */
int network_forms_split(const struct network_forms_request *request, struct text *out, struct err *err);

/* For `plan segments`: the gradients in backward order on the first kind of device, its samples of one step.
 */
int network_forms_segments(const struct network_forms_request *request, struct text *out, struct err *err);

/* For `plan shards`: every device as a worker with its samples a second, and with what its memory allows.
 * Return: 0; -EINVAL (a device cannot hold the model with one sample); -E2BIG. */
int network_forms_shards(const struct network_forms_request *request, struct text *out, struct err *err);

/* What the model would do: totals, speeds, the exact shares of a batch and the step they make; json or table.
 */
int network_forms_answer(const struct network_forms_request *request, bool json, struct text *out,
                         struct err *err);
