/* Any JSON as a Workload of Kueue: what it says is put onto a job, which keeps within what it asked for. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json/json_read.h"
#include "job/controller/kueue/kueue_workload_status.h"
#include "job/spec/job_yaml.h"
#include "scheduler-extender/ledger/ledger_life.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char spec[] =
        "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
        "  workers:\n  - {vendor: nvidia, chips: 4, minChips: 2}\n  - {vendor: amd, chips: 2}\n";

static void admit(const struct kueue_workload *workload, const json_t *flavors)
{
        struct job job;
        struct err err = { 0 };
        int r;

        if (job_yaml_parse(spec, sizeof(spec) - 1, &job, &err) < 0)
                __builtin_trap();
        r = kueue_workload_admit(workload, flavors, &job, &err);
        if (job.workers[0].chips < 2 || job.workers[0].chips > 4 || job.workers[1].chips != 2)
                __builtin_trap();
        if ((r == 0) != (job.workers[1].place.match != NULL) || (r < 0 && err.msg[0] == '\0'))
                __builtin_trap();
        job_free(&job);
}

static void ask(const struct kueue_workload *workload)
{
        struct ledger *ledger = ledger_life_new();
        struct job job;
        json_t *sets;

        if (ledger == NULL || job_yaml_parse(spec, sizeof(spec) - 1, &job, NULL) < 0)
                __builtin_trap();
        sets = kueue_workload_pod_sets(&job, ledger, workload, NULL);
        (void) kueue_workload_asks(workload, sets);
        json_decref(sets);
        job_free(&job);
        ledger_life_free(ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *object = json_read((const char *) data, size, 0, NULL), *patch;
        struct kueue_workload workload;

        kueue_workload_decode(object, &workload);
        admit(&workload, json_object_get(object, "flavors"));
        ask(&workload);
        patch = kueue_workload_status_release(&workload, workload.message, 1);
        if (json_object_get(json_object_get(patch, "status"), "conditions") == NULL)
                __builtin_trap();
        json_decref(patch);
        kueue_workload_free(&workload);
        json_decref(object);
        return 0;
}
