/* Objects of a store into a ledger: what is told of those that cannot be read, of an audit that finds another
 * truth, and of classes and signs of life. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/speeds/speed_table.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"
#include "tests/support/memory_store.h"
#include "tests/support/told_cluster.h"

struct bed {
        struct dir_store *folder;
        struct cluster *cluster;
        struct memory_store *store;
        struct text said; /* a line each */
        unsigned changes, observations;
};

static void on_changed(void *userdata)
{
        ((struct bed *) userdata)->changes++;
}

static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) kind;
        (void) key;
        (void) object;
        ((struct bed *) userdata)->observations++;
}

static void on_trouble(void *userdata, const char *sentence)
{
        text_printf(&((struct bed *) userdata)->said, "trouble %s\n", sentence);
}

static void on_drifted(void *userdata, enum store_kind kind, const char *key, const char *sentence)
{
        text_printf(&((struct bed *) userdata)->said, "drift %s %s: %s\n", store_kind_name(kind), key,
                    sentence);
}

static void on_unreadable(void *userdata, enum store_kind kind, const char *key, const char *sentence)
{
        text_printf(&((struct bed *) userdata)->said, "unreadable %s %s: %s\n", store_kind_name(kind), key,
                    sentence);
}

static void on_node_changed(void *userdata, const char *node, bool gained)
{
        text_printf(&((struct bed *) userdata)->said, "node %s%s\n", node, gained ? " gained" : "");
}

static struct bed *begin(void)
{
        struct bed *b = calloc(1, sizeof(*b));

        assert_non_null(b);
        b->folder = dir_store_new();
        b->cluster = told_cluster(b->folder,
                                  (struct cluster_options){ .reads_classes = true,
                                                            .reads_budgets = true,
                                                            .changed = on_changed,
                                                            .observed = on_observed,
                                                            .trouble = on_trouble,
                                                            .drifted = on_drifted,
                                                            .unreadable = on_unreadable,
                                                            .node_changed = on_node_changed,
                                                            .userdata = b },
                                  TOLD_PLAIN("a", "H100", "8"));
        b->store = memory_store_replace(&b->cluster->store);
        return b;
}

static void end(struct bed *b)
{
        cluster_close(b->cluster);
        dir_store_free(b->folder);
        text_free(&b->said);
        free(b);
}

static void tell(struct bed *b, const char *name, const char *json)
{
        memory_store_merge(b->store, name, json);
        memory_store_tell(b->store);
}

static bool said(struct bed *b, const char *words)
{
        return b->said.data != NULL && strstr(b->said.data, words) != NULL;
}

/* clang-format off */
static const struct { const char *name, *json, *says; } odd[] = {
        { "Pod default/x",      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":7}}",                 "unreadable Pod default/x: " },
        { "Pod default/y",      "{\"metadata\":{\"name\":7}}",                                                 "unreadable Pod default/y: " },
        { "Node n",             "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":7}}",              "unreadable Node n: " },
        { "NodeAccelerators n", "{\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"n\"},\"status\":7}",  "unreadable NodeAccelerators n: inventory: " },
        { "NodeAccelerators m", "{\"kind\":\"Node\"}",                                                         "unreadable NodeAccelerators m: inventory: not a NodeAccelerators object" },
        { "TrainingJob default/j", "{\"metadata\":{\"name\":\"j\"},\"spec\":{}}",                              "unreadable TrainingJob default/j: " },
        { "PriorityClass c",    "{\"value\":\"much\"}",                                                        "unreadable PriorityClass c: " },
        { "PriorityClass d",    "{\"value\":1,\"globalDefault\":1}",                                           "unreadable PriorityClass d: " },
        { "SpeedTable s",       "{\"speeds\":7}",                                                              "unreadable SpeedTable s: " },
        { "Lease kube-node-lease/a", "{\"spec\":{\"renewTime\":7}}",                                           "" },
};
/* clang-format on */

static void what_cannot_be_read_is_said_once(void **state)
{
        struct bed *b = begin();
        const char *example;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
                text_reset(&b->said);
                tell(b, odd[i].name, odd[i].json);
                if (odd[i].says[0] != '\0' && !said(b, odd[i].says))
                        fail_msg("%s %s: %s", odd[i].name, odd[i].json, b->said.data);
                text_reset(&b->said);
                tell(b, odd[i].name, "{}"); /* the same again */
                if (said(b, "unreadable"))
                        fail_msg("%s, again: %s", odd[i].name, b->said.data);
        }
        assert_int_equal(cluster_unreadable(b->cluster, STORE_POD, &example), 2);
        assert_true(strcmp(example, "default/x") == 0 || strcmp(example, "default/y") == 0);
        memory_store_drop(b->store, "Pod default/x");
        memory_store_drop(b->store, "Pod default/y");
        memory_store_tell(b->store);
        assert_int_equal(cluster_unreadable(b->cluster, STORE_POD, &example), 0);
        assert_string_equal(example, "");
        end(b);
}

#define FEW(TOTAL, HEALTHY)                                                                                  \
        "{\"kind\":\"NodeAccelerators\",\"apiVersion\":\"remuda.dev/v1alpha1\",\"metadata\":{\"name\":"      \
        "\"a\"},\"status\":{\"generation\":1,\"bootID\":\"b\",\"nodeClass\":\"any\",\"pool\":\"regular\","   \
        "\"devices\":[],\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":\"cuda\",\"model\":"   \
        "\"H100\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\",\"total\":" TOTAL                      \
        ",\"healthy\":" HEALTHY ",\"free\":0,\"tflopsBf16\":1,\"memoryBytes\":1}]}}"

#define POD_ON(NODE)                                                                                         \
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},\"spec\":{\"nodeName\":\"" NODE                        \
        "\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]}}"
#define POD_WAITS                                                                                            \
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},\"spec\":{\"containers\":[{\"name\":\"c\","            \
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]}}"
#define HAD "drift Pod default/p: the ledger had "

/* clang-format off */
/* The pod as it was told (NULL = it was not) and as a fresh look finds it (NULL = it is gone). */
static const struct { const char *before, *now, *says; } truths[] = {
        { NULL,          POD_ON("a"), HAD "nothing, a fresh look at the store says 2 chips on node a; corrected" },
        { POD_ON("a"),   POD_ON("a"), NULL },
        { POD_WAITS,     POD_ON("a"), HAD "that it is on no node, a fresh look at the store says 2 chips on node a; corrected" },
        { POD_ON("a"),   POD_ON("b"), HAD "2 chips on node a, a fresh look at the store says 2 chips on node b; corrected" },
        { POD_ON("a"),   "{\"status\":{\"phase\":\"Failed\"}}", HAD "2 chips on node a, a fresh look at the store says that it has ended; corrected" },
        { POD_ON("a"),   NULL,        HAD "2 chips on node a, a fresh look at the store says nothing; corrected" },
        { POD_WAITS,     NULL,        NULL },
        { NULL,          NULL,        NULL },
};
/* clang-format on */

static void an_audit_says_what_the_ledger_had_wrong(void **state)
{
        struct bed *b = begin();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(truths); i++) {
                if (truths[i].before != NULL)
                        tell(b, "Pod default/p", truths[i].before);
                text_reset(&b->said);
                b->store->store.rechecking = true;
                if (truths[i].now != NULL)
                        memory_store_merge(b->store, "Pod default/p", truths[i].now);
                else
                        memory_store_drop(b->store, "Pod default/p");
                memory_store_tell(b->store);
                b->store->store.rechecking = false;
                if (truths[i].says == NULL ? said(b, "drift") : !said(b, truths[i].says))
                        fail_msg("%zu: %s", i, b->said.data);
                memory_store_drop(b->store, "Pod default/p");
                memory_store_tell(b->store);
        }
        tell(b, "NodeAccelerators a", FEW("8", "8"));
        b->store->store.rechecking = true; /* and of a node */
        tell(b, "NodeAccelerators a", FEW("8", "7"));
        b->store->store.rechecking = false;
        assert_true(said(b,
                         "drift NodeAccelerators a: the ledger had 8 usable chips, a fresh look at the store "
                         "says 7 usable chips; corrected"));
        end(b);
}

/* A bind that was not: a list that was read afterwards shows the pod without a node. */
static void a_fresh_look_takes_back_what_was_assumed(void **state)
{
        struct bed *b = begin();
        struct ledger *ledger = cluster_ledger(b->cluster);
        struct ledger_pod *pod;

        (void) state;
        for (int held = 0; held < 4; held++) {
                tell(b, "Pod default/p", POD_WAITS);
                pod = ledger_pods_find(ledger, "default", "p");
                assert_non_null(pod);
                if (pod->node == NULL)
                        assert_int_equal(
                                ledger_pods_assume(ledger, pod, ledger_nodes_find(ledger, "a", 1), NULL, 0),
                                0);
                pod->writing = held == 0; /* is being written, has no clear end yet, or was written */
                pod->settling = held == 1;
                pod->done = held == 2;
                b->store->store.listing = true;
                tell(b, "Pod default/p", POD_WAITS);
                b->store->store.listing = false;
                assert_int_equal(ledger_pods_find(ledger, "default", "p")->node == NULL, held == 3);
        }
        assert_false(said(b, "drift"));
        end(b);
}

static void a_class_is_worth_what_was_said_last(void **state)
{
        struct bed *b = begin();
        int64_t value = 7;

        (void) state;
        assert_int_equal(cluster_class_value(b->cluster, "", &value), 0);
        assert_int_equal(value, 0);
        tell(b, "PriorityClass high", "{\"value\":1000}");
        tell(b, "PriorityClass low", "{\"value\":-5,\"globalDefault\":true}");
        tell(b, "PriorityClass usual", "{\"value\":-3,\"globalDefault\":true}");
        assert_int_equal(cluster_class_value(b->cluster, "high", &value), 0);
        assert_int_equal(value, 1000);
        assert_int_equal(cluster_class_value(b->cluster, "", &value), 0);
        assert_int_equal(value, -5); /* of several the smallest */
        memory_store_drop(b->store, "PriorityClass low");
        tell(b, "PriorityClass usual", "{\"value\":9,\"globalDefault\":false}");
        assert_int_equal(cluster_class_value(b->cluster, "", &value), 0);
        assert_int_equal(value, 0);
        assert_int_equal(cluster_class_value(b->cluster, "usual", &value), 0);
        assert_int_equal(value, 9);
        assert_int_equal(cluster_class_value(b->cluster, "low", &value), -ENOENT);
        b->cluster->synced &= ~(1u << STORE_PRIORITY_CLASS);
        assert_int_equal(cluster_class_value(b->cluster, "low", &value), -EAGAIN);
        end(b);
}

#define LOSES                                                                                                \
        "{\"status\":{\"devices\":[{\"id\":\"d0\",\"group\":\"g\",\"vendor\":\"nvidia\",\"model\":\"H100\"," \
        "\"index\":0,\"pci\":\"\",\"numa\":0,\"nodes\":[],\"health\":\"unhealthy\",\"reason\":\"x\","        \
        "\"since\":\"2026-11-21T10:00:00Z\",\"heldBy\":[\"default/p\"]}]}}"
static void who_sits_on_a_sick_chip_is_known(void **state)
{
        struct bed *b = begin();
        const struct ledger *ledger = cluster_ledger(b->cluster);
        char device[DEVICE_ID_BYTES];

        (void) state;
        tell(b, "NodeAccelerators a", FEW("8", "8"));
        tell(b, "Pod default/p", POD_WAITS);
        assert_false(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), device)); /* on no node */
        tell(b, "Pod default/p", POD_ON("a"));
        assert_false(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), NULL));
        tell(b, "NodeAccelerators a", FEW("8", "1")); /* it has two, and one is healthy */
        assert_true(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), device));
        assert_string_equal(device, "");
        tell(b, "NodeAccelerators a", FEW("8", "7"));
        assert_false(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), device));
        tell(b, "NodeAccelerators a", LOSES);
        assert_true(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), device));
        assert_string_equal(device, "d0");
        tell(b, "Pod default/p", "{\"metadata\":{\"annotations\":{\"remuda.dev/groups\":\"g=2\"}}}");
        assert_true(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), NULL));
        tell(b, "NodeAccelerators a", FEW("8", "1"));
        assert_true(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), NULL));
        tell(b, "Pod default/p", "{\"status\":{\"phase\":\"Succeeded\"}}");
        assert_false(ledger_sick_of_pod(ledger_pods_find(ledger, "default", "p"), NULL));
        end(b);
}

static void what_a_node_offers_too_much_of_is_said_once(void **state)
{
        CLEANUP(text_free) struct text node = { 0 };
        struct bed *b = begin();

        (void) state;
        text_append(&node, "{\"metadata\":{\"name\":\"a\"},\"status\":{\"allocatable\":{");
        for (unsigned i = 0; i < GROUPS_MAX + 7; i++)
                text_printf(&node, "\"x.y/r%u\":\"1\",", i);
        text_append(&node, "\"cpu\":\"8\"}}}");
        text_reset(&b->said);
        tell(b, "Node a", node.data);
        assert_true(said(b, "Node a: offers 7 extended resources more than the 256 that are kept"));
        text_reset(&b->said);
        tell(b, "Node a", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
        assert_false(said(b, "offers 7"));
        memory_store_merge(b->store, "NodeAccelerators b", FEW("8", "8"));
        tell(b, "NodeAccelerators b", "{\"metadata\":{\"name\":\"b\"}}");
        tell(b, "Node b",
             "{\"metadata\":{\"name\":\"b\"},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"9\"}}}");
        assert_true(said(b, "Node b: offers 9 of nvidia.com/gpu"));
        assert_int_equal(b->cluster->offer_troubles.map.count, 2);
        memory_store_drop(b->store, "NodeAccelerators b");
        memory_store_drop(b->store, "Node a");
        memory_store_tell(b->store); /* of who is gone nothing is kept */
        assert_int_equal(b->cluster->offer_troubles.map.count, 0);
        end(b);
}

/* The watch failed, or the process stood still: nobody is silent then, and waiting pods are to know. */
static void silence_that_is_not_believed_ends_for_those_who_wait(void **state)
{
        struct bed *b = begin();
        struct ledger *ledger = b->cluster->ledger;

        (void) state;
        b->cluster->is_directory = false;
        b->cluster->options.judge_age = true;
        b->cluster->options.rules.stale_after_usec = 60000000;
        ledger_set_seen(ledger, ledger_nodes_find(ledger, "a", 1), 1000);
        ledger->liveness = (struct liveness){ .silent_before_usec = 2000 }; /* looked at last long ago */
        text_reset(&b->said);
        cluster_every_second(b->cluster);
        assert_true(said(b, "node a gained\n"));
        text_reset(&b->said);
        cluster_every_second(b->cluster);
        assert_false(said(b, "node a"));
        end(b);
}

static void of_a_speed_table_that_is_gone_nothing_is_kept(void **state)
{
        static const char *const tables[] = { "s", SPEED_TABLE_NAME };
        struct bed *b = begin();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                char name[40];

                (void) text_format(name, sizeof(name), "SpeedTable %s", tables[i]);
                text_reset(&b->said);
                tell(b, name, "{\"kind\":\"SpeedTable\",\"speeds\":{\"x\":7}}");
                assert_true(said(b, "1 rows make no sense"));
                assert_int_equal(b->cluster->speed_troubles.map.count, 1);
                tell(b, name, "{\"kind\":\"SpeedTable\",\"speeds\":7}");
                assert_true(said(b, "unreadable SpeedTable"));
                memory_store_drop(b->store, name);
                memory_store_tell(b->store);
                assert_int_equal(b->cluster->speed_troubles.map.count, 0);
                assert_int_equal(b->cluster->unreadable[STORE_SPEED_TABLE].map.count, 0);
        }
        end(b);
}

static void a_store_that_tells_nothing_is_given_up(void **state)
{
        struct dir_store *folder = dir_store_new();
        char config[100];
        const struct cluster_options options = { .store = "kubernetes", .kubeconfig = config },
                                     none = { .store = "dir:/no/such/folder" };
        struct cluster *cluster = NULL;
        struct err err = { 0 };

        (void) state;
        dir_store_write(
                folder, "config",
                "{current-context: c, contexts: [{name: c, context: {cluster: k}}], clusters: [{name: k, "
                "cluster: {server: 'http://127.0.0.1:1'}}]}");
        (void) text_format(config, sizeof(config), "%s/config", folder->path);
        assert_int_equal(cluster_load(folder->loop, &none, 20000, &cluster, &err), -ENOENT);
        assert_null(cluster);
        assert_int_equal(cluster_load(folder->loop, &options, 20000, &cluster, &err), -ETIMEDOUT);
        assert_null(cluster);
        assert_string_equal(err.msg, "the store 'kubernetes' did not tell all it has in time");
        dir_store_free(folder);
}

/* Any tenant may write disruption budgets: they are seen, and nothing is thought over for them. */
static void what_the_ledger_does_not_take_changes_nothing(void **state)
{
        struct bed *b = begin();

        (void) state;
        b->changes = b->observations = 0;
        tell(b, "PodDisruptionBudget default/theirs", "{\"metadata\":{\"name\":\"theirs\"}}");
        assert_int_equal(b->observations, 1);
        assert_int_equal(b->changes, 0);
        tell(b, "Pod default/p", "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}");
        assert_int_equal(b->observations, 2);
        assert_int_equal(b->changes, 1);
        end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_read_is_said_once),
                cmocka_unit_test(an_audit_says_what_the_ledger_had_wrong),
                cmocka_unit_test(a_fresh_look_takes_back_what_was_assumed),
                cmocka_unit_test(a_class_is_worth_what_was_said_last),
                cmocka_unit_test(who_sits_on_a_sick_chip_is_known),
                cmocka_unit_test(what_a_node_offers_too_much_of_is_said_once),
                cmocka_unit_test(silence_that_is_not_believed_ends_for_those_who_wait),
                cmocka_unit_test(of_a_speed_table_that_is_gone_nothing_is_kept),
                cmocka_unit_test(a_store_that_tells_nothing_is_given_up),
                cmocka_unit_test(what_the_ledger_does_not_take_changes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
