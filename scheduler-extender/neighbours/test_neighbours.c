/* Who is beside whom: gangs and holds are placed where kube-scheduler's InterPodAffinity and
 * PodTopologySpread let them go, and filter is told nothing of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/neighbours/neighbour_view.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define GANG    "default\nof=gang\n"
#define WEB     "default\napp=web\n"
#define FELLOWS "@\tdefault\ni\tof\tgang\n"
#define WEBS    "@\tdefault\ni\tapp\tweb\n"

struct node {
        const char *name, *zone; /* zone NULL: it has no such label */
        unsigned chips;
};

struct pod {
        const char *node, *labels, *demands;
        bool deleting;
};

struct row {
        const char *what;
        struct node nodes[4];
        struct pod pods[3];
        const char *demands; /* of each member */
        uint32_t size;
        const char *plan; /* members by node; "" = it does not fit */
};

static void set_labels(struct ledger *l, const char *name, const char *zone, const char *more)
{
        char traits[128];
        struct ledger_node_facts facts = { .name = name, .traits = traits };

        assert_true(text_format(traits, sizeof(traits), "host=%s\n%s%s%s%s", name,
                                zone == NULL ? "" : "zone=", zone == NULL ? "" : zone,
                                zone == NULL ? "" : "\n", more));
        assert_int_equal(ledger_nodes_set(l, &facts), 0);
}

static struct ledger *cluster_of(const struct node *nodes)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        for (size_t i = 0; i < 4 && nodes[i].name != NULL; i++) {
                add_node(l, nodes[i].name, NODE_CLASS_ANY, "regular", "H100", nodes[i].chips, nodes[i].chips);
                set_labels(l, nodes[i].name, nodes[i].zone, "");
        }
        return l;
}

static void put(struct ledger *l, const char *name, const struct pod *pod)
{
        struct ledger_pod_facts facts = pod_of(l, name, 0);

        facts.node = pod->node;
        facts.labels = pod->labels;
        facts.demands = pod->demands;
        facts.deleting = pod->deleting;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static struct ledger_pod *member(struct ledger *l, const char *name, uint32_t size, uint32_t chips,
                                 const char *labels, const char *demands)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.job = size > 1 ? "train" : NULL;
        facts.labels = labels;
        facts.demands = demands;
        facts.request.gang_size = size;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        return ledger_pods_find(l, "default", name);
}

static void add_members(struct ledger *l, uint32_t size, const char *demands)
{
        char name[16];

        for (uint32_t i = 0; i < size; i++) {
                assert_true(text_format(name, sizeof(name), "m-%u", i));
                (void) member(l, name, size, 1, GANG, demands);
        }
}

static const char *plan_of(const struct ledger *l, char *ret, size_t bytes)
{
        CLEANUP(text_free) struct text text = { 0 };

        text_append(&text, "");
        for (uint32_t i = 0; i < l->node_count; i++) {
                uint32_t count = 0;

                for (const struct ledger_job_slot *s = l->nodes[i]->slots; s != NULL; s = s->next_on_node)
                        count++;
                if (count > 0)
                        text_printf(&text, "%s%u", l->nodes[i]->name, count);
        }
        assert_false(text.failed);
        assert_true(text_copy(ret, bytes, text.data));
        return ret;
}

/* clang-format off */
static const struct row rows[] = {
        { "one a host", { { "a", "y", 4 }, { "b", "y", 4 } }, { { 0 } }, "A\thost\n" FELLOWS, 2, "a1b1" },
        { "... and no third", { { "a", "y", 4 }, { "b", "y", 4 } }, { { 0 } }, "A\thost\n" FELLOWS, 3, "" },
        { "one a zone", { { "a", "y", 2 }, { "b", "z", 4 } }, { { 0 } }, "A\tzone\n" FELLOWS, 2, "a1b1" },
        { "... of two hosts in a zone one", { { "a", "y", 4 }, { "b", "y", 4 } }, { { 0 } }, "A\tzone\n" FELLOWS, 2, "" },
        { "a node without the key is in nobody's way", { { "a", NULL, 4 }, { "b", "y", 1 } }, { { 0 } }, "A\tzone\n" FELLOWS, 4, "a3b1" },
        { "not beside a web server", { { "a", "y", 4 }, { "b", "z", 2 } }, { { "a", WEB, NULL, false } }, "A\thost\n" WEBS, 2, "b2" },
        { "... also one that is going", { { "a", "y", 4 }, { "b", "z", 2 } }, { { "a", WEB, NULL, true } }, "A\thost\n" WEBS, 2, "b2" },
        { "... but beside those of other namespaces", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", "other\napp=web\n", NULL, false } }, "A\thost\n" WEBS, 2, "a2" },
        { "of all namespaces", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", "other\napp=web\n", NULL, false } }, "A\thost\n@\t*\ni\tapp\tweb\n", 2, "b2" },
        { "together in the zone that has room", { { "a", "y", 1 }, { "b", "z", 4 } }, { { 0 } }, "N\tzone\n" FELLOWS, 3, "b3" },
        { "... which may be two hosts", { { "a", "y", 1 }, { "b", "z", 2 }, { "c", "z", 1 } }, { { 0 } }, "N\tzone\n" FELLOWS, 3, "b2c1" },
        { "... or none", { { "a", "y", 2 }, { "b", "z", 2 } }, { { 0 } }, "N\tzone\n" FELLOWS, 3, "" },
        { "together on a host", { { "a", "y", 2 }, { "b", "y", 3 } }, { { 0 } }, "N\thost\n" FELLOWS, 3, "b3" },
        { "together, and not on one host", { { "a", "y", 1 }, { "b", "z", 4 }, { "c", "z", 4 } }, { { 0 } }, "N\tzone\n" FELLOWS "A\thost\n" FELLOWS, 2, "b1c1" },
        { "near a web server", { { "a", "y", 1 }, { "b", "y", 2 }, { "c", "z", 8 } }, { { "a", WEB, NULL, false } }, "N\tzone\n" WEBS, 3, "a1b2" },
        { "... which is nowhere", { { "a", "y", 4 } }, { { 0 } }, "N\tzone\n" WEBS, 2, "" },
        { "... and must be all that is asked for", { { "a", "y", 4 } }, { { "a", WEB, NULL, false } }, "N\tzone\n" WEBS "N\thost\n@\tdefault\ni\tapp\tdb\n", 2, "" },
        { "near one of the gang that is there", { { "a", "y", 3 }, { "b", "z", 8 } }, { { "b", GANG, NULL, false } }, "N\tzone\n" FELLOWS, 3, "b3" },
        { "spread over zones", { { "a", "y", 8 }, { "b", "z", 1 } }, { { 0 } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 3, "a2b1" },
        { "... as far as the smallest has room", { { "a", "y", 8 }, { "b", "z", 1 } }, { { 0 } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 4, "" },
        { "... by two", { { "a", "y", 8 }, { "b", "z", 1 } }, { { 0 } }, "S\tzone\t2\t0\tm-\n" FELLOWS, 4, "a3b1" },
        { "... with those that are there", { { "a", "y", 8 }, { "b", "z", 1 } }, { { "a", GANG, NULL, false } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 2, "a1b1" },
        { "... a zone that opens when another has caught up", { { "a", "y", 8 }, { "b", "z", 2 } }, { { "a", GANG, NULL, false }, { "a", GANG, NULL, false } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 3, "a1b2" },
        { "... but who is going", { { "a", "y", 2 }, { "b", "z", 1 } }, { { "b", GANG, NULL, true } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 3, "a2b1" },
        { "fewer domains than there should be", { { "a", "y", 8 }, { "b", "z", 8 } }, { { 0 } }, "S\tzone\t1\t3\tm-\n" FELLOWS, 3, "" },
        { "... have one each", { { "a", "y", 8 }, { "b", "z", 8 } }, { { 0 } }, "S\tzone\t1\t3\tm-\n" FELLOWS, 2, "a1b1" },
        { "a node of no zone takes nobody who is spread", { { "a", NULL, 8 }, { "b", "z", 2 } }, { { 0 } }, "S\tzone\t1\t0\tm-\n" FELLOWS, 3, "" },
        { "what is spread need not be the gang", { { "a", "y", 8 }, { "b", "z", 8 } }, { { "a", WEB, NULL, false }, { "a", WEB, NULL, false } }, "S\tzone\t1\t0\tm-\n" WEBS, 2, "b2" },
        { "whom others keep away", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, "A\thost\n" FELLOWS, false } }, NULL, 2, "b2" },
        { "... from a zone", { { "a", "y", 2 }, { "b", "y", 4 } }, { { "a", WEB, "A\tzone\n" FELLOWS, false } }, NULL, 2, "" },
        { "... or means somebody else", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, "A\thost\n" WEBS, false } }, NULL, 2, "a2" },
        { "who wants to be near keeps nobody away", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, "N\thost\n" FELLOWS, false } }, NULL, 2, "a2" },
        { "what selects nothing", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, NULL, false } }, "A\thost\n@\tdefault\nx\n", 2, "a2" },
        { "labels that are not so", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, NULL, false } }, "A\thost\n@\tdefault\nn\tapp\tdb\tweb\ne\tapp\n", 2, "a2" },
        { "labels that are there", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, NULL, false } }, "A\thost\n@\tdefault\ne\tapp\n", 2, "b2" },
        { "labels that are not there", { { "a", "y", 2 }, { "b", "z", 4 } }, { { "a", WEB, NULL, false } }, "A\thost\n@\tdefault\na\tof\n", 2, "b2" },
};
/* clang-format on */

static void gangs_are_planned_beside_whom_they_may_be(void **state)
{
        char plan[64], name[16];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct row *row = &rows[i];
                struct ledger *l = cluster_of(row->nodes);
                bool did;

                for (size_t p = 0; p < 3 && row->pods[p].node != NULL; p++) {
                        assert_true(text_format(name, sizeof(name), "p-%zu", p));
                        put(l, name, &row->pods[p]);
                }
                add_members(l, row->size, row->demands);
                did = gang_fits(l, ledger_pods_find(l, "default", "m-0"));
                if (did != (row->plan[0] != '\0') || strcmp(plan_of(l, plan, sizeof(plan)), row->plan) != 0)
                        fail_msg("%s: planned \"%s\", not \"%s\"", row->what, plan_of(l, plan, sizeof(plan)),
                                 row->plan);
                ledger_life_free(l);
        }
}

static struct ledger *two_zones(void)
{
        return cluster_of((const struct node[4]){ { "a", "y", 4 }, { "b", "z", 4 } });
}

/* A selector that leaves a node out takes its zone out of what is compared, unless that is not wanted. */
static void nodes_that_are_left_out_are_no_domain(void **state)
{
        struct ledger *l = two_zones();
        struct ledger_pod_facts facts;

        (void) state;
        set_labels(l, "a", "y", "disk=ssd\n");
        for (int policy = 0; policy < 2; policy++) {
                for (int i = 0; i < 2; i++) {
                        facts = pod_of(l, i == 0 ? "m-0" : "m-1", 1);
                        facts.job = "train";
                        facts.request.gang_size = 2;
                        facts.labels = GANG;
                        facts.node_match = "=\tdisk\tssd\n";
                        facts.demands =
                                policy == 0 ? "S\tzone\t1\t0\tm-\n" FELLOWS : "S\tzone\t1\t0\t-\n" FELLOWS;
                        assert_int_equal(ledger_pods_set(l, &facts), 0);
                }
                assert_int_equal(gang_fits(l, ledger_pods_find(l, "default", "m-0")), policy == 0);
                ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        }
        ledger_life_free(l);
}

static void filter_names_the_domain_of_the_plan(void **state)
{
        struct ledger *l = cluster_of((const struct node[4]){ { "a", "y", 1 }, { "b", "z", 4 } });
        struct ledger_pod *pod;
        const uint32_t both[] = { node_of(l, "a")->index, node_of(l, "b")->index };
        uint8_t verdicts[] = { REASON_NONE, REASON_NONE };

        (void) state;
        add_members(l, 2, "N\tzone\n" FELLOWS);
        pod = ledger_pods_find(l, "default", "m-0");
        assert_true(gang_fits(l, pod));
        candidates_keep_to_plan(&(struct rules_context){ .ledger = l,
                                                         .rules = &fixture_rules,
                                                         .self = pod,
                                                         .request = &pod->request,
                                                         .job = pod->job },
                                both, 2, verdicts);
        assert_int_equal(verdicts[0], CANDIDATE_LEFT_OUT); /* the other could not follow there */
        assert_int_equal(verdicts[1], REASON_NONE);
        ledger_life_free(l);
}

static void labels_and_pods_that_change_count(void **state)
{
        struct ledger *l = two_zones(), *copy;
        struct pod web = { .node = "a", .labels = "default\napp=db\n" };
        struct ledger_pod *first;
        char plan[64];

        (void) state;
        put(l, "p", &web);
        put(l, "q", &(struct pod){ .node = "b", .labels = WEB });
        add_members(l, 2, "A\thost\n" WEBS);
        first = ledger_pods_find(l, "default", "m-0");
        assert_true(gang_fits(l, first));
        assert_string_equal(plan_of(l, plan, sizeof(plan)), "a2");
        copy = ledger_life_copy(l);
        assert_non_null(copy);
        assert_string_equal(plan_of(copy, plan, sizeof(plan)), "a2");
        ledger_jobs_drop_lease(l, first->job);
        web.labels = WEB; /* it becomes one */
        put(l, "p", &web);
        assert_false(gang_fits(l, first));
        ledger_pods_drop(l, "default", "q");
        assert_true(gang_fits(l, first));
        assert_string_equal(plan_of(l, plan, sizeof(plan)), "b2");
        ledger_jobs_drop_lease(copy, ledger_jobs_find(copy, "default", "train"));
        assert_true(
                gang_fits(copy, ledger_pods_find(copy, "default", "m-0"))); /* there nothing has changed */
        assert_string_equal(plan_of(copy, plan, sizeof(plan)), "a2");
        ledger_life_free(copy);
        ledger_life_free(l);
}

static void members_of_different_labels_are_alike_to_who_does_not_ask(void **state)
{
        struct ledger *l = two_zones();
        struct ledger_pod *first = member(l, "m-0", 2, 1, "default\nof=gang\nindex=0\n", NULL);

        (void) state;
        (void) member(l, "m-1", 2, 1, "default\nof=gang\nindex=1\n", NULL);
        put(l, "p", &(struct pod){ .node = "a", .labels = WEB, .demands = "A\thost\n" WEBS });
        assert_true(gang_fits(l, first));
        assert_non_null(first->job->slots);
        assert_int_equal(first->job->slots->request.labels, NEIGHBOURS_NONE);
        ledger_jobs_drop_lease(l, first->job);
        put(l, "p", &(struct pod){ .node = "a", .labels = WEB });
        put(l, "q", &(struct pod){ .node = "a", .demands = "A\thost\n@\tdefault\ni\tindex\t1\n" });
        put(l, "r", &(struct pod){ .node = "b", .demands = "A\thost\n@\tdefault\ni\tindex\t0\n" });
        assert_true(gang_fits(l, first));
        assert_non_null(node_of(l, "a")->slots);
        assert_non_null(node_of(l, "b")->slots);
        assert_int_equal(node_of(l, "a")->slots->request.labels, first->labels);
        assert_int_equal(node_of(l, "b")->slots->request.labels,
                         ledger_pods_find(l, "default", "m-1")->labels);
        ledger_life_free(l);
}

/* Chips are held for a pod where it may be, and nobody is told so who asks for nodes of his own choice. */
static void nothing_is_held_beside_the_wrong_neighbours(void **state)
{
        struct ledger *l = two_zones();
        struct ledger_pod_facts facts = pod_of(l, "x", 4);
        struct ledger_pod *old;
        struct rules_context ctx = {
                .ledger = l, .rules = &fixture_rules, .now_usec = 1, .unfiltered = true
        };
        char why[256];

        (void) state;
        facts.node = "a";
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        facts = pod_of(l, "y", 4);
        facts.node = "b";
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        put(l, "p", &(struct pod){ .node = "a", .labels = WEB });
        old = member(l, "old", 0, 4, GANG, "A\thost\n" WEBS);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_null(node_of(l, "a")->backfills);
        assert_non_null(node_of(l, "b")->backfills);
        ledger_pods_drop(l, "default", "x");
        ctx.self = old;
        ctx.request = &old->request;
        assert_string_equal(reason_text(rules_judge(&ctx, node_of(l, "a")))->word, "WrongNeighbours");
        neighbour_view_why(&ctx, node_of(l, "a"), why, sizeof(why));
        assert_string_equal(why, "its pod anti-affinity: 1 such pods are in host=a");
        neighbour_view_why(&ctx, node_of(l, "b"), why, sizeof(why));
        assert_string_equal(why, "");
        ctx.unfiltered = false; /* kube-scheduler has judged it before it asks */
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_NONE);
        ledger_life_free(l);
}

static uint64_t whole_generation; /* of neighbours while nobody is taken off a node; 0 = do not look */
static unsigned asked_amid;       /* times that neighbours were asked about meanwhile */
bool __real_neighbour_view_takes(const struct rules_context *ctx, const struct ledger_node *node);
bool __wrap_neighbour_view_takes(const struct rules_context *ctx, const struct ledger_node *node);

bool __wrap_neighbour_view_takes(const struct rules_context *ctx, const struct ledger_node *node)
{
        asked_amid += whole_generation != 0 && ctx->ledger->neighbours.generation != whole_generation;
        return __real_neighbour_view_takes(ctx, node);
}

/* To look for a start takes pods off their nodes and puts them back: nothing that is known of neighbours is
 * counted anew for it, which would be nodes x nodes. */
static void a_start_is_looked_for_without_counting_neighbours(void **state)
{
        struct ledger *l = cluster_of(
                (const struct node[4]){ { "a", "y", 4 }, { "b", "y", 4 }, { "c", "z", 4 }, { "d", "z", 4 } });

        (void) state;
        for (uint32_t i = 0; i < l->node_count; i++) {
                struct ledger_pod_facts facts = pod_of(l, (const char *const[]){ "e", "f", "g", "h" }[i], 4);

                facts.node = l->nodes[i]->name;
                facts.labels = "default\napp=db\n";
                facts.started_usec = 1000;
                facts.request.deadline_sec = 40 - i;
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
        put(l, "p", &(struct pod){ .node = "d", .labels = WEB });
        (void) member(l, "old", 0, 4, GANG, "A\thost\n" WEBS);
        whole_generation = l->neighbours.generation;
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_int_equal(l->neighbours.generation, whole_generation);
        whole_generation = 0;
        assert_int_equal(asked_amid, 0);
        assert_string_equal(held_node(l), "c"); /* d is free a second sooner, and has a web server */
        ledger_life_free(l);
}

/* What is remembered of a node's labels ends with its object. */
static void a_domain_whose_last_node_goes_is_none(void **state)
{
        struct ledger *l = two_zones();
        struct ledger_pod *first;

        (void) state;
        bind_pod(l, "x", "a", 4);
        add_members(l, 2, "S\tzone\t1\t0\tm-\n" FELLOWS);
        first = ledger_pods_find(l, "default", "m-0");
        assert_false(gang_fits(l, first)); /* two in z and none in y are too unlike, and y is full */
        ledger_nodes_drop(l, "a");
        assert_true(gang_fits(l, first));
        ledger_life_free(l);
}

static void what_keeps_it_off_is_told(void **state)
{
        static const struct {
                const char *demands, *others, *why;
        } asks[] = {
                { "N\tzone\n" FELLOWS WEBS, NULL, "no pod that its pod affinity asks for is in zone=y" },
                { "N\track\n" WEBS, NULL, "the node has no label rack, by which the pod is placed" },
                { "S\tzone\t1\t0\tm-\n" WEBS, NULL, "" },
                { "S\tzone\t1\t0\tm-\n@\tdefault\n", NULL,
                  "topology spread: 1 such pods in zone=y, 0 elsewhere, maxSkew 1" },
                { NULL, "A\tzone\n" FELLOWS, "the pod anti-affinity of 1 others keeps it out of zone=y" },
        };
        char why[256];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
                struct ledger *l = two_zones();
                struct ledger_pod *pod = member(l, "m", 0, 1, GANG, asks[i].demands);
                struct rules_context ctx = { .ledger = l,
                                             .rules = &fixture_rules,
                                             .unfiltered = true,
                                             .self = pod,
                                             .request = &pod->request };

                put(l, "p", &(struct pod){ .node = "a", .labels = WEB, .demands = asks[i].others });
                neighbour_view_why(&ctx, node_of(l, "a"), why, sizeof(why));
                assert_string_equal(why, asks[i].why);
                ledger_life_free(l);
        }
}

/* A place for a member of another gang, which may come or not. */
static struct ledger_job *plan_elsewhere(struct ledger *l, const char *node, uint32_t places)
{
        struct ledger_job *job = ledger_jobs_refer(l, "default", "elsewhere");
        struct request request = pod_of(l, "any", 1).request;

        assert_non_null(job);
        request.labels = neighbours_hold_labels(&l->neighbours, GANG);
        for (uint32_t i = 0; i < places; i++)
                assert_int_equal(ledger_jobs_add_slot(l, job, node_of(l, node), &request), 0);
        ledger_jobs_release_texts(l, &request);
        ledger_jobs_release(l, job); /* its lease keeps it */
        return job;
}

/* kube-scheduler compares with the pods that exist. Who is planned raises the number where he will be, and
 * the least one nowhere: else half a gang runs that was planned beside one that does not come. */
static void places_of_others_even_nothing_out(void **state)
{
        static const struct {
                const char *what, *node;    /* of the other gang's places */
                uint32_t places, chips;     /* ... and chips of the smaller zone */
                const char *before, *after; /* plans before its pods come, and when they are there */
        } asks[] = {
                { "nobody else", NULL, 0, 1, "a2b1", "a2b1" },
                { "what is planned in the smaller zone opens no place in the larger", "b", 1, 1, "", "a2" },
                { "what is planned in the larger takes places there", "a", 1, 1, "a1b1", "a1b1" },
                { "... and the others would be too few", "a", 2, 8, "", "b2" },
        };
        char plan[64];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
                struct ledger *l =
                        cluster_of((const struct node[4]){ { "a", "y", 8 }, { "b", "z", asks[i].chips } });
                uint32_t size = i == 0 ? 3 : 2;
                struct ledger_job *other;

                add_members(l, size, "S\tzone\t1\t0\tm-\n" FELLOWS);
                other = asks[i].node == NULL ? NULL : plan_elsewhere(l, asks[i].node, asks[i].places);
                print_message("%s\n", asks[i].what);
                assert_int_equal(gang_fits(l, ledger_pods_find(l, "default", "m-0")),
                                 asks[i].before[0] != '\0');
                ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
                if (other != NULL) {
                        ledger_jobs_drop_lease(l, other);
                        put(l, "came", &(struct pod){ .node = asks[i].node, .labels = GANG });
                        if (asks[i].places > 1)
                                put(l, "too", &(struct pod){ .node = asks[i].node, .labels = GANG });
                }
                assert_true(gang_fits(l, ledger_pods_find(l, "default", "m-0")));
                assert_string_equal(plan_of(l, plan, sizeof(plan)), asks[i].after);
                ledger_life_free(l);
        }
}

/* Two gangs of which each wants to be beside the other, too: the second begins where the first will. */
static void who_gathers_does_so_where_others_of_its_kind_will(void **state)
{
        struct ledger *l = cluster_of((const struct node[4]){ { "a", "y", 4 }, { "b", "z", 4 } });
        struct ledger_job *other = plan_elsewhere(l, "b", 2);
        struct ledger_pod *first;
        char plan[64];

        (void) state;
        add_members(l, 2, "N\tzone\n" FELLOWS);
        first = ledger_pods_find(l, "default", "m-0");
        assert_true(gang_fits(l, first));
        assert_string_equal(plan_of(l, plan, sizeof(plan)), "b4");
        ledger_jobs_drop_lease(l, first->job);
        bind_pod(l, "full", "b", 2);
        assert_false(gang_fits(l, first)); /* as soon as the others are there it has to be beside them */
        ledger_jobs_drop_lease(l, other);
        assert_true(gang_fits(l, first));
        ledger_life_free(l);
}

static uint64_t usec_of_looks(struct ledger *l, uint32_t kinds)
{
        struct request requests[16];
        uint64_t begin, end;

        for (uint32_t i = 0; i < kinds; i++) {
                char text[64];

                requests[i] = pod_of(l, "any", 1).request;
                assert_true(text_format(text, sizeof(text), "default\nof=gang\nkind=%u\n", i));
                requests[i].labels = neighbours_hold_labels(&l->neighbours, text);
                requests[i].demands = neighbours_hold_demands(&l->neighbours, "A\thost\n" FELLOWS);
        }
        begin = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t look = 0; look < 32000; look++) {
                struct rules_context ctx = { .ledger = l,
                                             .rules = &fixture_rules,
                                             .planning = true,
                                             .unfiltered = true,
                                             .request = &requests[look % kinds] };

                assert_true(neighbour_view_takes(&ctx, l->nodes[look % l->node_count]));
        }
        end = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t i = 0; i < kinds; i++)
                ledger_jobs_release_texts(l, &requests[i]);
        return end - begin;
}

/* A search goes from one to the other all the time; to count all pods anew takes a thousand times as long. */
static void sixteen_unlike_members_cost_what_two_do(void **state)
{
        struct ledger *l = test_ledger();
        char name[16];
        uint64_t two;

        (void) state;
        for (int i = 0; i < 500; i++) {
                assert_true(text_format(name, sizeof(name), "n-%d", i));
                add_node(l, name, NODE_CLASS_ANY, "regular", "H100", 8, 8);
                set_labels(l, name, "y", "");
        }
        two = usec_of_looks(l, 2);
        print_message("two: %llu usec\n", (unsigned long long) two);
        assert_true(usec_of_looks(l, 16) < 20 * two);
        ledger_life_free(l);
}

static void texts_are_kept_once_and_go_with_the_last(void **state)
{
        struct ledger *l = two_zones();

        (void) state;
        add_members(l, 2, "A\thost\n" FELLOWS);
        put(l, "p", &(struct pod){ .node = "a", .labels = WEB });
        assert_int_equal(l->neighbours.labels.map.count, 2);
        assert_int_equal(l->neighbours.demand_count, 1);
        assert_true(gang_fits(l, ledger_pods_find(l, "default", "m-0")));
        ledger_pods_drop(l, "default", "p");
        ledger_pods_drop(l, "default", "m-1");
        assert_int_equal(l->neighbours.demand_count, 1);
        ledger_pods_drop(l, "default", "m-0");
        assert_int_equal(l->neighbours.labels.map.count, 0);
        assert_int_equal(l->neighbours.demand_count, 0);
        assert_int_equal(neighbours_hold_labels(&l->neighbours, WEB), 1); /* numbers come back */
        neighbours_release(&l->neighbours, NEIGHBOURS_NONE, 1);
        ledger_life_free(l);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(gangs_are_planned_beside_whom_they_may_be),
                cmocka_unit_test(nodes_that_are_left_out_are_no_domain),
                cmocka_unit_test(filter_names_the_domain_of_the_plan),
                cmocka_unit_test(labels_and_pods_that_change_count),
                cmocka_unit_test(members_of_different_labels_are_alike_to_who_does_not_ask),
                cmocka_unit_test(nothing_is_held_beside_the_wrong_neighbours),
                cmocka_unit_test(a_start_is_looked_for_without_counting_neighbours),
                cmocka_unit_test(a_domain_whose_last_node_goes_is_none),
                cmocka_unit_test(what_keeps_it_off_is_told),
                cmocka_unit_test(texts_are_kept_once_and_go_with_the_last),
                cmocka_unit_test(places_of_others_even_nothing_out),
                cmocka_unit_test(who_gathers_does_so_where_others_of_its_kind_will),
                cmocka_unit_test(sixteen_unlike_members_cost_what_two_do),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
