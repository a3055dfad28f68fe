/* The stories of a job on a cluster as its controller sees them: what pods, chips and nodes show, and what is
 * done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/world/pods.h"

/* Two groups, w0-0 and w1-0, on n0 and n1, and the manager on n2: all run and are well but for what a story
 * says. */
struct story {
        const char *sentence;
        struct pods_pod a, manager; /* what is other than well; phase and there as said below */
        bool starts, yielding;
        uint64_t restarts, max;
        const char *state, *why, *said; /* of the manager's last words */
        const char *verdict;            /* "reason/what is done, which groups" */
};

#define GONE           .name = "gone"
#define FAILED         .phase = PODS_FAILED
#define ENDED          .phase = PODS_SUCCEEDED
#define MANAGER_FAILED .manager = { FAILED, .exit_code = 1, .reason = "Error", .words = "x\nlast\n" }

/* clang-format off */
static const struct story stories[] = {
        { "all is well", .max = 3, .verdict = "/goes on" },
        { "a node that is lost takes its group", { .node_lost = true }, .max = 3, .verdict = "NodeLost/restart a" },
        { "as often as allowed", { .node_lost = true }, .restarts = 3, .max = 3, .verdict = "NodeLost/end, no more left a" },
        { "a job that allows none ends at once", { .node_lost = true }, .verdict = "NodeLost/end a" },
        { "before it runs a loss costs nothing", { .node_lost = true }, .starts = true, .verdict = "NodeLost/restart a" },
        { "a chip that is sick is left", { .chip_lost = true, .device = "GPU-1" }, .max = 3, .verdict = "DeviceUnhealthy/restart a" },
        { "also one that nobody names", { .chip_lost = true }, .max = 1, .verdict = "DeviceUnhealthy/restart a" },
        { "a pod that is gone had run", { GONE }, .max = 3, .verdict = "PodGone/restart a" },
        { "a group that fails by itself is made again", { FAILED, .exit_code = 9 }, .max = 3, .verdict = "GroupFailed/restart a" },
        { "one that ends early, too", { ENDED }, .starts = true, .max = 3, .verdict = "GroupEnded/restart a" },
        { "but one that ends while the job runs waits for the manager's word", { ENDED }, .max = 3, .verdict = "/goes on" },
        { "a pod that leaves has its grace time", { .leaving = true }, .max = 3, .verdict = "/goes on" },
        { "but not on a node that is lost: nobody there says when it is over", { .leaving = true, .node_lost = true }, .max = 3, .verdict = "NodeLost/restart a" },
        { "where a borrower gives way", { .leaving = true, .node_lost = true }, .yielding = true, .restarts = 3, .max = 3, .verdict = "Evicted/gives way a" },
        { "a borrower that has left gives way, and no restart is counted", { GONE }, .yielding = true, .restarts = 3, .max = 3, .verdict = "Evicted/gives way a" },
        { "or ended well, before it ran", { ENDED }, .starts = true, .yielding = true, .max = 3, .verdict = "Evicted/gives way a" },
        { "so does one that ended in time", { FAILED, .exit_code = 143 }, .yielding = true, .max = 3, .verdict = "Evicted/gives way a" },
        { "a manager that is gone is followed by another", .manager = { GONE }, .max = 3, .verdict = "ManagerGone/restart, new manager" },
        { "also on a node that is lost", .manager = { .node_lost = true }, .max = 3, .verdict = "NodeLost/restart, new manager" },
        { "and one without a last word", MANAGER_FAILED, .max = 3, .verdict = "ManagerFailed/restart, new manager" },
        { "which counts before the job runs, too", MANAGER_FAILED, .starts = true, .restarts = 1, .max = 1, .verdict = "ManagerFailed/end, new manager, no more left" },
        { "what the manager says comes before what is seen of its groups", { FAILED }, .manager = { FAILED, .exit_code = 7 }, .max = 3, .state = "Failed", .why = "RankFailed", .verdict = "RankFailed/end a" },
        { "it was told of fewer than there are now", .manager = { FAILED, .exit_code = 7 }, .restarts = 3, .max = 4, .state = "Failed", .why = "RankKilled", .said = "rank 1 was killed; no restart is left", .verdict = "RankKilled/restart, new manager" },
        { "... and there are no more by now either", .manager = { FAILED, .exit_code = 7 }, .restarts = 3, .max = 3, .state = "Failed", .why = "RankKilled", .said = "rank 1 was killed; no restart is left", .verdict = "RankKilled/end" },
        { "... and it ended for another reason", .manager = { FAILED, .exit_code = 3 }, .restarts = 3, .max = 4, .state = "Failed", .why = "RankFailed", .said = "no such data", .verdict = "RankFailed/end" },
        { "it has tried what there was to try: no restart is left to add", .manager = { FAILED, .exit_code = 7 }, .restarts = 3, .max = 3, .state = "Failed", .why = "RankKilled", .verdict = "RankKilled/end" },
        { "a plan that it refuses is refused again", .manager = { FAILED, .exit_code = 2 }, .max = 3, .verdict = "RankFailed/end" },
        { "a program that is missing is missing again", .manager = { FAILED, .exit_code = 127 }, .max = 3, .verdict = "RankFailed/end" },
        { "a manager that has succeeded is nobody's fault", .manager = { ENDED, .node_lost = true }, .max = 3, .verdict = "/goes on" },
};
/* clang-format on */

static struct pods_pod well(const char *group, const char *name, const char *node, const struct pods_pod *but)
{
        struct pods_pod pod = *but;

        pod.there = but->name == NULL;
        pod.phase = but->phase == PODS_PENDING ? PODS_RUNNING : but->phase;
        pod.group = group;
        pod.name = name;
        pod.node = node;
        pod.ran = true;
        pod.device = but->device == NULL ? "" : but->device;
        pod.reason = but->reason == NULL ? "" : but->reason;
        pod.words = but->words == NULL ? "" : but->words;
        return pod;
}

static void each_story_has_its_end(void **state)
{
        static const char *const done[] = { "goes on", "restart", "gives way", "end" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
                const struct story *s = &stories[i];
                const struct pods_pod nothing = { .phase = PODS_PENDING };
                struct pods_pod groups[2] = { well("w0-0", "j-w0-0", "n0", &s->a),
                                              well("w1-0", "j-w1-0", "n1", &nothing) };
                struct pods_look look = { .runs = !s->starts,
                                          .yielding = s->yielding,
                                          .restarts = s->restarts,
                                          .restart_max = s->max,
                                          .groups = groups,
                                          .group_count = 2,
                                          .manager = well(NULL, "j-m0", "n2", &s->manager),
                                          .state = s->state == NULL ? "" : s->state,
                                          .state_reason = s->why == NULL ? "" : s->why,
                                          .state_message = s->said == NULL ? "" : s->said };
                bool lost[2];
                struct pods_verdict v = pods_judge(&look, lost);
                char text[160];

                snprintf(text, sizeof(text), "%s/%s%s%s%s%s", v.reason, done[v.kind],
                         v.world ? ", new manager" : "", v.no_more_left ? ", no more left" : "",
                         lost[0] ? " a" : "", lost[1] ? " b" : "");
                if (strcmp(text, s->verdict) != 0)
                        fail_msg("%s: want %s, got %s (%s)", s->sentence, s->verdict, text, v.message);
        }
}

static void the_last_line_says_why(void **state)
{
        const struct pods_pod nothing = { .phase = PODS_PENDING }, failed = {
                .phase = PODS_FAILED, .exit_code = 1, .reason = "Error", .words = "a\nwhy\n\n"
        };
        struct pods_pod group = well("w0-0", "j-w0-0", "n0", &failed);
        struct pods_look look = { .runs = true,
                                  .groups = &group,
                                  .group_count = 1,
                                  .manager = well(NULL, "j-m0", "n2", &nothing),
                                  .state = "",
                                  .state_reason = "",
                                  .state_message = "",
                                  .restart_max = 1 };
        bool lost;

        (void) state;
        assert_string_equal(pods_judge(&look, &lost).message,
                            "pod j-w0-0 ended with exit code 1 (Error) why");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_story_has_its_end),
                cmocka_unit_test(the_last_line_says_why),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
