/* What the page says of agents: what they tell of themselves, what the Node object tells of one that does
 * not, which runbook helps, and that a change of either is one of the page's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/page/page_agents.h"
#include "scheduler-extender/page/page_kept.h"
#include "tests/support/told_cluster.h"

/* @AGENT: "" or "agent: {...}, " */
#define NODE(AGENT)                                                                                          \
        "- {apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: n}, status: {" AGENT   \
        "generation: 1, bootID: b, nodeClass: any, pool: regular, groups: [" TOLD_GROUP(                     \
                "g", "H100", "1",                                                                            \
                "1") ", " TOLD_GROUP("h", "H100", "2",                                                       \
                                     "2") "], devices: [{id: a, group: g, vendor: nvidia, "                  \
                                          "health: degraded}]}}\n"
#define OFFERS(CHIPS)                                                                                        \
        "- {kind: Node, metadata: {name: n, uid: u}, status: {allocatable: {nvidia.com/gpu: " CHIPS "}}}\n"

struct bed {
        struct dir_store *folder;
        struct cluster *cluster;
        struct page_kept kept;
};

static void on_told(void *userdata, const char *node, const struct inventory *inventory)
{
        page_kept_told(&((struct bed *) userdata)->kept, node, inventory, TOLD_NOW_USEC);
}

static void begin(struct bed *bed, const char *yaml)
{
        *bed = (struct bed){ .folder = dir_store_new() };
        bed->cluster =
                told_cluster(bed->folder, (struct cluster_options){ .told = on_told, .userdata = bed }, yaml);
}

static void end(struct bed *bed)
{
        page_kept_free(&bed->kept);
        cluster_close(bed->cluster);
        dir_store_free(bed->folder);
}

static bool has_any_runbook(const char *name)
{
        return name[0] != '\0';
}

static void expect(struct bed *bed, const char *text)
{
        struct text written = { 0 };
        struct json_writer w = { .text = &written, .compact = true };
        struct page_kept_node *node = (struct page_kept_node *) name_map_find(&bed->kept.nodes, "n");
        struct page_fleet_node of = { .name = "n",
                                      .told = &node->told,
                                      .ledger = cluster_ledger(bed->cluster),
                                      .rules = cluster_rules(bed->cluster),
                                      .has_runbook = has_any_runbook };

        page_agents_write(&w, &of);
        assert_string_equal(written.data, text);
        text_free(&written);
}

#define BEGINNING "{\"node\":\"n\","
#define REST      ",\"chips\":3,\"faults\":1}"

static void agents_are_what_they_told(void **state)
{
        /* clang-format off */
        static const struct {
                const char *yaml, *text;
        } rows[] = {
                { NODE(""), BEGINNING "\"stale\":false" REST },
                { NODE("") OFFERS("3"),
                  BEGINNING "\"stale\":false,\"registered\":true,\"kubelet\":[{\"name\":\"nvidia.com/gpu\",\"registered\":true}]" REST },
                { NODE("") OFFERS("0"), /* both groups are of one resource: it is told once */
                  BEGINNING "\"stale\":false,\"registered\":false,\"kubelet\":[{\"name\":\"nvidia.com/gpu\",\"registered\":false,"
                            "\"runbook\":\"RemudaAgentNotRegistered\"}]" REST },
                { NODE("agent: {version: 1.2.3}, ") OFFERS("0"), /* no kubelet that it knows of: the Node object tells */
                  BEGINNING "\"version\":\"1.2.3\",\"stale\":false,\"registered\":false,\"kubelet\":[{\"name\":\"nvidia.com/gpu\","
                            "\"registered\":false,\"runbook\":\"RemudaAgentNotRegistered\"}],\"libraries\":[]" REST },
                { NODE("agent: {version: 1.2.3, kubelet: [{name: nvidia.com/gpu, registered: true}, {name: remuda.dev, registered: false}]}, ")
                  OFFERS("0"), /* the agent knows better */
                  BEGINNING "\"version\":\"1.2.3\",\"stale\":false,\"registered\":false,\"kubelet\":[{\"name\":\"nvidia.com/gpu\","
                            "\"registered\":true},{\"name\":\"remuda.dev\",\"registered\":false,"
                            "\"runbook\":\"RemudaDriverNotRegistered\"}],\"libraries\":[]" REST },
                { NODE("agent: {libraries: [{vendor: nvidia, state: silent, message: the library hangs}, {vendor: amd, state: answers},"
                       " {vendor: huawei, state: absent}, {vendor: hygon, state: later}]}, "),
                  BEGINNING "\"stale\":false,\"libraries\":[{\"vendor\":\"nvidia\",\"state\":\"silent\",\"message\":\"the library hangs\","
                            "\"runbook\":\"RemudaVendorCallTimeouts\"},{\"vendor\":\"amd\",\"state\":\"answers\"},"
                            "{\"vendor\":\"huawei\",\"state\":\"absent\"},{\"vendor\":\"hygon\",\"state\":\"unknown\"}]" REST },
                { NODE("agent: {version: \"\\\"</script>\\x01\"}, "), /* whatever its agent writes */
                  BEGINNING "\"version\":\"\\\"</script>\\u0001\",\"stale\":false,\"libraries\":[]" REST },
                { NODE("agent: [7], "), BEGINNING "\"stale\":false" REST },
        };
        /* clang-format on */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed bed;

                begin(&bed, rows[i].yaml);
                expect(&bed, rows[i].text);
                end(&bed);
        }
}

/* As many as an agent may write: none is lost on the way into the node's block. */
static void all_that_an_agent_may_say_fits(void **state)
{
        struct inventory inventory;
        struct page_node_told told = { .chips = NULL };

        (void) state;
        inventory_init(&inventory);
        inventory.agent.library_count = AGENT_FACTS_LIBRARIES_MAX;
        inventory.agent.offer_count = AGENT_FACTS_OFFERS_MAX;
        for (size_t i = 0; i < AGENT_FACTS_LIBRARIES_MAX; i++)
                (void) text_format(inventory.agent.libraries[i].vendor,
                                   sizeof(inventory.agent.libraries[i].vendor), "vendor-%zu", i);
        for (size_t i = 0; i < AGENT_FACTS_OFFERS_MAX; i++)
                (void) text_format(inventory.agent.offers[i].name, sizeof(inventory.agent.offers[i].name),
                                   "resource/%zu", i);
        assert_int_equal(page_node_take(&told, &inventory), 0);
        assert_int_equal(told.library_count, AGENT_FACTS_LIBRARIES_MAX);
        assert_int_equal(told.offer_count, AGENT_FACTS_OFFERS_MAX);
        assert_string_equal(page_node_text(&told, told.libraries[15].vendor), "vendor-15");
        assert_string_equal(page_node_text(&told, told.offers[63].name), "resource/63");
        page_node_free(&told);
        inventory_free(&inventory);
}

static uint64_t judged(struct bed *bed)
{
        page_kept_judge(&bed->kept, cluster_ledger(bed->cluster), cluster_rules(bed->cluster), TOLD_NOW_USEC);
        return bed->kept.agents_version;
}

static void what_becomes_of_an_agent_is_a_change(void **state)
{
        struct bed bed;
        uint64_t version;

        (void) state;
        begin(&bed, NODE("") OFFERS("3"));
        version = judged(&bed);
        assert_int_equal(judged(&bed), version);
        told_cluster_take(bed.cluster, OFFERS("0")); /* the kubelet has lost its plugin */
        assert_true(judged(&bed) > version);
        version = judged(&bed);
        assert_int_equal(judged(&bed), version);
        told_cluster_take(bed.cluster, NODE("agent: {version: 1.2.3}, "));
        assert_true(bed.kept.agents_version > version);
        end(&bed);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(agents_are_what_they_told),
                cmocka_unit_test(all_that_an_agent_may_say_fits),
                cmocka_unit_test(what_becomes_of_an_agent_is_a_change),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
