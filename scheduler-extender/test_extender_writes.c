/* What an extender writes, and what it makes of each answer: binds of no clear end and of pods not seen yet,
 * labels, and what it wakes and tells people by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/reserve.h"
#include "tests/support/extender_bed.h"
#include "tests/support/refused_timers.h"

#define MERGE_POD(NAME)      memory_store_merge(b->memory, "Pod default/" NAME, EXTENDER_BED_POD(NAME, ""))
#define OF_TWO               ",\"labels\":{\"remuda.dev/job\":\"h\",\"remuda.dev/gang-size\":\"2\"}"
#define ASK_BIND(NAME, NODE) extender_bed_ask(b, "/scheduler/bind", EXTENDER_BED_BIND(NAME, "u-" NAME, NODE))

static bool suspends_refused; /* no memory to let a request wait */
struct http_pending *__real_http_suspend(const struct http_request *request);
struct http_pending *__wrap_http_suspend(const struct http_request *request);

struct http_pending *__wrap_http_suspend(const struct http_request *request)
{
        return suspends_refused ? NULL : __real_http_suspend(request);
}

static const struct ledger_pod *pod_of(const struct extender_bed *b, const char *name)
{
        return ledger_pods_find(cluster_ledger(b->extender->cluster), "default", name);
}

/* clang-format off */
static const struct { int result; const char *sentence, *says; bool holds; } failures[] = {
        { -ENOENT,    "no such pod",         "no such pod",                   false },
        { -ESTALE,    "another uid",         "another uid",                   false },
        { -EALREADY,  "bound elsewhere",     "bound elsewhere",               false },
        { -EINVAL,    "no bind",             "no bind",                       false },
        { -EACCES,    "not there",           "not there",                     false },
        { -EEXIST,    "is there",            "is there",                      false },
        { -ENOSPC,    "no room",             "no room",                       false },
        { -EROFS,     "read only",           "read only",                     false },
        { -EPERM,     "no right",            "no right",                      false },
        { -ECANCELED, "",                    "the bind could not be written", true },
};
/* clang-format on */

/* Chips are given back where it is certain that there was no bind. */
static void a_bind_that_failed_gives_its_chips_back(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
                MERGE_POD("x");
                memory_store_tell(b->memory);
                memory_store_refuse(b->memory, "bind", failures[i].result, failures[i].sentence);
                assert_int_equal(ASK_BIND("x", "a"), 200);
                if (strstr(b->body, failures[i].says) == NULL ||
                    (pod_of(b, "x")->node != NULL) != failures[i].holds || pod_of(b, "x")->settling)
                        fail_msg("%d: %s", failures[i].result, b->body);
        }
        assert_int_equal(b->extender->metrics.bind_failures, ARRAY_SIZE(failures));
        assert_int_equal(b->extender->metrics.binds, 0);
        extender_bed_free(b);
}

static void a_bind_of_no_clear_end_is_repeated_until_it_has_one(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        MERGE_POD("done");
        MERGE_POD("not");
        MERGE_POD("gone");
        MERGE_POD("told");
        MERGE_POD("left");
        memory_store_tell(b->memory);
        memory_store_refuse(b->memory, "bind", -EIO, "the line broke");
        assert_int_equal(ASK_BIND("done", "a"), 200);
        assert_non_null(strstr(b->body, "the line broke"));
        (void) ASK_BIND("not", "a");
        (void) ASK_BIND("gone", "a");
        (void) ASK_BIND("told", "b");
        assert_true(pod_of(b, "done")->settling && pod_of(b, "done")->assumed);
        timers_refused = true; /* none of those that are needed is made by now */
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "bind Pod default/done") > 1); /* and once more */
        memory_store_drop(b->memory, "Pod default/gone");
        memory_store_merge(b->memory, "Pod default/told", "{\"spec\":{\"nodeName\":\"b\"}}");
        memory_store_tell(b->memory);
        memory_store_refuse(b->memory, "bind Pod default/not", -ENOENT, "no such pod");
        for (uint64_t until = clock_monotonic_usec() + patience_usec(); b->extender->settling != NULL;) {
                assert_true(clock_monotonic_usec() < until);
                (void) sd_event_run(b->folder->loop, 10000); /* the answers come before the watch tells */
        }
        timers_refused = false;
        assert_true(extender_bed_said(b, "bind-settled pod=default/done node=a bound=yes\n"));
        assert_true(
                extender_bed_said(b, "bind-settled pod=default/not node=a bound=no error=\"no such pod\""));
        assert_false(extender_bed_said(b, "bind-settled pod=default/told"));
        assert_false(extender_bed_said(b, "bind-settled pod=default/gone"));
        assert_true(pod_of(b, "done")->node != NULL && !pod_of(b, "done")->settling);
        assert_null(pod_of(b, "not")->node);
        assert_int_equal(b->extender->metrics.binds_settled[0], 1);
        assert_int_equal(b->extender->metrics.binds_settled[1], 1);
        memory_store_refuse(b->memory, "bind", -EIO, "the line broke");
        (void) ASK_BIND("left", "a");
        assert_non_null(b->extender->settling);
        extender_bed_free(b); /* with one that has no end yet */
}

static void a_bind_of_a_pod_that_was_not_seen_waits_for_it(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        b->answers = 0;
        MERGE_POD("old");
        memory_store_tell(b->memory);
        extender_bed_send(b, "/scheduler/bind", EXTENDER_BED_BIND("late", "u-late", "a"));
        EXTENDER_BED_WAIT(b, b->extender->awaiting_count == 1); /* no turn of the loop until it is told of */
        MERGE_POD("other");
        memory_store_tell(b->memory);
        assert_int_equal(b->extender->awaiting_count, 1);
        MERGE_POD("late");
        memory_store_tell(b->memory);
        assert_int_equal(b->extender->awaiting_count, 0);
        extender_bed_send(b, "/scheduler/bind", EXTENDER_BED_BIND("old", "u-new", "a"));
        EXTENDER_BED_WAIT(b, b->extender->awaiting_count == 1);
        memory_store_merge(b->memory, "Pod default/old", "{\"metadata\":{\"uid\":\"u-new\"}}");
        memory_store_tell(b->memory);
        assert_int_equal(b->extender->awaiting_count, 0);
        EXTENDER_BED_WAIT(b, b->answers == 2);
        assert_int_equal(b->extender->metrics.binds, 2);
        assert_string_equal(memory_store_text(b->memory, "Pod default/late", "spec|nodeName"), "a");
        assert_string_equal(
                memory_store_text(b->memory, "Pod default/old", "metadata|annotations|remuda.dev/groups"),
                "g=2");
        assert_int_equal(ASK_BIND("never", "a"), 200);
        assert_non_null(strstr(b->body, "the pod is not in the store"));
        extender_bed_send(b, "/scheduler/bind", EXTENDER_BED_BIND("never", "u-never", "a"));
        EXTENDER_BED_WAIT(b, b->extender->awaiting_count == 1);
        extender_bed_free(b); /* with one that waits */
}

/* It is told so, and may ask again: what came of it later nobody would hear. */
static void a_bind_that_cannot_wait_is_not_made_behind_its_back(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        suspends_refused = true;
        assert_int_equal(ASK_BIND("late", "a"), 200);
        suspends_refused = false;
        assert_non_null(strstr(b->body, "the pod is not in the store"));
        assert_int_equal(b->extender->awaiting_count, 0);
        MERGE_POD("late");
        memory_store_tell(b->memory);
        assert_null(pod_of(b, "late")->node);
        assert_int_equal(memory_store_count(b->memory, "bind"), 0);
        assert_int_equal(ASK_BIND("late", "b"), 200);
        assert_string_equal(memory_store_text(b->memory, "Pod default/late", "spec|nodeName"), "b");
        extender_bed_free(b);
}

#define LABEL(NODE, NAME) memory_store_text(b->memory, "Node " NODE, "metadata|labels|remuda.dev/" NAME)
#define ODD_GROUPS                                                                                           \
        "{\"status\":{\"pool\":\"a pool\",\"groups\":["                                                      \
        "{\"name\":\"--\",\"vendor\":\"\",\"runtime\":\"x\",\"model\":\"m\",\"resource\":\"x.y/"             \
        "a\",\"fabric\":\"none\",\"total\":1,\"healthy\":1,\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1},"  \
        "{\"name\":\"one two_\",\"vendor\":\"v\",\"runtime\":\"x\",\"model\":\"A 100\",\"resource\":\"x.y/"  \
        "a\",\"fabric\":\"none\",\"total\":2,\"healthy\":2,\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1},"  \
        "{\"name\":\"three\",\"vendor\":\"v\",\"runtime\":\"x\",\"model\":\"A 100\",\"resource\":\"x.y/"     \
        "a\",\"fabric\":\"none\",\"total\":3,\"healthy\":3,\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1},"  \
        "{\"name\":\"four\",\"vendor\":\"w\",\"runtime\":\"x\",\"model\":\"??\",\"resource\":\"x.y/"         \
        "a\",\"fabric\":\"none\",\"total\":4,\"healthy\":4,\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1}]}" \
        "}"

static unsigned times_said(const struct extender_bed *b, const char *words)
{
        unsigned times = 0;

        for (const char *at = b->said.data; at != NULL && (at = strstr(at, words)) != NULL; at++)
                times++;
        return times;
}

/* Nothing changes that would have it looked at again; what it has too much of goes, too. While it is refused
 * that is said once. */
static void a_label_write_that_failed_is_tried_again(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        memory_store_refuse(b->memory, "patch Node a", -EIO, "503");
        memory_store_merge(b->memory, "Node a",
                           "{\"metadata\":{\"name\":\"a\",\"labels\":{\"remuda.dev/group.gone\":\"1\"}}}");
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "labels node=a error=\"503\""));
        assert_int_equal(b->extender->labels.rounds, 1); /* ever later while it is refused */
        EXTENDER_BED_WAIT(b, b->extender->labels.rounds == 2);
        assert_int_equal(times_said(b, "labels node=a"), 1);
        memory_store_refuse(b->memory, NULL, 0, "");
        for (uint64_t until = clock_monotonic_usec() + patience_usec();
             LABEL("a", "nvidia.count")[0] == '\0';) {
                assert_true(clock_monotonic_usec() < until);
                (void) sd_event_run(b->folder->loop, 10000);
        }
        assert_string_equal(LABEL("a", "nvidia.count"), "8");
        assert_string_equal(LABEL("a", "group.gone"), "");
        EXTENDER_BED_WAIT(b, b->extender->labels.rounds == 0);
        extender_bed_free(b);
}

static void labels_follow_the_inventory(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        memory_store_merge(b->memory, "Node a",
                           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"labels\":{\"remuda.dev/pool\":"
                           "\"old\",\"remuda.dev/group.gone\":\"1\",\"remuda.dev/node-class\":\"any\","
                           "\"remuda.dev/own\":\"x\",\"zone\":\"x\"}}}");
        EXTENDER_BED_WAIT(b, strcmp(LABEL("a", "pool"), "regular") == 0);
        assert_string_equal(LABEL("a", "nvidia.count"), "8");
        assert_string_equal(LABEL("a", "nvidia.H100.count"), "8");
        assert_string_equal(LABEL("a", "group.g"), "8");
        assert_string_equal(LABEL("a", "group.gone"), "");
        assert_string_equal(LABEL("a", "own"), "x"); /* not of ours */
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        memory_store_merge(b->memory, "NodeAccelerators a", ODD_GROUPS);
        EXTENDER_BED_WAIT(b, strcmp(LABEL("a", "v.count"), "5") == 0);
        assert_string_equal(LABEL("a", "pool"), "a-pool");
        assert_string_equal(LABEL("a", "v.A-100.count"), "5");
        assert_string_equal(LABEL("a", "w.count"), "4");
        assert_string_equal(LABEL("a", "group.one-two"), "2");
        assert_string_equal(LABEL("a", "nvidia.count"), "");
        memory_store_refuse(b->memory, "patch Node b", -EPERM, "no right");
        memory_store_merge(b->memory, "Node b", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"}}");
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "labels node=b error=\"no right\""));
        memory_store_refuse(b->memory, NULL, 0, "");
        memory_store_merge(b->memory, "NodeAccelerators b", EXTENDER_BED_INVENTORY("b"));
        EXTENDER_BED_WAIT(b, strcmp(LABEL("b", "nvidia.count"), "8") == 0);
        memory_store_drop(b->memory, "Node a");
        memory_store_drop(b->memory, "NodeAccelerators b"); /* what it had is no longer so */
        EXTENDER_BED_WAIT(b, LABEL("b", "nvidia.count")[0] == '\0');
        extender_bed_free(b);
}

#define NODES 100

/* As at the first start on a cluster: the writes of 5,000 nodes at once were 80 MiB of buffers. */
static void labels_of_many_nodes_are_written_a_few_at_a_time(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        struct labels *labels = &b->extender->labels;
        unsigned most = 0;
        char name[40], object[400];

        (void) state;
        for (int i = 0; i < NODES; i++) {
                (void) text_format(name, sizeof(name), "Node n%02d", i);
                (void) text_format(object, sizeof(object),
                                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n%02d\"}}", i);
                memory_store_merge(b->memory, name, object);
                (void) text_format(name, sizeof(name), "NodeAccelerators n%02d", i);
                memory_store_merge(b->memory, name, EXTENDER_BED_INVENTORY("x"));
                (void) text_format(object, sizeof(object), "{\"metadata\":{\"name\":\"n%02d\"}}", i);
                memory_store_merge(b->memory, name, object);
        }
        labels->writing = 15; /* that have no answer yet: all others are answered in the same turn */
        memory_store_tell(b->memory);
        for (uint64_t until = clock_monotonic_usec() + patience_usec(); labels->first != NULL;) {
                assert_true(clock_monotonic_usec() < until);
                (void) sd_event_run(b->folder->loop, 10000);
                most = labels->writing > most ? labels->writing : most;
        }
        assert_int_equal(most, 16);
        memory_store_drop(b->memory, "Node n99"); /* while its write has no answer, and it is due */
        labels_write_all(b->extender);
        EXTENDER_BED_WAIT(b, labels->writing == 15 && labels->first == NULL);
        for (int i = 1; i < NODES; i++) { /* the first was woken, too */
                (void) text_format(name, sizeof(name), "patch Node n%02d", i);
                assert_int_equal(memory_store_count(b->memory, name), 1);
        }
        assert_string_equal(LABEL("n98", "nvidia.count"), "8");
        memory_store_merge(b->memory, "Node n01", "{\"metadata\":{\"labels\":{\"remuda.dev/pool\":\"x\"}}}");
        memory_store_tell(b->memory);
        assert_non_null(labels->first);
        extender_bed_free(b); /* with one that is due */
}

static void who_waits_is_woken_and_what_is_wrong_is_told(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        char name[40];

        (void) state;
        memory_store_merge(b->memory, "Node b", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"}}");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        memory_store_tell(b->memory);
        memory_store_merge(
                b->memory, "NodeAccelerators a",
                "{\"status\":{\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":\"cuda\","
                "\"model\":"
                "\"H100\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\",\"total\":9,\"healthy\":9,"
                "\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1}]}}");
        EXTENDER_BED_WAIT(
                b,
                extender_bed_said(b, "wake node=b why=\"chips became usable\"")); /* it has a Node object */
        assert_string_not_equal(
                memory_store_text(b->memory, "Node b", "metadata|annotations|remuda.dev/changed"), "");
        memory_store_merge(b->memory, "Pod default/m", EXTENDER_BED_POD("m", OF_TWO));
        memory_store_merge(b->memory, "Pod default/n", EXTENDER_BED_POD("n", OF_TWO));
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "why=\"a gang has its members\""));
        for (int i = 0; i < 12; i++) {
                (void) text_format(name, sizeof(name), "Pod default/odd-%d", i);
                memory_store_merge(b->memory, name, EXTENDER_BED_POD("odd", ""));
                memory_store_merge(b->memory, name, "{\"spec\":{\"containers\":7}}");
        }
        memory_store_tell(b->memory);
        assert_int_equal(memory_store_count(b->memory, "event Unreadable"), 10); /* a few for many */
        memory_store_merge(b->memory, "Pod default/p", EXTENDER_BED_POD("p", ""));
        memory_store_merge(b->memory, "Pod default/p", "{\"spec\":{\"nodeName\":\"a\"}}");
        b->memory->store.rechecking = true; /* what should be known already */
        memory_store_tell(b->memory);
        b->memory->store.rechecking = false;
        assert_int_equal(memory_store_count(b->memory, "event LedgerDrift default/p"), 1);
        assert_int_equal(b->extender->metrics.drifts, 1);
        assert_true(extender_bed_said(b, "drift kind=Pod key=default/p"));
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bind_that_failed_gives_its_chips_back),
                cmocka_unit_test(a_bind_of_no_clear_end_is_repeated_until_it_has_one),
                cmocka_unit_test(a_bind_of_a_pod_that_was_not_seen_waits_for_it),
                cmocka_unit_test(a_bind_that_cannot_wait_is_not_made_behind_its_back),
                cmocka_unit_test(a_label_write_that_failed_is_tried_again),
                cmocka_unit_test(labels_follow_the_inventory),
                cmocka_unit_test(labels_of_many_nodes_are_written_a_few_at_a_time),
                cmocka_unit_test(who_waits_is_woken_and_what_is_wrong_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
