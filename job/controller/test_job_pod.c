/* A pod's object as the API server shows it, or as somebody else wrote it: what is said is taken, what makes
 * no sense is as if it had not been said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/controller/job_pod.h"

static struct job_pod decode(const char *text, char keys[64])
{
        json_error_t error;
        json_t *object = json_loads(text, 0, &error);
        const char *said;
        struct job_pod pod;

        if (object == NULL)
                fail_msg("%s: %s", text, error.text);
        job_pod_decode(object, &pod, &said);
        (void) text_copy(keys, 64, said);
        json_decref(object);
        return pod;
}

#define PLAN(TEXT)                                                                                           \
        "{\"metadata\":{\"labels\":{\"remuda.dev/role\":\"manager\"},\"annotations\":{\"remuda.dev/"         \
        "plan\":" TEXT "}}}"
#define CONTAINERS(TEXT) "{\"status\":{\"containerStatuses\":" TEXT "}}"
#define OWNERS(TEXT)     "{\"metadata\":{\"ownerReferences\":" TEXT "}}"

static void what_a_pod_says_is_taken(void **state)
{
        char keys[64];
        struct job_pod pod = decode(
                "{\"metadata\":{\"uid\":\"u-7\",\"labels\":{\"remuda.dev/job\":\"j\",\"remuda.dev/subtask\":"
                "\"w0-0\",\"remuda.dev/role\":\"worker\"},\"annotations\":{\"remuda.dev/manager\":\"1 "
                "10.0.0.7:7000\",\"remuda.dev/"
                "keys\":\"K\"},\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":\"z\"},{"
                "\"kind\":\"TrainingJob\",\"uid\":\"u-j\"}]},\"spec\":{\"nodeName\":\"a\"},\"status\":{"
                "\"podIP\":"
                "\"10.0.0.8\",\"phase\":\"Running\",\"reason\":\"R\",\"message\":\"m\"}}",
                keys);

        (void) state;
        assert_string_equal(keys, "K");
        assert_string_equal(pod.uid, "u-7");
        assert_string_equal(pod.owner, "u-j");
        assert_string_equal(pod.job, "j");
        assert_string_equal(pod.subtask, "w0-0");
        assert_string_equal(pod.published, "1 10.0.0.7:7000");
        assert_string_equal(pod.node, "a");
        assert_string_equal(pod.ip, "10.0.0.8");
        assert_string_equal(pod.reason, "R");
        assert_true(pod.phase == JOB_POD_RUNNING && !pod.manager && !pod.deleting && !pod.started &&
                    !pod.sick);
        assert_true(pod.exit_code == -1 && pod.restart_max == -1);
        assert_false(job_pod_has_ended(&pod));
}

/* clang-format off */
static const struct { const char *what, *object, *owner; } owners[] = {
        { "no list",               OWNERS("7"), "" },
        { "nobody",                OWNERS("[]"), "" },
        { "what is no object",     OWNERS("[7]"), "" },
        { "another kind",          OWNERS("[{\"kind\":\"Job\",\"uid\":\"z\"}]"), "" },
        { "a job without a uid",   OWNERS("[{\"kind\":\"TrainingJob\"}]"), "" },
        { "the first of two jobs", OWNERS("[{\"kind\":\"TrainingJob\",\"uid\":\"a\"},{\"kind\":\"TrainingJob\",\"uid\":\"b\"}]"), "a" },
};
static const struct { const char *what, *object, *token; int64_t restarts; } plans[] = {
        { "as it is made",         PLAN("\"{\\\"status_token\\\":\\\"t\\\",\\\"restart\\\":{\\\"max\\\":3}}\""), "t", 3 },
        { "no restarts",           PLAN("\"{\\\"status_token\\\":\\\"t\\\",\\\"restart\\\":{}}\""), "t", -1 },
        { "nothing of them",       PLAN("\"{\\\"status_token\\\":\\\"t\\\"}\""), "t", -1 },
        { "an empty plan",         PLAN("\"{}\""), "", -1 },
        { "no JSON",               PLAN("\"the plan\""), "", -1 },
        { "another plan",          PLAN("\"{\\\"status_token\\\":7}\""), "", -1 },
        { "no text",               PLAN("7"), "", -1 },
        { "of a group: whoever may label pods is no manager by that",
          "{\"metadata\":{\"labels\":{\"remuda.dev/role\":\"worker\"},\"annotations\":{\"remuda.dev/plan\":\"{\\\"restart\\\":{\\\"max\\\":3}}\"}}}", "", -1 },
        { "a role that is none",
          "{\"metadata\":{\"labels\":{\"remuda.dev/role\":7},\"annotations\":{\"remuda.dev/plan\":\"{\\\"restart\\\":{\\\"max\\\":3}}\"}}}", "", -1 },
};
static const struct { const char *what, *object; bool started, sick; int exit_code; const char *reason; } containers[] = {
        { "none",                  CONTAINERS("[]"), false, false, -1, "" },
        { "no list",               CONTAINERS("{}"), false, false, -1, "" },
        { "somebody else's",       CONTAINERS("[{\"name\":\"side\",\"state\":{\"running\":{}}},{}]"), false, false, -1, "" },
        { "it runs",               CONTAINERS("[{\"name\":\"main\",\"state\":{\"running\":{}}}]"), true, false, -1, "" },
        { "it waits",              CONTAINERS("[{\"name\":\"main\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}}]"), false, false, -1, "ErrImagePull" },
        { "it has ended",          CONTAINERS("[{\"name\":\"main\",\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]"), true, false, 137, "OOMKilled" },
        { "with no code",          CONTAINERS("[{\"name\":\"main\",\"state\":{\"terminated\":{}}}]"), true, false, 0, "" },
        { "with one that is none", CONTAINERS("[{\"name\":\"main\",\"state\":{\"terminated\":{\"exitCode\":99999999999}}}]"), true, false, 0, "" },
        { "its chips are well",    CONTAINERS("[{\"name\":\"main\",\"allocatedResourcesStatus\":[{\"name\":\"x\",\"resources\":[{\"health\":\"Healthy\"}]}]}]"), false, false, -1, "" },
        { "nobody knows of them",  CONTAINERS("[{\"name\":\"main\",\"allocatedResourcesStatus\":[{\"name\":\"x\"},7]}]"), false, false, -1, "" },
        { "one is not",            CONTAINERS("[{\"name\":\"main\",\"allocatedResourcesStatus\":[{\"name\":\"x\",\"resources\":[{\"health\":\"Healthy\"},{\"health\":\"Unhealthy\"}]}]}]"), false, true, -1, "" },
};
/* clang-format on */

static void what_makes_no_sense_was_not_said(void **state)
{
        char keys[64];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
                struct job_pod pod = decode(owners[i].object, keys);

                if (strcmp(pod.owner, owners[i].owner) != 0 || keys[0] != '\0')
                        fail_msg("%s: '%s'", owners[i].what, pod.owner);
        }
        for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
                struct job_pod pod = decode(plans[i].object, keys);

                if (strcmp(pod.status_token, plans[i].token) != 0 || pod.restart_max != plans[i].restarts)
                        fail_msg("%s: '%s' %lld", plans[i].what, pod.status_token,
                                 (long long) pod.restart_max);
        }
        for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
                struct job_pod pod = decode(containers[i].object, keys);

                if (pod.started != containers[i].started || pod.sick != containers[i].sick ||
                    pod.exit_code != containers[i].exit_code || strcmp(pod.reason, containers[i].reason) != 0)
                        fail_msg("%s: started %d, sick %d, exit code %d, '%s'", containers[i].what,
                                 pod.started, pod.sick, pod.exit_code, pod.reason);
        }
}

/* clang-format off */
#define LAST(TEXT) CONTAINERS("[{\"name\":\"main\",\"state\":{\"terminated\":{\"exitCode\":1,\"message\":\"" TEXT "\"}}}]")
static const struct { const char *what, *object, *says; } words[] = {
        { "as text logs have them",    LAST("first\\nremuda-launch: w0: no chip"), "first\nremuda-launch: w0: no chip" },
        { "as JSON logs have them",    LAST("first\\n{\\\"time\\\":\\\"t\\\",\\\"program\\\":\\\"remuda-launch\\\",\\\"message\\\":\\\"w0: no \\\\\\\"chip\\\"}\\n"), "remuda-launch: w0: no \"chip" },
        { "the report of a manager",   LAST("{\\\"state\\\":\\\"Failed\\\",\\\"message\\\":\\\"m\\\"}"), "{\"state\":\"Failed\",\"message\":\"m\"}" },
        { "another program's objects", LAST("{\\\"program\\\":\\\"x\\\",\\\"message\\\":\\\"m\\\"}"), "{\"program\":\"x\",\"message\":\"m\"}" },
        { "an object that is cut",     LAST("{\\\"program\\\":\\\"remuda-launch\\\",\\\"mess"), "{\"program\":\"remuda-launch\",\"mess" },
};
/* clang-format on */

static void last_words_are_words_however_it_logs(void **state)
{
        char keys[64];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                struct job_pod pod = decode(words[i].object, keys);

                if (strcmp(pod.message, words[i].says) != 0)
                        fail_msg("%s: '%s'", words[i].what, pod.message);
        }
}

/* What the controller knows of its own is kept; of another pod of the name it does not hold. */
static void what_was_asked_for_is_kept(void **state)
{
        struct job_pod next = { .uid = "" },
                       known = { .next = &next,
                                 .name = "j-m0",
                                 .secret = "s",
                                 .asked = true,
                                 .delete_asked = true,
                                 .force_asked = true,
                                 .publishing = true,
                                 .asked_usec = 1,
                                 .bound_usec = 2,
                                 .told_usec = 4,
                                 .told_times = 4,
                                 .retry_usec = 3,
                                 .uid = "u",
                                 .phase = JOB_POD_PENDING },
                       seen = { .uid = "u", .phase = JOB_POD_FAILED, .exit_code = 7 };

        (void) state;
        job_pod_update(&known, &seen);
        assert_true(known.next == &next && known.delete_asked && known.force_asked && known.publishing);
        assert_true(known.asked_usec == 1 && known.bound_usec == 2 && known.retry_usec == 3);
        assert_true(known.told_usec == 4 && known.told_times == 4);
        assert_string_equal(known.name, "j-m0");
        assert_string_equal(known.secret, "s");
        assert_true(!known.asked && known.exit_code == 7 && job_pod_has_ended(&known));
        (void) text_copy(seen.uid, sizeof(seen.uid), "another");
        seen.phase = JOB_POD_SUCCEEDED;
        job_pod_update(&known, &seen);
        assert_true(known.told_usec == 0 && known.told_times == 0); /* it may be told again as often as any */
        assert_true(known.bound_usec == 0 && job_pod_has_ended(&known));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_pod_says_is_taken),
                cmocka_unit_test(what_makes_no_sense_was_not_said),
                cmocka_unit_test(last_words_are_words_however_it_logs),
                cmocka_unit_test(what_was_asked_for_is_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
