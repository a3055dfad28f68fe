/* What is written into a Workload's status: all conditions, one of them set. */
#include "job/controller/kueue/kueue_workload_status.h"

#include <string.h>

#include "base/json/json_read.h"
#include "base/text.h"
#include "base/timestamp.h"

/* One of them set, in a copy of all. */
static void set_condition(json_t *conditions, const char *type, bool holds, const char *reason,
                          const char *message, uint64_t now_usec)
{
        char time[TIMESTAMP_BYTES], cut[400];
        json_t *condition, *text;
        size_t i;

        (void) text_copy(cut, sizeof(cut), message);
        text = json_string(cut);
        json_array_foreach(conditions, i, condition)
        {
                if (strcmp(json_read_word(condition, "type"), type) == 0) {
                        (void) json_array_remove(conditions, i);
                        break;
                }
        }
        (void) json_array_append_new(
                conditions, json_pack("{s:s, s:s, s:s, s:o, s:s}", "type", type, "status",
                                      holds ? "True" : "False", "reason", reason, "message",
                                      text != NULL ? text : json_string("") /* cut within a letter */,
                                      "lastTransitionTime", timestamp_format(now_usec, time)));
}

/* @conditions: taken */
static json_t *patch_of(const struct kueue_workload *workload, json_t *conditions)
{
        json_t *metadata = json_pack("{s:s}", "uid", workload->uid);

        if (workload->version[0] != '\0')
                (void) json_object_set_new(metadata, "resourceVersion", json_string(workload->version));
        return json_pack("{s:o, s:{s:o}}", "metadata", metadata, "status", "conditions", conditions);
}

static json_t *conditions_of(const struct kueue_workload *workload)
{
        return json_is_array(workload->conditions) ? json_deep_copy(workload->conditions) : json_array();
}

json_t *kueue_workload_status_release(const struct kueue_workload *workload, const char *message,
                                      uint64_t now_usec)
{
        json_t *conditions = conditions_of(workload), *patch;
        bool again = !workload->evicted || strcmp(workload->reason, "Preempted") == 0 ||
                     strcmp(workload->reason, "AdmissionCheck") == 0 ||
                     strcmp(workload->reason, "NodeFailures") == 0;

        set_condition(conditions, "QuotaReserved", false, "Pending", message, now_usec);
        set_condition(conditions, "Admitted", false, "NoReservation", "The workload has no reservation",
                      now_usec);
        if (workload->ready)
                set_condition(conditions, "PodsReady", false, "PodsNotReady", "its pods are gone", now_usec);
        set_condition(conditions, "Requeued", again,
                      workload->evicted && workload->reason[0] != '\0' ? workload->reason : "Pending",
                      message, now_usec);
        patch = patch_of(workload, conditions);
        (void) json_object_set_new(json_object_get(patch, "status"), "admission", json_null());
        return patch;
}

json_t *kueue_workload_status_condition(const struct kueue_workload *workload, const char *type, bool holds,
                                        const char *reason, const char *message, uint64_t now_usec)
{
        json_t *conditions = conditions_of(workload);

        set_condition(conditions, type, holds, reason, message, now_usec);
        return patch_of(workload, conditions);
}
