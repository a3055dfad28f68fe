/* Any bytes as the file of `plan reshard`: never a crash; used and rest together are the epoch's samples. */
#include <stddef.h>
#include <stdint.h>

#include "planner/shards/plan_reshard.h"

#define BATCH_MAX 100000 /* larger ones are slow, not different */

static void check(const struct plan_reshard_request *request, const struct reshard_plan *plan)
{
        uint64_t held = 0, divided = 0, batch = 0;

        for (size_t i = 0; i < plan->count; i++) {
                held += sample_ranges_total(&request->workers[i].ranges);
                divided += sample_ranges_total(&plan->shares[i].used) +
                           sample_ranges_total(&plan->shares[i].rest);
                batch += plan->shares[i].batch;
        }
        if (held != divided || batch != request->reshard.batch)
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct plan_reshard_request request;
        struct reshard_plan plan;
        struct err err = { 0 };

        if (json != NULL && plan_reshard_request_decode(json, &request, &err) == 0) {
                if (request.reshard.batch <= BATCH_MAX &&
                    reshard_plan_make(&request.reshard, &plan, &err) == 0) {
                        struct text out = { 0 };

                        check(&request, &plan);
                        plan_reshard_answer_json(&request, &plan, &out);
                        plan_reshard_answer_table(&request, &plan, &out);
                        text_free(&out);
                        reshard_plan_free(&plan);
                }
                plan_reshard_request_free(&request);
        }
        json_decref(json);
        return 0;
}
