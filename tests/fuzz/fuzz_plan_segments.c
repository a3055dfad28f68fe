/* Any bytes as the file of `plan segments`: never a crash, and no rule of thumb is better than the plan. */
#include <stddef.h>
#include <stdint.h>

#include "planner/segments/plan_segments.h"

#define TENSORS_MAX 200 /* more are slow, not different */

/* Of the end: below it times are rounded to one unit, and ends that differ by less count as equal
 * (segment_times.h). */
#define ROUNDED 1e-15

static void check(const struct plan_segments_request *request, const struct segments_plan *plan)
{
        size_t next = 0;

        for (size_t i = 0; i < plan->segment_count; i++) {
                if (plan->segments[i].first != next || plan->segments[i].last < next)
                        __builtin_trap();
                next = plan->segments[i].last + 1;
        }
        if (next != request->tensor_count || plan->segment_count > request->max_segments)
                __builtin_trap();
        for (size_t i = 0; i < SEGMENTS_BASELINE_COUNT; i++)
                if (plan->baseline_segments[i] <= request->max_segments &&
                    plan->exposed_ms - plan->baseline_exposed_ms[i] > ROUNDED * plan->end_ms)
                        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct plan_segments_request request;
        struct segments_plan plan;
        struct err err = { 0 };

        if (json != NULL && plan_segments_request_decode(json, &request, &err) == 0) {
                if (request.tensor_count <= TENSORS_MAX &&
                    plan_segments_request_answer(&request, &plan, &err) == 0) {
                        struct text out = { 0 };

                        check(&request, &plan);
                        plan_segments_answer_json(&request, &plan, &out);
                        plan_segments_answer_table(&request, &plan, &out);
                        text_free(&out);
                        segments_plan_free(&plan);
                }
                plan_segments_request_free(&request);
        }
        json_decref(json);
        return 0;
}
