/* Plan profile: a layer profile ("node12 -- ReLU(inplace) -- forward_compute_time=0.361, ...") as the
 * gradients of plan_segments.h. In memory only. */
#pragma once

#include "planner/segments/plan_segments.h"

/* plan_profile_read() - the tensors of a layer profile: backward from the layer with the largest
 * node number, each ready when its layer's backward pass is done, counted from the start of the backward
 * pass.
 * @speedup: > 0; times are divided by it. The cost is left out. */
int plan_profile_read(const char *bytes, size_t size_bytes, double speedup, struct plan_segments_request *ret,
                      struct err *err);
