/* Plan segments: the files of `remuda plan segments`, in memory.
 *
 * In:  {"tensors": [{"name", "bytes", "ready_ms"}], "max_segments", and one of "alpha_ms" with
 *       "beta_ms_per_byte", "levels": [{"alpha_ms", "beta_ms_per_byte"}, ...], "cost": [[bytes, ms], ...]}
 *      or a layer profile in the text form of PipeDream's profiler.
 * Out: {"exposed_ms", "end_ms", "segments": [{"first", "last", "bytes", "start_ms", "end_ms"}], "baselines":
 *       {"one", "per_tensor", "ddp_25mb", "horovod_64mb", "ascend_9654"}, "hccl_indices"}. remuda-plan(1).
 *
 * Pure. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "planner/segments/segments.h"

#define SEGMENTS_DEFAULT_MAX 8

struct plan_segments_request {
        struct segment_tensor *tensors; /* their names are owned */
        size_t tensor_count;
        struct segment_level *levels;
        size_t level_count;
        struct segment_point *points;
        size_t point_count;
        size_t max_segments;
        bool has_network; /* the cost came from --network */
        bool estimate;    /* ... and was not measured, but worked out from other sizes of the network */
};

/* plan_segments_request_decode() - Return: 0, and a request for plan_segments_request_free(); -EBADMSG,
 * -ENOMEM. */
int plan_segments_request_decode(const json_t *json, struct plan_segments_request *ret, struct err *err);

/* plan_segments_request_set_network() - the cost from "10gbe:P", "56gib:P" or "ALPHA_MS,BETA_MS_PER_BYTE". */
int plan_segments_request_set_network(struct plan_segments_request *request, const char *network,
                                      struct err *err);

void plan_segments_request_free(struct plan_segments_request *request);

int plan_segments_request_answer(const struct plan_segments_request *request, struct segments_plan *ret,
                                 struct err *err);
void plan_segments_answer_json(const struct plan_segments_request *request, const struct segments_plan *plan,
                               struct text *out);
void plan_segments_answer_table(const struct plan_segments_request *request, const struct segments_plan *plan,
                                struct text *out);
