/* What an extender writes, and what it makes of each answer: binds of no clear end and of pods not seen yet,
 * labels, evictions for emergencies, and what it wakes and tells people by. */
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
#define ASK_BIND(NAME, NODE) extender_bed_ask(b, "/scheduler/bind", EXTENDER_BED_BIND(NAME, "u-" NAME, NODE))

static bool said(const struct extender_bed *b, const char *words)
{
        return b->said.data != NULL && strstr(b->said.data, words) != NULL;
}

static const struct ledger_pod *pod_of(const struct extender_bed *b, const char *name)
{
        return ledger_pods_find(cluster_ledger(b->extender->cluster), "default", name);
}

static struct extender_bed *begin(bool any_emergency)
{
        struct extender_bed *b = extender_bed_new();

        if (any_emergency)
                b->options.server.emergency_namespaces = "*";
        else
                dir_store_remove(b->folder, "q.json");
        extender_bed_open(b);
        extender_bed_ready(b);
        EXTENDER_BED_WAIT(b, b->extender->was_ready);
        extender_bed_to_memory(b);
        return b;
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
        struct extender_bed *b = begin(false);

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
        struct extender_bed *b = begin(false);

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
        assert_true(said(b, "bind-settled pod=default/done node=a bound=yes\n"));
        assert_true(said(b, "bind-settled pod=default/not node=a bound=no error=\"no such pod\""));
        assert_false(said(b, "bind-settled pod=default/told"));
        assert_false(said(b, "bind-settled pod=default/gone"));
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
        struct extender_bed *b = begin(false);

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

/* Nothing changes that would have it looked at again; what it has too much of goes, too. */
static void a_label_write_that_failed_is_tried_again(void **state)
{
        struct extender_bed *b = begin(false);

        (void) state;
        memory_store_refuse(b->memory, "patch Node a", -EIO, "503");
        memory_store_merge(b->memory, "Node a",
                           "{\"metadata\":{\"name\":\"a\",\"labels\":{\"remuda.dev/group.gone\":\"1\"}}}");
        EXTENDER_BED_WAIT(b, said(b, "labels node=a error=\"503\""));
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
        struct extender_bed *b = begin(false);

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
        EXTENDER_BED_WAIT(b, said(b, "labels node=b error=\"no right\""));
        memory_store_refuse(b->memory, NULL, 0, "");
        memory_store_merge(b->memory, "NodeAccelerators b", EXTENDER_BED_INVENTORY("b"));
        EXTENDER_BED_WAIT(b, strcmp(LABEL("b", "nvidia.count"), "8") == 0);

        memory_store_drop(b->memory, "Node a");
        memory_store_drop(b->memory, "NodeAccelerators b"); /* what it had is no longer so */
        EXTENDER_BED_WAIT(b, LABEL("b", "nvidia.count")[0] == '\0');
        extender_bed_free(b);
}

#define NODES 100

/* As at the first start on a cluster: each write is a connection with its buffers, and the writes of 5,000
 * nodes at once were 80 MiB. */
static void labels_of_many_nodes_are_written_a_few_at_a_time(void **state)
{
        struct extender_bed *b = begin(false);
        const struct labels *labels = &b->extender->labels;
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
        memory_store_tell(b->memory);
        for (uint64_t until = clock_monotonic_usec() + patience_usec(); labels->first != NULL;) {
                assert_true(clock_monotonic_usec() < until);
                (void) sd_event_run(b->folder->loop, 10000);
                most = labels->writing > most ? labels->writing : most;
        }
        assert_int_equal(most, 16);
        memory_store_drop(b->memory, "Node n99"); /* while its write has no answer, and it is due */
        labels_write_all(b->extender);
        EXTENDER_BED_WAIT(b, labels->writing == 0 && labels->first == NULL);
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

#define BOUND(NODE, CHIPS)                                                                                   \
        "{\"spec\":{\"nodeName\":\"" NODE "\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"   \
        "\"nvidia.com/gpu\":\"" CHIPS "\"}}}]}}"
#define EMERGENCY                                                                                            \
        "{\"metadata\":{\"labels\":{\"remuda.dev/urgency\":\"emergency\"},\"creationTimestamp\":"            \
        "\"2026-11-21T10:00:00Z\"}}"

static void put_bound(struct extender_bed *b, const char *name, const char *object, const char *bound)
{
        char key[40];

        (void) text_format(key, sizeof(key), "Pod default/%s", name);
        memory_store_merge(b->memory, key, object);
        memory_store_merge(b->memory, key, bound);
}

/* Two full nodes of others, and a reserved one of which the borrowers one and two have four chips each. */
static struct extender_bed *begin_lent(void)
{
        struct extender_bed *b = begin(true);

        memory_store_merge(b->memory, "NodeAccelerators r", EXTENDER_BED_INVENTORY("r"));
        memory_store_merge(b->memory, "NodeAccelerators r", "{\"status\":{\"pool\":\"reserved\"}}");
        put_bound(b, "on-a", EXTENDER_BED_POD("on-a", ""), BOUND("a", "8"));
        put_bound(b, "on-b", EXTENDER_BED_POD("on-b", ""), BOUND("b", "8"));
        put_bound(b, "one", EXTENDER_BED_POD("one", ""), BOUND("r", "4"));
        put_bound(b, "two", EXTENDER_BED_POD("two", ""), BOUND("r", "4"));
        return b;
}

static void an_emergency_takes_the_reserve_back(void **state)
{
        struct extender_bed *b = begin_lent();
        struct rules *rules = &b->extender->cluster->options.rules;

        (void) state;
        rules->takes = LEDGER_PODS_TAKES_NOBODY;
        memory_store_tell(b->memory);
        reserve_update(b->extender, extender_now(b->extender)); /* q waits, and may not evict */
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        rules->takes = LEDGER_PODS_TAKES_BORROWERS;
        memory_store_refuse(b->memory, "evict", -EBUSY, "a budget forbids it");
        reserve_update(b->extender, extender_now(b->extender));
        EXTENDER_BED_WAIT(b, said(b, "result=-16 a budget forbids it"));
        assert_true(said(b, "take-back pod=default/q victims=1 chips=4"));
        memory_store_refuse(b->memory, NULL, 0, "");
        reserve_update(b->extender, extender_now(b->extender)); /* that one not again within a minute */
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/two"), 1);
        memory_store_tell(b->memory);
        reserve_update(b->extender,
                       extender_now(b->extender) + 200000000); /* it fits once that one is gone */
        assert_int_equal(memory_store_count(b->memory, "evict"), 2);
        extender_bed_free(b);
}

#define ASKS(CHIPS)                                                                                          \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" CHIPS  \
        "\"}}}]}}"

static void nobody_goes_for_a_place_that_a_budget_keeps(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("8"));
        memory_store_refuse(b->memory, "try Pod default/two", -EBUSY, "429: the budget keep");
        memory_store_tell(b->memory); /* both would have to go */
        now = extender_now(b->extender);
        reserve_update(b->extender, now);
        EXTENDER_BED_WAIT(b, said(b, "spare pod=default/two 429: the budget keep"));
        assert_int_equal(memory_store_count(b->memory, "try Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "event EvictionRefused default/q"), 1);
        assert_int_equal(b->extender->metrics.evictions_refused, 1);
        reserve_update(b->extender, now + 1000000); /* with two spared there is no such plan */
        assert_int_equal(memory_store_count(b->memory, "try Pod"), 2);
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        memory_store_refuse(b->memory, NULL, 0, "");
        reserve_update(b->extender, now + 70000000);
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        extender_bed_free(b);
}

/* Each could go by himself, but not both: nobody is asked, and what cannot be read stops nobody. */
static void who_shares_a_budget_is_counted_together(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("8"));
        memory_store_refuse(b->memory, "beside Pod default/two", -EBUSY, "the budget keep");
        memory_store_tell(b->memory);
        now = extender_now(b->extender);
        reserve_update(b->extender, now);
        EXTENDER_BED_WAIT(b, said(b, "spare pod=default/two the budget keep"));
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "judge default") == 1);
        assert_int_equal(memory_store_count(b->memory, "beside Pod default/one"), 1);
        reserve_update(b->extender, now + 1000000);
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        memory_store_refuse(b->memory, "judge", -EPERM, "not yours");
        reserve_update(b->extender, now + 70000000);
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        assert_true(said(b, "budgets not read: result=-1 not yours"));
        extender_bed_free(b);
}

#define JOB_ON(NODE)                                                                                         \
        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\","     \
        "\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{\"urgency\":\"emergency\",\"workers\":["         \
        "{\"runtime\":\"cuda\",\"chips\":8}],\"programs\":{\"cuda\":{\"image\":\"x\",\"command\":[\"/x\"]}}" \
        "},\"status\":{\"phase\":\"Starting\",\"world\":0,\"plan\":{\"samples\":0,\"notes\":[]},"            \
        "\"subtasks\":[{\"name\":\"w0-0\",\"role\":\"worker\",\"entry\":0,\"index\":0,\"incarnation\":0,"    \
        "\"node\":\"" NODE                                                                                   \
        "\",\"group\":\"g\",\"runtime\":\"cuda\",\"vendor\":\"nvidia\",\"model\":\"H100\","                  \
        "\"resource\":\"nvidia.com/gpu\",\"chips\":8,\"ranks\":8,\"firstRank\":0,\"batch\":256,\"weight\":"  \
        "1,\"speedSource\":\"assumed\",\"state\":\"Waiting\"}]}}"

/* Emergencies that nothing helps use up the steps of every look; the youngest has his turn. */
static void who_was_not_come_to_has_his_turn(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        b->extender->reserve_steps = 0;
        put_bound(b, "q", EXTENDER_BED_POD("q", ""), EMERGENCY);
        put_bound(b, "e1", EXTENDER_BED_POD("e1", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("9"));
        put_bound(b, "e2", EXTENDER_BED_POD("e2", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("10"));
        memory_store_tell(b->memory);
        now = extender_now(b->extender);
        for (int looks = 0; looks < 3; looks++)
                (void) reserve_update(b->extender, now);
        assert_true(said(b, "take-back pod=default/q victims=1 chips=4"));
        extender_bed_free(b);
}

/* Nor do plans, which are served before, use up theirs. */
static void pods_have_their_turn_beside_plans(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        b->extender->reserve_steps = 0;
        put_bound(b, "q", EXTENDER_BED_POD("q", ""), EMERGENCY);
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_ON("s"));
        memory_store_tell(b->memory);
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        (void) reserve_update(b->extender, extender_now(b->extender));
        assert_true(said(b, "take-back pod=default/q victims=1 chips=4"));
        extender_bed_free(b);
}

static void a_plan_of_an_emergency_has_room_made(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        memory_store_drop(b->memory, "Pod default/q"); /* the only one that is urgent is the job */
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_ON("r"));
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/two"), 1);
        reserve_update(b->extender, extender_now(b->extender)); /* not again, as long as they go */
        assert_int_equal(memory_store_count(b->memory, "evict"), 2);
        extender_bed_free(b);
}

#define SUBTASK(NAME, INDEX, NODE, CHIPS, FIRST)                                                             \
        "{\"name\":\"" NAME "\",\"role\":\"worker\",\"entry\":0,\"index\":" INDEX                            \
        ",\"incarnation\":0,\"node\":\"" NODE                                                                \
        "\",\"group\":\"g\",\"runtime\":\"cuda\",\"vendor\":\"nvidia\",\"model\":\"H100\",\"resource\":"     \
        "\"nvidia.com/gpu\",\"chips\":" CHIPS ",\"ranks\":" CHIPS ",\"firstRank\":" FIRST                    \
        ",\"batch\":128,\"weight\":0.5,\"speedSource\":\"assumed\",\"state\":\"Waiting\"}"
#define JOB_THAT_BORROWS                                                                                     \
        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\","     \
        "\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{\"workers\":[{\"runtime\":\"cuda\",\"chips\":"   \
        "12}]"                                                                                               \
        ",\"programs\":{\"cuda\":{\"image\":\"x\",\"command\":[\"/"                                          \
        "x\"]}}},\"status\":{\"phase\":\"Starting\""                                                         \
        ",\"world\":0,\"plan\":{\"samples\":0,\"notes\":[]},\"subtasks\":[" SUBTASK(                         \
                "w0-0", "0", "r", "4", "0") "," SUBTASK("w0-1", "1", "s", "8", "4") "]}}"

/* A plan's place is its pod's as long as that is there, also in what is tried on. */
static void a_plan_gets_no_second_lease_for_a_pod_that_goes(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("4"));
        memory_store_drop(b->memory, "Pod default/two"); /* its chips are those of the job's first pod */
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_THAT_BORROWS);
        put_bound(b, "j-w0-0", EXTENDER_BED_POD("j-w0-0", ",\"deletionTimestamp\":\"2026-11-21T10:00:00Z\""),
                  BOUND("r", "4"));
        memory_store_tell(b->memory);
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        reserve_update(b->extender, extender_now(b->extender));
        assert_int_equal(memory_store_count(b->memory, "try Pod"), 0); /* what it leaves is enough */
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        extender_bed_free(b);
}

#define OF_AMD(CHIPS)                                                                                        \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\","    \
        "\"amd.com/gpu\":\"" CHIPS "\"}}}]}}"
#define OF_GANG(TIME)                                                                                        \
        ",\"labels\":{\"remuda.dev/urgency\":\"emergency\",\"remuda.dev/job\":\"h\"},\"annotations\":{"      \
        "\"remuda.dev/gang\":\"nvidia.com/gpu=8x1,amd.com/gpu=8x1\"},\"creationTimestamp\":"                 \
        "\"2026-11-21T10:00:0" TIME "Z\""
#define AMD_RESERVED                                                                                         \
        "{\"status\":{\"pool\":\"reserved\",\"groups\":[{\"name\":\"g\",\"vendor\":\"amd\",\"runtime\":"     \
        "\"rocm\",\"model\":\"MI300X\",\"resource\":\"amd.com/gpu\",\"fabric\":\"none\",\"total\":8,"        \
        "\"healthy\":8,\"free\":0,\"tflopsBf16\":100,\"memoryBytes\":85899345920}]}}"

/* Whichever of its members came last. */
static void a_gang_of_unlike_chips_has_each_kind_held(void **state)
{
        struct extender_bed *b = begin_lent();
        const struct ledger *ledger = cluster_ledger(b->extender->cluster);

        (void) state;
        memory_store_drop(b->memory, "Pod default/q");
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "NodeAccelerators s", AMD_RESERVED);
        memory_store_tell(b->memory);
        put_bound(b, "three", EXTENDER_BED_POD("three", ",\"labels\":{}"), OF_AMD("8"));
        memory_store_merge(b->memory, "Pod default/three", "{\"spec\":{\"nodeName\":\"s\"}}");
        for (int turn = 0; turn < 2; turn++) {
                put_bound(b, "n", EXTENDER_BED_POD("n", OF_GANG("0")), ASKS("8"));
                if (turn == 0)
                        memory_store_tell(b->memory);
                put_bound(b, "m", EXTENDER_BED_POD("m", OF_GANG("1")), OF_AMD("8"));
                memory_store_tell(b->memory);
                reserve_update(b->extender, extender_now(b->extender));
                for (uint32_t i = 0; i < ledger->node_count; i++) {
                        const struct ledger_node *node = ledger->nodes[i];
                        struct request request = { .item_count = 1,
                                                   .items = { { node->groups[0].resource, 1 } } };
                        struct rules_context other = { .ledger = ledger,
                                                       .rules = cluster_rules(b->extender->cluster),
                                                       .request = &request };

                        if (node->reserved && rules_holder(&other, node) == NULL)
                                fail_msg("turn %d: on %s nothing is held", turn, node->name);
                }
                memory_store_drop(b->memory, "Pod default/n");
                memory_store_drop(b->memory, "Pod default/m");
                put_bound(b, "m", EXTENDER_BED_POD("m", OF_GANG("1")), OF_AMD("8"));
                memory_store_tell(b->memory);
        }
        extender_bed_free(b);
}

static void who_waits_is_woken_and_what_is_wrong_is_told(void **state)
{
        struct extender_bed *b = begin(false);
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
        EXTENDER_BED_WAIT(b, said(b, "wake node=b why=\"chips became usable\"")); /* it has a Node object */
        assert_string_not_equal(
                memory_store_text(b->memory, "Node b", "metadata|annotations|remuda.dev/changed"), "");

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
        assert_true(said(b, "drift kind=Pod key=default/p"));
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bind_that_failed_gives_its_chips_back),
                cmocka_unit_test(a_bind_of_no_clear_end_is_repeated_until_it_has_one),
                cmocka_unit_test(a_bind_of_a_pod_that_was_not_seen_waits_for_it),
                cmocka_unit_test(a_label_write_that_failed_is_tried_again),
                cmocka_unit_test(labels_follow_the_inventory),
                cmocka_unit_test(labels_of_many_nodes_are_written_a_few_at_a_time),
                cmocka_unit_test(an_emergency_takes_the_reserve_back),
                cmocka_unit_test(who_was_not_come_to_has_his_turn),
                cmocka_unit_test(pods_have_their_turn_beside_plans),
                cmocka_unit_test(nobody_goes_for_a_place_that_a_budget_keeps),
                cmocka_unit_test(who_shares_a_budget_is_counted_together),
                cmocka_unit_test(a_plan_of_an_emergency_has_room_made),
                cmocka_unit_test(a_plan_gets_no_second_lease_for_a_pod_that_goes),
                cmocka_unit_test(a_gang_of_unlike_chips_has_each_kind_held),
                cmocka_unit_test(who_waits_is_woken_and_what_is_wrong_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
