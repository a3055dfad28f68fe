/* Annotations of pods that their launchers read as files. */
#include "job/controller/launchers/tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/job_pods.h"
#include "job/controller/write.h"
#include "job/plan/job_plan.h"
#include "job/plan/manager_plan.h"

#define TOLD_USEC      UINT64_C(5000000) /* a kubelet shows a volume within about a second, or misses it */
#define TOLD_TIMES_MAX 4u

static void tell(struct record *record, struct job_pod *pod, const char *value)
{
        if (strcmp(pod->published, value) == 0 ||
            !write_annotation(record, pod, JOB_ANNOTATION_MANAGER, value))
                return;
        pod->told_usec = controller_monotonic(record->controller);
        pod->told_times = 0;
}

static void tell_again(struct record *record, struct job_pod *pod)
{
        uint64_t now = controller_monotonic(record->controller);
        char times[16];

        if (pod->told_usec == 0) /* by a controller of before, nobody knows when */
                pod->told_usec = now;
        if (pod->told_times == TOLD_TIMES_MAX || now - pod->told_usec < TOLD_USEC << pod->told_times)
                return;
        (void) text_format(times, sizeof(times), "%u", pod->told_times + 1);
        if (!write_annotation(record, pod, JOB_ANNOTATION_TOLD, times))
                return;
        pod->told_usec = now;
        pod->told_times++;
}

static void tell_plan(struct record *record, struct job_pod *manager)
{
        struct job_state begun = record->state; /* borrowed */
        json_t *plan;
        CLEANUP(free_p) char *text = NULL;

        begun.restarts = record->base_restarts;
        job_plan_networks(controller_ledger(record->controller), &begun);
        plan = manager_plan(&record->job, &begun, manager->status_token);
        text = plan == NULL ? NULL : json_dumps(plan, JSON_COMPACT);
        json_decref(plan);
        if (text != NULL)
                (void) write_annotation(record, manager, JOB_ANNOTATION_PLAN, text);
}

/* The groups learn where the manager of this world is. */
static void tell_groups(struct record *record)
{
        char value[128], name[JOB_POD_NAME_BYTES];

        if (record->state.address[0] == '\0')
                return;
        (void) text_format(value, sizeof(value), "%llu %s", (unsigned long long) record->state.world + 1,
                           record->state.address);
        for (size_t i = 0; i < record->state.group_count; i++) {
                struct job_pod *pod;

                job_group_pod_name(record->name, &record->state.groups[i], name);
                pod = record_find_pod(record, name);
                if (pod == NULL || pod->asked || pod->deleting || job_pod_has_ended(pod))
                        continue;
                tell(record, pod, value);
                if (record->asking.waits && pod->started && strcmp(pod->published, value) == 0)
                        tell_again(record, pod);
        }
}

/* spec.restart.max may have another value now: its manager repairs what it can by itself. */
static void tell_manager(struct record *record)
{
        uint64_t max = job_restart_max(&record->job), base = record->base_restarts;
        char name[JOB_POD_NAME_BYTES];
        struct job_pod *pod;

        job_state_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        if (pod != NULL && !pod->asked && !pod->deleting && !job_pod_has_ended(pod) && pod->restarts >= 0 &&
            pod->restart_max != (int64_t) (max > base ? max - base : 0))
                tell_plan(record, pod);
}

void tell_launchers(struct record *record)
{
        tell_groups(record);
        tell_manager(record);
}

void tell_end(struct record *record, struct job_pod *pod)
{
        tell(record, pod, "end");
}
