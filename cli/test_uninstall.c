/* What is taken off a cluster, and what is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/uninstall.h"

static const struct uninstall_step *step_of(const char *kind, enum uninstall_match match)
{
        const struct uninstall_step *step = uninstall_steps;

        while (step->kind != NULL && (strcmp(step->kind, kind) != 0 || step->match != match))
                step++;
        assert_non_null(step->kind);
        return step;
}

static json_t *object_of(const char *text)
{
        json_t *object = json_loads(text, 0, NULL);

        assert_non_null(object);
        return object;
}

/* clang-format off */
static const struct { const char *kind; enum uninstall_match match; bool ours; const char *object; } objects[] = {
        { "pod", UNINSTALL_OF_JOB, true, "{'metadata':{'ownerReferences':[{'kind':'X'},{'kind':'TrainingJob','apiVersion':'remuda.dev/v1alpha1'}]}}" },
        { "pod", UNINSTALL_OF_JOB, false, "{'metadata':{'name':'own','labels':{'remuda.dev/job':'gang'}}}" }, /* a gang of plain pods */
        { "pod", UNINSTALL_OF_JOB, false, "{'metadata':{'ownerReferences':[{'kind':'TrainingJob','apiVersion':'kubeflow.org/v1'}]}}" },
        { "pod", UNINSTALL_OF_JOB, false, "{'metadata':{'ownerReferences':7}}" },
        { "lease", UNINSTALL_AGENT, true, "{'metadata':{'name':'remuda-agent.n1'}}" },
        { "lease", UNINSTALL_AGENT, false, "{'metadata':{'name':'n1'}}" }, /* the kubelet's */
        { "lease", UNINSTALL_LEADER, true, "{'metadata':{'name':'remuda-extender'}}" },
        { "lease", UNINSTALL_LEADER, false, "{'metadata':{'name':'kube-scheduler'}}" },
        { "rolebinding", UNINSTALL_ADMITTING, true, "{'roleRef':{'kind':'ClusterRole','name':'remuda-job-namespace'}}" },
        { "rolebinding", UNINSTALL_ADMITTING, false, "{'roleRef':{'kind':'Role','name':'remuda-job-namespace'}}" },
        { "rolebinding", UNINSTALL_ADMITTING, false, "{'roleRef':{'kind':'ClusterRole','name':'edit'}}" },
        { "trainingjob", UNINSTALL_ALL, true, "{}" },
};
/* clang-format on */

/* Quotes as C likes them. */
static json_t *quoted(const char *text)
{
        CLEANUP(free_p) char *copy = strdup(text);

        for (char *c = copy; *c != '\0'; c++)
                *c = *c == '\'' ? '"' : *c;
        return object_of(copy);
}

static void what_is_ours_is_known(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
                json_t *object = quoted(objects[i].object);

                if (uninstall_matches(step_of(objects[i].kind, objects[i].match), object) != objects[i].ours)
                        fail_msg("row %zu: %s", i, objects[i].object);
                json_decref(object);
        }
}

static size_t place_of(const char *kind, enum uninstall_match match)
{
        return (size_t) (step_of(kind, match) - uninstall_steps);
}

/* Jobs before their controller, it before rights and kinds, the namespace last. */
static void the_order_is_kept(void **state)
{
        size_t jobs = place_of("trainingjob", UNINSTALL_ALL), pods = place_of("pod", UNINSTALL_OF_JOB),
               controller = place_of("deployment", UNINSTALL_PART_OF),
               agents = place_of("daemonset", UNINSTALL_PART_OF),
               kinds = place_of("customresourcedefinition", UNINSTALL_PART_OF),
               rights = place_of("clusterrole", UNINSTALL_PART_OF),
               last = place_of("namespace", UNINSTALL_PART_OF);

        (void) state;
        assert_true(jobs < pods && pods < controller && controller < agents && agents < kinds);
        assert_true(kinds < rights && rights < last);
        assert_true(uninstall_rest_step == pods + 1);
        assert_true(uninstall_nodes_step > agents && uninstall_nodes_step <= kinds);
        assert_null(uninstall_steps[last + 1].kind);
}

static void paths_are_of_names_alone(void **state)
{
        static const char *const bad[] = { "{'metadata':{'name':'../x','namespace':'b'}}",
                                           "{'metadata':{'name':'x','namespace':'b/c'}}",
                                           "{'metadata':{'name':'x?y'}}", "{'metadata':{}}", "{}" };
        const struct uninstall_step *role = step_of("role", UNINSTALL_PART_OF),
                                    *agent = step_of("lease", UNINSTALL_AGENT);
        json_t *good = quoted("{'metadata':{'name':'a','namespace':'b'}}");
        char path[200];

        (void) state;
        assert_true(uninstall_object_path(role, good, path, sizeof(path)));
        assert_string_equal(path, "/apis/rbac.authorization.k8s.io/v1/namespaces/b/roles/a");
        assert_false(uninstall_object_path(role, good, path, 20));
        json_decref(good);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                json_t *object = quoted(bad[i]);

                assert_false(uninstall_object_path(role, object, path, sizeof(path)));
                json_decref(object);
        }
        assert_true(uninstall_list_path(role, path, sizeof(path)));
        assert_string_equal(path, "/apis/rbac.authorization.k8s.io/v1/roles"
                                  "?labelSelector=app.kubernetes.io%2Fpart-of%3Dremuda");
        assert_true(uninstall_list_path(agent, path, sizeof(path)));
        assert_string_equal(path, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
}

static void patched(json_t *(*patch)(const json_t *), const char *object, const char *wanted)
{
        json_t *of = quoted(object), *done = patch(of), *expected = wanted == NULL ? NULL : quoted(wanted);

        if (!(wanted == NULL ? done == NULL : json_equal(done, expected)))
                fail_msg("%s: %s", object, done == NULL ? "no patch" : json_dumps(done, 0));
        json_decref(of);
        json_decref(done);
        json_decref(expected);
}

static void patches_leave_what_is_anothers(void **state)
{
        (void) state;
        patched(uninstall_node_patch,
                "{'metadata':{'labels':{'remuda.dev/pool':'regular','remuda.dev/mine':'x',"
                "'remuda.dev/cpu.count':'2','zone':'a'}}}",
                "{'metadata':{'labels':{'remuda.dev/cpu.count':null,'remuda.dev/pool':null}}}");
        patched(uninstall_node_patch,
                "{'metadata':{'labels':{'zone':'a'},'annotations':{'remuda.dev/changed':'1','b':'c'}}}",
                "{'metadata':{'annotations':{'remuda.dev/changed':null}}}");
        patched(uninstall_node_patch, "{'metadata':{'labels':{'zone':'a'}}}", NULL);
        patched(uninstall_node_patch, "{}", NULL);
        patched(uninstall_condition_patch,
                "{'status':{'conditions':[{'type':'Ready','status':'True'},{'type':'AcceleratorsHealthy','"
                "status':"
                "'False'}]}}",
                "{'status':{'conditions':[{'type':'AcceleratorsHealthy','$patch':'delete'}]}}");
        patched(uninstall_condition_patch, "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
                NULL);
        patched(uninstall_taint_patch,
                "{'spec':{'taints':[{'key':'team','effect':'NoSchedule'},{'key':'remuda.dev/"
                "accelerators-unhealthy','effect':'NoSchedule'}]}}",
                "[{'op':'test','path':'/spec/taints/1/key','value':'remuda.dev/accelerators-unhealthy'},"
                "{'op':'test','path':'/spec/taints/1/effect','value':'NoSchedule'},"
                "{'op':'remove','path':'/spec/taints/1'}]");
        patched(uninstall_taint_patch,
                "{'spec':{'taints':[{'key':'remuda.dev/accelerators-unhealthy','effect':'NoExecute'}]}}",
                NULL);
        patched(uninstall_taint_patch, "{}", NULL);
        patched(uninstall_finalizer_patch,
                "{'metadata':{'uid':'u','resourceVersion':'7','finalizers':['a/b','remuda.dev/"
                "job-controller',3]}}",
                "{'metadata':{'finalizers':['a/b',3],'resourceVersion':'7','uid':'u'}}");
        patched(uninstall_finalizer_patch, "{'metadata':{'finalizers':['a/b']}}", NULL);
        patched(uninstall_finalizer_patch, "{}", NULL);
}

static void a_controller_is_one_that_runs(void **state)
{
        static const struct {
                bool is;
                const char *object;
        } rows[] = {
                { true, "{'metadata':{'labels':{'app.kubernetes.io/component':'controller'}},"
                        "'status':{'availableReplicas':1}}" },
                { false, "{'metadata':{'labels':{'app.kubernetes.io/component':'controller'}},'status':{}}" },
                { false, "{'metadata':{'labels':{'app.kubernetes.io/component':'scheduler'}},"
                         "'status':{'availableReplicas':2}}" },
                { false, "{'status':{'availableReplicas':-1}}" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *object = quoted(rows[i].object);

                assert_true(uninstall_controls(object) == rows[i].is);
                json_decref(object);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_ours_is_known),
                cmocka_unit_test(the_order_is_kept),
                cmocka_unit_test(paths_are_of_names_alone),
                cmocka_unit_test(patches_leave_what_is_anothers),
                cmocka_unit_test(a_controller_is_one_that_runs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
