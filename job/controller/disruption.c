/* The disruption budget of a job: when it has one, and the writes that see to it. */
#include "job/controller/disruption.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/job_pods.h"
#include "job/controller/suspend.h"
#include "job/controller/write.h"
#include "scheduler-extender/wire/pod_json.h"

#define RETRY_USEC UINT64_C(30000000) /* after one that was refused: a right is missing, mostly */
/* After one that somebody took away: who does so for ever makes no storm. */
#define AGAIN_USEC UINT64_C(1000000)

/* Does it go on from a checkpoint, somewhere else, when a pod of it is evicted? */
static bool is_repaired(const struct job *job, const struct job_state *state)
{
        return job->checkpoint.given && (!job->restart.given || job->restart.migrate) &&
               state->restarts < job_restart_max(job);
}

bool disruption_refuses(const struct job *job, const struct job_state *state)
{
        if (state->group_count == 0 || job_phase_ended(state->phase) || job->preemptible ||
            job->disruption == JOB_EVICTION_ALLOWED)
                return false;
        return job->disruption == JOB_EVICTION_NEVER || !is_repaired(job, state);
}

/* The pods that it should keep now: every one of the plan, or none. */
static unsigned wanted_pods(const struct record *record)
{
        bool leaves = record->controller->options.no_budgets || record->gone || record->deleting ||
                      !record->valid || record->cancel || record->bad_status[0] != '\0' ||
                      suspend_holds(record);

        return !leaves && disruption_refuses(&record->job, &record->state)
                       ? (unsigned) record->state.group_count + 1
                       : 0;
}

/* Of which job of that name it is, too: one that was deleted takes its own with it, at some time. */
static void name_of(const struct record *record, char name[JOB_POD_NAME_BYTES])
{
        (void) text_format(name, JOB_POD_NAME_BYTES, "%s-%.8s", record->name, record->uid);
}

struct budget_write {
        struct record *record;
        char uid[64];
        unsigned pods;
};

static void say_refused(struct record *record, const char *sentence)
{
        if (!record->budget.refused)
                write_event(record, true, "BudgetNotWritten", "spec.disruption: evictions are %s: %.300s",
                            record->budget.pods == 0 ? "not refused" : "refused as before", sentence);
        record->budget.refused = true;
}

static void write_budget(struct record *record, unsigned pods);

/* What was seen may have been before the write, or after. */
static void take_written(struct record *record, unsigned pods)
{
        bool overtaken = record->budget.overtaken && pods > 0;

        record->budget.pods = overtaken ? BUDGET_UNKNOWN : pods;
        if (overtaken)
                record->budget.after_usec = controller_monotonic(record->controller) + AGAIN_USEC;
        record->budget.cleared = record->budget.cleared && pods == 0;
        record->budget.refused = record->budget.refused && record->budget.cleared;
}

/* One with a field that somebody else gave it and that cannot stand beside ours (maxUnavailable) takes no
 * other: it is deleted, once, and written anew. */
static bool is_in_the_way(const struct record *record, const struct budget_write *write, int result)
{
        return result == -EINVAL && write->pods > 0 && !record->budget.cleared;
}

static void on_written(void *userdata, int result, const char *sentence)
{
        struct budget_write *write = userdata;
        struct record *record = write->record;

        record->calls--;
        controller_queue(record);
        if (strcmp(record->uid, write->uid) == 0) {
                record->budget.under_way = false;
                if (result == 0 || (result == -ENOENT && write->pods == 0)) {
                        take_written(record, write->pods);
                } else if (is_in_the_way(record, write, result)) {
                        record->budget.cleared = true;
                        write_budget(record, 0);
                } else if (result != -ECANCELED) {
                        record->budget.after_usec = controller_monotonic(record->controller) + RETRY_USEC;
                        say_refused(record, sentence);
                }
        }
        free(write);
}

static json_t *make_budget(const struct record *record, const char *name, unsigned pods)
{
        struct job_pods_owner owner = write_owner(record);

        return json_pack("{s:o, s:{s:i, s:s, s:{s:{s:s}}}}", "metadata",
                         job_pods_metadata(name, &owner, "budget"), "spec", "minAvailable", (int) pods,
                         "unhealthyPodEvictionPolicy", "AlwaysAllow", "selector", "matchLabels",
                         POD_LABEL_JOB, record->name);
}

static void write_budget(struct record *record, unsigned pods)
{
        struct store *store = cluster_store(record->controller->options.cluster);
        struct budget_write *write = controller_leads(record->controller) ? calloc(1, sizeof(*write)) : NULL;
        char name[JOB_POD_NAME_BYTES];
        json_t *budget;

        if (write == NULL)
                return;
        *write = (struct budget_write){ .record = record, .pods = pods };
        (void) text_copy(write->uid, sizeof(write->uid), record->uid);
        name_of(record, name);
        record->calls++;
        record->budget.under_way = true;
        record->budget.overtaken = false;
        record->budget.asked = pods;
        if (pods == 0) {
                store_delete(store, STORE_DISRUPTION_BUDGET, record->namespace_, name, NULL, 0, on_written,
                             write);
                return;
        }
        budget = make_budget(record, name, pods);
        store_put(store, STORE_DISRUPTION_BUDGET, record->namespace_, name, budget, on_written, write);
        json_decref(budget);
}

/* Whose budget is called so: "j" for "j-1b9d6bcd", where that is how its uid begins. */
static struct record *of_budget(struct controller *c, const char *key)
{
        char namespace_[256], name[JOB_POD_NAME_BYTES], job[512];
        const char *called = store_key_split(key, namespace_);
        struct record *record;

        for (size_t length = strlen(called); length > 0; length--) {
                if (called[length] != '-' ||
                    !text_format(job, sizeof(job), "%s/%.*s", namespace_, (int) length, called) ||
                    (record = controller_find(c, job)) == NULL)
                        continue;
                name_of(record, name);
                if (strcmp(name, called) == 0)
                        return record;
        }
        return NULL;
}

/* How many pods it keeps, by what it says itself; BUDGET_UNKNOWN: it is not as we write it. */
static unsigned kept_by(const struct record *record, const json_t *object)
{
        const json_t *spec = json_object_get(object, "spec"), *selector = json_object_get(spec, "selector"),
                     *labels = json_object_get(selector, "matchLabels");
        json_int_t pods = json_integer_value(json_object_get(spec, "minAvailable"));
        bool ours = json_object_size(selector) == 1 && json_object_size(labels) == 1 &&
                    strcmp(json_read_word(labels, POD_LABEL_JOB), record->name) == 0 && pods > 0 &&
                    pods < (json_int_t) BUDGET_UNKNOWN;

        return object == NULL ? 0 : ours ? (unsigned) pods : BUDGET_UNKNOWN;
}

void disruption_observe(struct controller *c, const char *key, const json_t *object)
{
        struct record *record = of_budget(c, key);
        unsigned kept = record == NULL ? 0 : kept_by(record, object);

        if (record == NULL)
                return;
        if (record->budget.under_way) {
                record->budget.overtaken = kept != record->budget.asked;
                return;
        }
        if (record->budget.pods == BUDGET_UNKNOWN || kept == record->budget.pods)
                return; /* what is not known is written at the next look anyway */
        record->budget.pods = kept;
        record->budget.after_usec = controller_monotonic(c) + AGAIN_USEC;
        controller_queue(record);
}

void disruption_settle(struct record *record)
{
        unsigned pods = wanted_pods(record);
        bool has_pods = record->state.group_count > 0 || record->pods != NULL;

        if (!record->controller->options.budgets || record->budget.under_way || record->gone ||
            controller_monotonic(record->controller) < record->budget.after_usec)
                return;
        if (record->budget.pods == BUDGET_UNKNOWN && pods == 0 && !has_pods)
                record->budget.pods = 0; /* one that was left would keep nothing */
        if (record->budget.pods != pods)
                write_budget(record, pods);
}
