/* Any bytes as a TrainingJob's status: never a crash, and what was understood is written and read again the
 * same. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "job/plan/job_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *status = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL), *first, *second;
        struct job_state state, again;
        struct job job;

        if (job_status_decode(status, &state) < 0)
                __builtin_trap();
        job_init(&job);
        first = job_status_encode(&job, "j", &state);
        if (first == NULL || job_status_decode(first, &again) < 0)
                __builtin_trap();
        second = job_status_encode(&job, "j", &again);
        if (state.group_count != again.group_count || (state.phase != again.phase) ||
            !json_equal(first, second))
                __builtin_trap();
        job_state_free(&state);
        job_state_free(&again);
        json_decref(first);
        json_decref(second);
        json_decref(status);
        return 0;
}
