/* What is said of a TrainingJob that is told to wait: by whom, and what lets it go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "scheduler-extender/explain/explain_held.h"
#include "scheduler-extender/explain/explain_job.h"
#include "tests/support/told_cluster.h"

#define NODE TOLD_PLAIN("a", "H100", "8")
#define FULL NODE TOLD_POD("on", "", "8", "nodeName: a, ")
#define JOB(MORE)                                                                                            \
        "- {apiVersion: remuda.dev/v1alpha1, kind: TrainingJob, metadata: {name: j}, spec: {programs: "      \
        "{cuda: {image: x, command: [/x]}}, workers: [{runtime: cuda, chips: 8}]" MORE "}}\n"

static const struct rules plain = { .placement = PLACEMENT_PACKED };
#define SUSPENDED "kubectl -n default patch trainingjob j --type=merge -p '{\"spec\":{\"suspend\":false}}'"

/* clang-format off */
static const struct {
        const char *what, *objects;
        struct ledger_job_words words;
        const char *verdict, *summary, *action, *effect, *message, *untried;
        size_t remedies;
} rows[] = {
        { "nothing holds it", NODE JOB(""), { .phase = "" },
          "fits", "it has no plan and no pods; one like it fits now", "", "", "", "", 0 },
        { "its author does", NODE JOB(", suspend: true"), { "Suspended", "Suspended", "spec.suspend is true", "" },
          "waits", "it is suspended by spec.suspend: it has no pods and no chips until that is false; one like it fits now", "resume", "now", SUSPENDED, "", 1 },
        { "... and nobody has looked at it yet", NODE JOB(", suspend: true"), { .phase = "" },
          "waits", "it is suspended by spec.suspend", "resume", "now", SUSPENDED, "", 1 },
        { "... and there is no room", FULL JOB(", suspend: true"), { "Suspended", "Suspended", "x", "" },
          "waits", "until that is false; after that it waits for chips: ", "resume", "when it has chips", SUSPENDED, "", 2 },
        { "... and it names a queue", NODE JOB(", suspend: true"), { "Suspended", "Suspended", "x", "team" },
          "waits", "suspended by spec.suspend", "resume", "when queue 'team' admits it", SUSPENDED, "its queue decides, where the controller reads queues", 1 },
        { "its author did, and nobody has looked since", NODE JOB(""), { "Suspended", "Suspended", "spec.suspend is true", "" },
          "fits", "one like it fits now; its status says Suspended: spec.suspend is true", "", "", "", "", 0 },
        { "its queue does, in Kueue's words", NODE JOB(""), { "Suspended", "WaitingForQueue", "waits in queue 'team': insufficient unused quota", "team" },
          "waits", "it is held, WaitingForQueue: waits in queue 'team': insufficient unused quota; one like it fits now", "admit", "when its queue admits it",
          "more quota, or the end of others there (kubectl -n default describe workloads.kueue.x-k8s.io)", "its queue decides", 1 },
        { "... and there is no room", FULL JOB(""), { "Suspended", "WaitingForQueue", "waits in queue 'team'", "team" },
          "waits", "waits in queue 'team'; after that it waits for chips: ", "admit", "when its queue admits it", "quota", "its queue decides", 2 },
        { "... for its Workload is not active", NODE JOB(""), { "Suspended", "WorkloadInactive", "spec.active is false", "team" },
          "waits", "it is held, WorkloadInactive: spec.active is false", "activate", "when its queue admits it", "set spec.active of its Workload to true", "its queue decides", 1 },
        { "... for a reason of later days", NODE JOB(""), { "Suspended", "Unheard", "of", "team" },
          "waits", "it is held, Unheard: of; one like it fits now", "", "", "", "", 0 },
        { "it gives its chips up", NODE JOB(""), { "Running", "Suspending", "its pods are told to end", "team" },
          "waits", "it is held, Suspending: its pods are told to end", "", "", "", "", 0 },
        { "it waits for another job", NODE JOB(""), { "Pending", "WaitingForParent", "it waits for 'first'", "" },
          "fits", "one like it fits now; its status says WaitingForParent: it waits for 'first'", "", "", "", "", 0 },
};
/* clang-format on */

static bool is_wrong(size_t i, const json_t *reply)
{
        const json_t *remedies = json_object_get(reply, "remedies"), *first = json_array_get(remedies, 0);

        return strcmp(json_read_word(reply, "verdict"), rows[i].verdict) != 0 ||
               strstr(json_read_word(reply, "summary"), rows[i].summary) == NULL ||
               json_array_size(remedies) < rows[i].remedies ||
               (rows[i].remedies < 2 && json_array_size(remedies) != rows[i].remedies) ||
               strcmp(json_read_word(first, "action"), rows[i].action) != 0 ||
               strcmp(json_read_word(first, "takesEffect"), rows[i].effect) != 0 ||
               strstr(json_read_word(first, "message"), rows[i].message) == NULL ||
               strcmp(json_read_word(first, "untried"), rows[i].untried) != 0;
}

static void who_is_held_is_told_by_whom(void **state)
{
        struct dir_store *f = dir_store_new();
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct cluster *c =
                        told_cluster(f, (struct cluster_options){ .rules = plain }, rows[i].objects);
                struct ledger_job *job = ledger_jobs_find(cluster_ledger(c), "default", "j");
                struct err err = { 0 };
                json_t *reply;

                if (rows[i].words.phase[0] != '\0')
                        ledger_jobs_set_words(job, &rows[i].words);
                reply = explain_job(c, job, TOLD_NOW_USEC, 0, &err);
                assert_non_null(reply);
                if (is_wrong(i, reply)) {
                        char *text = json_dumps(reply, JSON_INDENT(1));

                        print_error("%s: got %s\n", rows[i].what, text);
                        free(text);
                        wrong++;
                }
                json_decref(reply);
                cluster_close(c);
        }
        assert_int_equal(wrong, 0);
        dir_store_free(f);
}

/* What was said of one TrainingJob is not said of the next one of its name. */
static void words_go_with_the_job(void **state)
{
        struct dir_store *f = dir_store_new();
        struct cluster *c = told_cluster(f, (struct cluster_options){ .rules = plain }, NODE JOB(""));
        struct ledger_job *job = ledger_jobs_find(cluster_ledger(c), "default", "j");

        (void) state;
        ledger_jobs_set_words(job, &(struct ledger_job_words){ "Suspended", "WaitingForQueue", "w", "q" });
        assert_true(explain_held_is(job));
        told_cluster_take(c, JOB(""));
        assert_false(explain_held_is(ledger_jobs_find(cluster_ledger(c), "default", "j")));
        cluster_close(c);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_is_held_is_told_by_whom),
                cmocka_unit_test(words_go_with_the_job),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
