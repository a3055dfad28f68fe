/* Any bytes as the file of `plan shards`: never a crash, and a plan that comes out keeps what was asked. */
#include <stddef.h>
#include <stdint.h>

#include "planner/shards/plan_shards.h"
#include "planner/shards/plan_shards_text.h"

#define WORK_MAX 20000 /* workers x batch: larger ones are slow, not different */

static void check(const struct plan_shards_request *request, const struct plan_shards_answer *answer)
{
        uint64_t total = 0;

        for (size_t i = 0; i < request->worker_count; i++) {
                const struct shard_worker *worker = &request->workers[i];
                uint64_t batch = answer->shards[i].batch;

                total += batch;
                if (batch > 0 && (batch < worker->min || (worker->has_max && batch > worker->max) ||
                                  (worker->multiple > 1 && batch % worker->multiple != 0)))
                        __builtin_trap();
        }
        if (total != request->batch || answer->plan.used == 0 || answer->plan.ideal_ms > answer->plan.step_ms)
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct plan_shards_request request;
        struct err err = { 0 };

        if (json != NULL && plan_shards_request_decode(json, NULL, NULL, &request, &err) == 0) {
                for (int least = 0; least < 2; least++) {
                        struct plan_shards_answer answer;
                        struct text out = { 0 };

                        if ((least && !request.has_communication) ||
                            request.worker_count >
                                    WORK_MAX / (request.batch < WORK_MAX ? request.batch : WORK_MAX) ||
                            plan_shards_request_answer(&request, least, &answer, &err) < 0)
                                continue;
                        check(&request, &answer);
                        plan_shards_text_json(&request, &answer, &out);
                        plan_shards_text_table(&request, &answer, &out);
                        if (out.failed)
                                __builtin_trap();
                        text_free(&out);
                        plan_shards_answer_free(&answer);
                }
                plan_shards_request_free(&request);
        }
        json_decref(json);
        return 0;
}
