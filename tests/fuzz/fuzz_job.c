/* Any bytes as a job file: never a crash, and a job that was accepted keeps every rule when asked again. */
#include <stddef.h>
#include <stdint.h>

#include "job/spec/job_yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct err err = { 0 };
        struct job job;
        int r = job_yaml_parse((const char *) data, size, &job, &err);

        if (r == 0 &&
            (job_check(&job, &err) < 0 || !object_name_label_valid(job.name) || job.worker_count == 0))
                __builtin_trap();
        if (r < 0 && (err.code != r || err.msg[0] == '\0' || job.worker_count != 0))
                __builtin_trap();
        job_free(&job);
        return 0;
}
