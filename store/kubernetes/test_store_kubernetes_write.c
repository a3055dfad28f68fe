/* Binds, objects, patches, evictions and events against an API server that loses, refuses and forgets them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/budgets.h"
#include "store/kubernetes/store_kubernetes.h"
#include "tests/support/kube_store.h"

static void binds_end_well_or_say_why(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_put_pod(f, "b", "u-b", "n9");
        kube_store_open_pods(f);
        kube_store_bind(f, "a", "u-a", "n1");
        assert_int_equal(f->result, 0);
        KUBE_STORE_WAIT(f, strcmp(kube_store_field(f, "Pod default/a", "spec", "nodeName"), "n1") == 0);
        kube_store_bind(f, "a", "u-a", "n1"); /* again */
        assert_int_equal(f->result, 0);
        kube_store_bind(f, "a", "u-a", "n2");
        assert_int_equal(f->result, -EALREADY);
        assert_string_equal(f->sentence, "pod 'default/a' is bound to node 'n1'");
        kube_store_bind(f, "a", "u-other", "n1");
        assert_int_equal(f->result, -ESTALE);
        kube_store_bind(f, "b", "u-b", "n9");
        assert_int_equal(f->result, 0);
        kube_store_bind(f, "none", "u", "n1");
        assert_int_equal(f->result, -ENOENT);
        kube_store_bind(f, "../x", "u", "n1");
        assert_int_equal(f->result, -EINVAL);
        kube_store_bind(f, "a", "u-a", "");
        assert_int_equal(f->result, -EINVAL);
        kube_store_free(f);
}

static void binds_survive_faults(void **state)
{
        static const char *const faults[] = {
                "\"do\":\"lost\",\"times\":1",
                "\"do\":\"close\",\"times\":1",
                "\"do\":\"close\",\"times\":3",
                "\"do\":\"status\",\"code\":500,\"times\":2",
                "\"do\":\"status\",\"code\":409,\"reason\":\"Conflict\",\"times\":2",
                "\"do\":\"status\",\"code\":429,\"retry_after\":1,\"times\":1",
                "\"do\":\"lost\",\"times\":2",
        };
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_open_pods(f);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%zu", i);
                kube_store_put_pod(f, name, name, NULL);
                kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"POST .*%s/binding\",%s}", name, faults[i]);
                kube_store_bind(f, name, name, "n1");
                if (f->result != 0)
                        fail_msg("%s: %d %s", faults[i], f->result, f->sentence);
        }
        kube_store_put_pod(f, "q", "u-q", NULL);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"POST "
                            ".*q/binding\",\"do\":\"status\",\"code\":500,\"times\":100}");
        kube_store_bind(f, "q", "u-q", "n1"); /* it gives up in the end, and says that the pod is not bound */
        assert_int_equal(f->result, -EAGAIN);
        kube_store_free(f);
}

/* Whoever stood still between the decision and the request does not send it: may_commit() says yes when the
 * write begins, and no when it would leave. */
static void nothing_leaves_after_the_lead_is_lost(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *pod = json_pack("{s:{s:s}, s:{s:[]}}", "metadata", "name", "new", "spec", "containers");
        json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "a", "b");

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        f->commits = 0;
        kube_store_open_pods(f);
        for (int asked = 0; asked < 2; asked++) {
                f->answers = 0;
                f->commits = asked;
                kube_store_bind(f, "a", "u-a", "n1");
                assert_int_equal(f->result, -EPERM);
                assert_string_equal(f->sentence,
                                    "this replica does not lead any longer; another one will do it");
                f->commits = asked;
                store_create(f->store, STORE_POD, "default", pod, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == 2);
                assert_int_equal(f->result, -EPERM);
                f->commits = asked;
                store_patch(f->store, STORE_POD, "default", "a", patch, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == 3);
                assert_int_equal(f->result, -EPERM);
                f->commits = asked;
                store_delete(f->store, STORE_POD, "default", "a", "u-a", 0, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == 4);
                assert_int_equal(f->result, -EPERM);
                f->commits = asked;
                store_evict(f->store, "default", "a", "u-a", 0, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == 5);
                assert_int_equal(f->result, -EPERM);
        }
        assert_int_equal(kube_store_count_requests(f, "POST "), 0);
        assert_int_equal(kube_store_count_requests(f, "PATCH "), 0);
        assert_int_equal(kube_store_count_requests(f, "DELETE "), 0);
        f->commits = 2;
        kube_store_bind(f, "a", "u-a", "n1");
        assert_int_equal(f->result, 0);
        json_decref(pod);
        json_decref(patch);
        kube_store_free(f);
}

static void many_binds_at_once(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        for (int i = 0; i < 200; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                kube_store_put_pod(f, name, name, NULL);
        }
        kube_store_open_pods(f);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"/binding\",\"times\":10,\"do\":\"lost\"}");
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"/binding\",\"times\":10,\"do\":\"close\"}");
        for (int i = 0; i < 200; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                store_bind(f->store,
                           &(struct store_binding){ "default", name, name, i % 2 ? "n1" : "n2", NULL },
                           kube_store_answer, f);
        }
        KUBE_STORE_WAIT(f, f->answers == 200);
        assert_int_equal(f->succeeded, 200);
        KUBE_STORE_WAIT(f, strcmp(kube_store_field(f, "Pod default/p199", "spec", "nodeName"), "n1") == 0);
        kube_store_admin(f, "{\"op\":\"stats\"}");
        assert_in_range(json_integer_value(json_object_get(f->stats, "connections")), 1,
                        150); /* kept alive, not one each */
        kube_store_free(f);
}

static void a_put_makes_the_object_and_its_status(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *inventory = json_pack("{s:s, s:{s:s, s:s}, s:{s:s}}", "kind", "NodeAccelerators", "metadata",
                                      "name", "n1", "resourceVersion", "7", "status", "pool", "regular");

        (void) state;
        kube_store_open(f, 1u << STORE_INVENTORY, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_INVENTORY] == 1);
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1);
        assert_int_equal(f->result, 0);
        (void) json_object_set_new(json_object_get(inventory, "status"), "pool", json_string("reserved"));
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        KUBE_STORE_WAIT(f, strcmp(kube_store_field(f, "NodeAccelerators n1", "status", "pool"), "reserved") ==
                                   0);
        assert_int_equal(
                kube_store_count_requests(f, "PATCH /apis/remuda.dev/v1alpha1/nodeaccelerators/n1/status"),
                3); /* 404, made, changed */
        assert_int_equal(kube_store_count_requests(f, "PATCH /apis/remuda.dev/v1alpha1/nodeaccelerators/n1?"),
                         1);
        json_decref(inventory);
        kube_store_free(f);
}

/* Somebody else writes between our reading and our writing. */
static json_t *change_late(void *userdata, const json_t *object, struct err *err)
{
        struct kube_store *f = userdata;
        json_t *changed = object == NULL ? json_pack("{s:{s:s}}", "metadata", "name", "speeds")
                                         : json_deep_copy(object);

        (void) err;
        if (f->changes++ < 2) { /* the loop is busy with us: another program says it */
                char command[400];

                (void) text_format(
                        command, sizeof(command),
                        "curl -s -o /dev/null -H 'Content-Type: application/json' "
                        "http://127.0.0.1:%u/_admin -d '{\"op\":\"put\",\"path\":"
                        "\"/apis/remuda.dev/v1alpha1/speedtables\",\"object\":{\"metadata\":{\"name\":"
                        "\"speeds\"},\"theirs%d\":\"kept\"}}'",
                        f->port, f->changes);
                assert_int_equal(system(command), 0);
        }
        (void) json_object_set_new(changed, "ours", json_string("kept"));
        return changed;
}

static json_t *change_nothing(void *userdata, const json_t *object, struct err *err)
{
        (void) userdata;
        if (object == NULL)
                (void) err_set(err, -ENOENT, "there is none");
        return NULL;
}

static void a_change_is_made_to_what_is_there(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_open(f, 1u << STORE_SPEED_TABLE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_SPEED_TABLE] == 1);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_nothing, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1);
        assert_int_equal(f->result, -ENOENT);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_late, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        assert_int_equal(f->changes, 3); /* 409 to the POST, 409 to the first PUT */
        KUBE_STORE_WAIT(f, json_object_get(json_object_get(f->objects, "SpeedTable speeds"), "ours") != NULL);
        assert_non_null(json_object_get(json_object_get(f->objects, "SpeedTable speeds"), "theirs2"));
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"PUT \",\"times\":1,\"do\":\"close\"}");
        store_change(f->store, STORE_SPEED_TABLE, NULL, "speeds", change_late, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 3);
        assert_int_equal(f->result, 0);
        store_change(f->store, STORE_SPEED_TABLE, NULL, "../x", change_late, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 4);
        assert_int_equal(f->result, -EINVAL);
        kube_store_free(f);
}

static void patches_creates_deletes_evictions(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *patch = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", 0, NULL);
        json_t *pod = json_loads("{\"metadata\":{\"name\":\"made\"},\"spec\":{}}", 0, NULL);

        (void) state;
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"" KUBE_STORE_NODES
                            "\",\"object\":{\"metadata\":{\"name\":\"n1\"}}}");
        kube_store_open(f, 1u << STORE_POD | 1u << STORE_NODE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 && f->synced[STORE_NODE] == 1);
        store_patch(f->store, STORE_NODE, NULL, "n1", patch, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1);
        assert_int_equal(f->result, 0);
        KUBE_STORE_WAIT(f,
                        json_object_get(json_object_get(json_object_get(f->objects, "Node n1"), "metadata"),
                                        "labels") != NULL);
        store_create(f->store, STORE_POD, "default", pod, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 2 && kube_store_has(f, "Pod default/made"));
        assert_int_equal(f->result, 0);
        store_create(f->store, STORE_POD, "default", pod, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 3);
        assert_int_equal(f->result, -EEXIST);
        store_evict(f->store, "default", "made", "wrong", 5, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 4);
        assert_int_equal(f->result, -ESTALE);
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"eviction\",\"times\":1,\"do\":\"status\",\"code\":429,"
                   "\"reason\":\"TooManyRequests\"}");
        store_evict(f->store, "default", "made", NULL, 5, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 5);
        assert_int_equal(f->result, -EBUSY); /* a disruption budget forbids */
        store_evict(f->store, "default", "made", NULL, 5, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 6);
        assert_int_equal(f->result, 0);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"DELETE\",\"times\":1,\"do\":\"lost\"}");
        store_delete(f->store, STORE_POD, "default", "made", NULL, 0, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 7);
        assert_true(f->result == 0 || f->result == -ENOENT); /* the reply was lost: gone either way */
        store_delete(f->store, STORE_POD, "default", "made", NULL, 0, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 8);
        assert_int_equal(f->result, -ENOENT);
        json_decref(patch);
        json_decref(pod);
        kube_store_free(f);
}

/* A Node's conditions are merged by their types, and told without the times that each heartbeat changes. */
static void a_condition_leaves_those_of_others(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *patch = json_loads("{\"status\":{\"conditions\":[{\"type\":\"Ours\",\"status\":\"False\","
                                   "\"lastHeartbeatTime\":\"2026-11-21T10:00:00Z\"}]}}",
                                   0, NULL);
        json_t *told = json_loads("[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Ours\",\"status\":"
                                  "\"False\"}]",
                                  0, NULL);

        (void) state;
        kube_store_admin(
                f, "{\"op\":\"put\",\"path\":\"" KUBE_STORE_NODES
                   "\",\"object\":{\"metadata\":{\"name\":\"n1\"},\"status\":{\"conditions\":[{\"type\":"
                   "\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2026-11-21T10:00:00Z\"}]}}}");
        kube_store_open(f, 1u << STORE_NODE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_NODE] == 1);
        store_patch(f->store, STORE_NODE, NULL, "n1", patch, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1);
        assert_int_equal(f->result, 0);
        assert_int_equal(kube_store_count_requests(f, "PATCH " KUBE_STORE_NODES "/n1/status"), 1);
        KUBE_STORE_WAIT(f, json_equal(json_object_get(json_object_get(json_object_get(f->objects, "Node n1"),
                                                                      "status"),
                                                      "conditions"),
                                      told));
        json_decref(patch);
        json_decref(told);
        kube_store_free(f);
}

static void an_eviction_that_is_tried_changes_nothing(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *pod = json_loads("{\"metadata\":{\"name\":\"made\"},\"spec\":{}}", 0, NULL);

        (void) state;
        kube_store_open(f, 1u << STORE_POD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1);
        store_create(f->store, STORE_POD, "default", pod, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1 && kube_store_has(f, "Pod default/made"));
        store_try_evict(f->store, "default", "made", NULL, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        store_try_evict(f->store, "default", "made", "wrong", kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 3);
        assert_int_equal(f->result, -ESTALE);
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"eviction\",\"times\":1,\"do\":\"status\",\"code\":429,"
                   "\"reason\":\"TooManyRequests\"}");
        store_try_evict(f->store, "default", "made", NULL, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 4);
        assert_int_equal(f->result, -EBUSY);
        assert_null(
                json_object_get(json_object_get(json_object_get(f->objects, "Pod default/made"), "metadata"),
                                "deletionTimestamp"));
        json_decref(pod);
        kube_store_free(f);
}

static void note_refused(void *userdata, const char *namespace_, const char *name, const char *why)
{
        (void) text_format(userdata, 200, "%s/%s %s", namespace_, name, why);
}

struct judged {
        char refused[200]; /* the first member: note_refused() writes there */
        struct kube_store *f;
};

static void on_judged(void *userdata, int result, const char *sentence)
{
        kube_store_answer(((struct judged *) userdata)->f, result, sentence);
}

#define BUDGETED(NAME)                                                                                       \
        "{\"op\":\"put\",\"path\":\"" KUBE_STORE_PODS "\",\"object\":{\"metadata\":{\"name\":\"" NAME        \
        "\",\"namespace\":\"default\",\"labels\":{\"app\":\"x\"}},\"spec\":{},\"status\":{\"conditions\":["  \
        "{\"type\":\"Ready\",\"status\":\"True\"}]}}}"
#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

static void budgets_are_counted_over_a_set(void **state)
{
        static const char *const names[] = { "one", "two" }, *const gone[] = { "one", "three" },
                                 *const odd[] = { "one", "../x" };
        struct judged judged = { .f = kube_store_new() };
        struct kube_store *f = judged.f;

        (void) state;
        kube_store_open_pods(f);
        kube_store_admin(f, BUDGETED("one"));
        kube_store_admin(f, BUDGETED("two"));
        budgets_judge(f->store, "default", names, 2, note_refused, on_judged, &judged);
        KUBE_STORE_WAIT(f, f->answers == 1);
        assert_string_equal(judged.refused, ""); /* there are none */
        kube_store_admin(
                f, "{\"op\":\"put\",\"path\":\"" BUDGETS "\",\"object\":{\"metadata\":{\"name\":\"keep\","
                   "\"namespace\":\"default\"},\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}},"
                   "\"status\":{\"disruptionsAllowed\":1}}}");
        budgets_judge(f->store, "default", names, 2, note_refused, on_judged, &judged);
        KUBE_STORE_WAIT(f, f->answers == 2);
        assert_int_equal(f->result, 0);
        assert_string_equal(judged.refused,
                            "default/two the disruption budget keep has no room left beside the others");
        budgets_judge(f->store, "default", gone, 2, note_refused, on_judged, &judged);
        KUBE_STORE_WAIT(f, f->answers == 3);
        assert_int_equal(f->result, -ENOENT);
        budgets_judge(f->store, "default", odd, 2, note_refused, on_judged, &judged);
        KUBE_STORE_WAIT(f, f->answers == 4);
        assert_int_equal(f->result, -EINVAL);
        kube_store_admin(f,
                         "{\"op\":\"fault\",\"match\":\"poddisruptionbudgets\",\"times\":1,\"do\":\"status\","
                         "\"code\":403,\"reason\":\"Forbidden\"}");
        budgets_judge(f->store, "default", names, 2, note_refused, on_judged, &judged);
        KUBE_STORE_WAIT(f, f->answers == 5);
        assert_int_equal(f->result, -EPERM);
        budgets_judge(f->store, "default", names, 2, note_refused, on_judged, &judged);
        kube_store_free(f); /* who is asked when it closes is answered, too */
}

static void an_event_is_said_once(void **state)
{
        struct kube_store *f = kube_store_new();
        struct store_event event = { "Pod",       "default",        "a", "u-a", "Warning",
                                     "ChipsBusy", "held by others", NULL };

        (void) state;
        kube_store_open_pods(f);
        for (int i = 0; i < 5; i++)
                store_event(f->store, &event);
        event.reason = "WrongModel";
        store_event(f->store, &event);
        for (int i = 0; i < 4; i++) { /* a part of an object has its own */
                event.field = i % 2 == 0 ? "status.devices{GPU-1}" : "status.devices{GPU-2}";
                store_event(f->store, &event);
        }
        kube_store_run_for(f, 200000);
        assert_int_equal(
                kube_store_count_requests(f, "POST /apis/events.k8s.io/v1/namespaces/default/events"), 4);
        assert_int_equal(json_array_size(f->troubles), 0);
        kube_store_free(f);
}

static uint64_t later_usec; /* by so much the loop's clock is ahead */
uint64_t __real_loop_now_usec(sd_event *loop);
uint64_t __wrap_loop_now_usec(sd_event *loop);
uint64_t __wrap_loop_now_usec(sd_event *loop)
{
        return __real_loop_now_usec(loop) + later_usec;
}

/* Objects come and go: what was said of them takes memory for as long as it is not to be said again. */
static void what_may_be_said_again_is_forgotten(void **state)
{
        struct kube_store *f = kube_store_new();
        struct store_event event = { "Pod", "default", "a", "u-a", "Warning", "ChipsBusy", "held", NULL };
        const struct name_map *said;

        (void) state;
        kube_store_open_pods(f);
        said = &((const struct store_kubernetes *) f->store)->events.said;
        for (int i = 0; i < 100; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p-%d", i);
                event.name = name;
                store_event(f->store, &event);
        }
        event.name = "a";
        later_usec += 299 * UINT64_C(1000000);
        store_event(f->store, &event);
        assert_int_equal(said->count, 101);
        later_usec += 61 * UINT64_C(1000000);
        event.name = "b";
        store_event(f->store, &event);
        store_event(f->store, &event); /* of "a" and "b" nothing is said now */
        event.name = "a";
        store_event(f->store, &event);
        assert_int_equal(said->count, 2);
        kube_store_free(f);
        later_usec = 0;
}

/* What an API server that was unwell has not kept is said again when there is reason to; what it refused is
 * not. */
static void an_event_that_was_lost_is_said_again(void **state)
{
        static const char path[] = "POST /apis/events.k8s.io/v1/namespaces/default/events";
        struct kube_store *f = kube_store_new();
        struct store_event event = { "Pod", "default", "a", "u-a", "Warning", "ChipsBusy", "held", NULL };

        (void) state;
        kube_store_open_pods(f);
        kube_store_admin(
                f,
                "{\"op\":\"fault\",\"match\":\"POST .*events\",\"do\":\"status\",\"code\":500,\"times\":1}");
        store_event(f->store, &event);
        KUBE_STORE_WAIT(f, kube_store_said(f, "an event could not be written: "));
        KUBE_STORE_WAIT(f, (store_event(f->store, &event), kube_store_count_requests(f, path) == 2));
        for (int i = 0; i < 5; i++) /* that one was kept */
                store_event(f->store, &event);
        kube_store_admin(
                f,
                "{\"op\":\"fault\",\"match\":\"POST .*events\",\"do\":\"status\",\"code\":403,\"times\":1}");
        event.reason = "WrongModel";
        store_event(f->store, &event);
        KUBE_STORE_WAIT(f, kube_store_count_requests(f, path) == 3);
        for (int i = 0; i < 5; i++) { /* a right that is missing is missing a second later, too */
                store_event(f->store, &event);
                kube_store_run_for(f, 300000);
        }
        assert_int_equal(kube_store_count_requests(f, path), 3);
        kube_store_free(f);
}

/* Of a node, at length: the text ends with a whole character; and what is refused is said. */
static void an_event_is_written_whole_or_said(void **state)
{
        struct kube_store *f = kube_store_new();
        CLEANUP(text_free) struct text message = { 0 };
        struct store_event event = { "Node", NULL, "n1", NULL, "Warning", "Unreadable", NULL, NULL };

        (void) state;
        for (int i = 0; i < 600; i++)
                text_append(&message, i == 0 ? "x" : "\u00e9");
        event.message = message.data;
        kube_store_open_pods(f);
        store_event(f->store, &event);
        KUBE_STORE_WAIT(f, kube_store_count_requests(
                                   f, "POST /apis/events.k8s.io/v1/namespaces/default/events") == 1);
        kube_store_admin(
                f,
                "{\"op\":\"fault\",\"match\":\"POST .*events\",\"do\":\"status\",\"code\":403,\"times\":1}");
        event.reason = "LedgerDrift";
        event.message = "short";
        store_event(f->store, &event);
        KUBE_STORE_WAIT(f, kube_store_said(f, "an event could not be written: "));
        assert_int_equal(json_array_size(f->troubles), 1);
        kube_store_free(f);
}

static void an_agent_gives_signs_of_life(void **state)
{
        struct kube_store *f = kube_store_new();
        static const char lease[] =
                "PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/remuda-agent.n1";

        (void) state;
        kube_store_open_pods(f);
        kube_store_admin(
                f,
                "{\"op\":\"fault\",\"match\":\"PATCH .*leases\",\"do\":\"status\",\"code\":422,\"times\":1}");
        (void) store_touch(f->store, "n1");
        KUBE_STORE_WAIT(f, kube_store_said(f, "the agent's Lease is not renewed: "));
        assert_int_equal(kube_store_count_requests(f, lease), 1);
        (void) store_touch(f->store, "n1"); /* a minute has not passed */
        kube_store_run_for(f, 50000);
        assert_int_equal(kube_store_count_requests(f, lease), 1);
        kube_store_free(f);
}

static void closing_answers_what_waits(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_put_pod(f, "b", "u-b", NULL);
        kube_store_open_pods(f);
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"a/binding\",\"times\":1,\"do\":\"delay\",\"seconds\":3}");
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"b/binding\",\"times\":100,\"do\":\"close\"}");
        store_bind(f->store, &(struct store_binding){ "default", "a", "u-a", "n1", NULL }, kube_store_answer,
                   f);
        store_bind(f->store, &(struct store_binding){ "default", "b", "u-b", "n1", NULL }, kube_store_answer,
                   f);
        kube_store_run_for(f, 300000);
        store_close(f->store);
        f->store = NULL;
        assert_int_equal(f->answers, 2);
        assert_int_equal(f->result, -ECANCELED);
        kube_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(binds_end_well_or_say_why),
                cmocka_unit_test(binds_survive_faults),
                cmocka_unit_test(nothing_leaves_after_the_lead_is_lost),
                cmocka_unit_test(many_binds_at_once),
                cmocka_unit_test(a_put_makes_the_object_and_its_status),
                cmocka_unit_test(a_change_is_made_to_what_is_there),
                cmocka_unit_test(patches_creates_deletes_evictions),
                cmocka_unit_test(an_eviction_that_is_tried_changes_nothing),
                cmocka_unit_test(budgets_are_counted_over_a_set),
                cmocka_unit_test(an_event_is_said_once),
                cmocka_unit_test(what_may_be_said_again_is_forgotten),
                cmocka_unit_test(an_event_that_was_lost_is_said_again),
                cmocka_unit_test(a_condition_leaves_those_of_others),
                cmocka_unit_test(an_event_is_written_whole_or_said),
                cmocka_unit_test(an_agent_gives_signs_of_life),
                cmocka_unit_test(closing_answers_what_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
