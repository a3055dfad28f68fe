/* What is believed of an inventory: a table of nodes, each a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"
#include "tests/support/test_ledger.h"

#define SECOND UINT64_C(1000000)
#define NONE   (-1) /* the Node object does not name the resource */

struct row {
        const char *sentence;
        unsigned healthy[2], shares; /* of two groups of the resource; replicas of each device */
        int allocatable;
        const char *inventory_boot, *node_boot;
        const char *owner; /* uid of the Node that owns the inventory; the Node's is u1 */
        uint64_t remade, agent_seen, agent_limit, listening; /* seconds; it is second 1000 now */
        enum ledger_trust_doubt doubt;
        unsigned usable[2];
        uint32_t replicas; /* of the label of another device plugin */
        bool leaves;       /* the agent said so */
        bool beyond;       /* more is offered than anybody can explain */
};

#define TOLD(first, second) .healthy = { first, second }
#define USED(first, second) .usable = { first, second }

/* clang-format off */
static const struct row rows[] = {
        { "what both say counts", TOLD(4, 4), .allocatable = 8, USED(4, 4) },
        { "the kubelet offers nothing: nothing is usable", TOLD(4, 4), .allocatable = 0, USED(0, 0) },
        { "it offers less: the last groups are short", TOLD(4, 4), .allocatable = 5, USED(4, 1) },
        { "it offers more than the agent calls healthy: the agent's word", TOLD(4, 1), .allocatable = 8, USED(4, 1) },
        { "nobody's device plugin offers it: as told", TOLD(4, 4), .allocatable = NONE, USED(4, 4) },
        { "shared devices are offered share by share", TOLD(2, 0), .shares = 4, .allocatable = 6, USED(6, 0) },
        { "another's shares, all of them offered", TOLD(4, 4), .allocatable = 32, .replicas = 4, USED(4, 4) },
        { "half of them", TOLD(4, 4), .allocatable = 16, .replicas = 4, USED(4, 0) },
        { "a part of a chip is none", TOLD(4, 4), .allocatable = 23, .replicas = 4, USED(4, 1) },
        { "shares that the label does not tell of", TOLD(4, 4), .allocatable = 32, .beyond = true, USED(4, 4) },
        { "nor of all", TOLD(4, 4), .allocatable = 32, .replicas = 2, .beyond = true, USED(4, 4) },
        { "a label that says that they are not shared", TOLD(4, 4), .allocatable = 5, .replicas = 1, USED(4, 1) },
        { "our own shares are counted as they are offered, whatever a label says", TOLD(2, 0), .shares = 4, .allocatable = 6, .replicas = 4, USED(6, 0) },
        { "the boot is the kubelet's", TOLD(4, 4), .allocatable = 8, "b1", "b1", USED(4, 4) },
        { "an inventory of another boot", TOLD(4, 4), .allocatable = 8, "b1", "b2", .doubt = LEDGER_OTHER_BOOT },
        { "also where nobody offers the resource: the node came back without chips", TOLD(4, 4), .allocatable = NONE, "b1", "b2", .doubt = LEDGER_OTHER_BOOT },
        { "a boot that is not told is no other one", TOLD(4, 4), .allocatable = 8, NULL, "b2", USED(4, 4) },
        { "an inventory of this Node", TOLD(4, 4), .allocatable = 8, .owner = "u1", USED(4, 4) },
        { "an inventory of a Node that had the name before", TOLD(4, 4), .allocatable = NONE, .owner = "u0", .doubt = LEDGER_OTHER_NODE },
        { "and its agent still speaks, which has not given that Node up yet", TOLD(4, 4), .allocatable = 8, .owner = "u0", .agent_seen = 900, .agent_limit = 180, .listening = 1, .doubt = LEDGER_OTHER_NODE },
        { "an inventory that nobody owns", TOLD(4, 4), .allocatable = 8, .owner = "", USED(4, 4) },
        { "an agent that speaks", TOLD(4, 4), .allocatable = 8, .agent_seen = 900, .agent_limit = 180, .listening = 1, USED(4, 4) },
        { "an agent that is silent", TOLD(4, 4), .allocatable = 8, .agent_seen = 800, .agent_limit = 180, .listening = 1, .doubt = LEDGER_AGENT_SILENT },
        { "an agent that said that it ends", TOLD(4, 4), .allocatable = 8, .agent_seen = 990, .agent_limit = 180, .listening = 1, .leaves = true, .doubt = LEDGER_AGENT_LEAVES },
        { "also without a Lease", TOLD(4, 4), .allocatable = 8, .leaves = true, .doubt = LEDGER_AGENT_LEAVES },
        { "and after whom none came", TOLD(4, 4), .allocatable = 8, .agent_seen = 800, .agent_limit = 180, .listening = 1, .leaves = true, .doubt = LEDGER_AGENT_SILENT },
        { "but nobody listened before", TOLD(4, 4), .allocatable = 8, .agent_seen = 1, .agent_limit = 180, .listening = 900, USED(4, 4) },
        { "an agent without a Lease has no age", TOLD(4, 4), .allocatable = 8, .agent_seen = 1, .listening = 1, USED(4, 4) },
        { "a Node made anew, of which no agent has spoken", TOLD(4, 4), .allocatable = 8, .remade = 950, .agent_seen = 940, .agent_limit = 180, .listening = 1, .doubt = LEDGER_OTHER_NODE },
        { "and one whose agent has", TOLD(4, 4), .allocatable = 8, .remade = 950, .agent_seen = 951, .agent_limit = 180, .listening = 1, USED(4, 4) },
};
/* clang-format on */

static void add_node(struct ledger *l, const struct row *row)
{
        struct inventory inventory;
        struct ledger_node_facts facts = { .name = "n", .uid = "u1", .boot_id = row->node_boot };

        inventory_init(&inventory);
        (void) strcpy(inventory.node, "n");
        (void) strcpy(inventory.boot_id, row->inventory_boot == NULL ? "" : row->inventory_boot);
        for (unsigned g = 0; g < 2; g++) {
                struct device_group *group = inventory_add_group(&inventory);

                (void) strcpy(group->name, g == 0 ? "g0" : "g1");
                (void) strcpy(group->resource, "nvidia.com/gpu");
                group->total = 4;
                group->healthy = row->healthy[g];
                group->shares = row->shares;
        }
        assert_int_equal(ledger_nodes_set_inventory(l, &inventory), 0);
        inventory_free(&inventory);
        ledger_nodes_set_words(l, "n", row->owner, row->leaves);
        if (row->allocatable != NONE)
                facts.allocatable[facts.allocatable_count++] =
                        (struct ledger_trust_offer){ .resource = symbols_add(&l->symbols, "nvidia.com/gpu"),
                                                     .chips = (uint32_t) row->allocatable,
                                                     .replicas = row->replicas };
        assert_int_equal(ledger_nodes_set(l, &facts), 0);
}

static void each_node_is_believed_as_it_should(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct row *row = &rows[i];
                struct ledger *l = test_ledger();
                struct ledger_node *node;
                char beyond[LEDGER_TRUST_SENTENCE_BYTES];

                l->liveness.looked_usec = 1000 * SECOND;
                l->liveness.working_since_usec = row->listening * SECOND;
                add_node(l, row);
                node = ledger_nodes_find(l, "n", 1);
                node->trust.remade_usec = row->remade * SECOND;
                node->trust.agent_seen_usec = row->agent_seen * SECOND;
                node->trust.agent_limit_usec = row->agent_limit * SECOND;
                ledger_nodes_judge(l, node);
                ledger_trust_beyond(l, node, beyond);
                if ((strstr(beyond, "of nvidia.com/gpu, its inventory tells of 8: ") != NULL) != row->beyond)
                        fail_msg("%s: '%s'", row->sentence, beyond);
                if (node->trust.doubt != row->doubt || node->groups[0].usable != row->usable[0] ||
                    node->groups[1].usable != row->usable[1])
                        fail_msg("%s: doubt %u, usable %u and %u", row->sentence, node->trust.doubt,
                                 node->groups[0].usable, node->groups[1].usable);
                ledger_life_free(l);
        }
}

static void a_pod_is_not_sick_of_a_doubt(void **state)
{
        static const struct row row = { "", TOLD(4, 4), .allocatable = 0 };
        struct ledger *l = test_ledger();
        struct ledger_pod_facts facts = { .namespace_ = "default", .name = "p", .uid = "p", .node = "n" };
        struct ledger_node *node;

        (void) state;
        add_node(l, &row);
        facts.request.items[0] = (struct request_item){ symbols_add(&l->symbols, "nvidia.com/gpu"), 8 };
        facts.request.item_count = 1;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        node = ledger_nodes_find(l, "n", 1);
        assert_int_equal(node->groups[0].usable + node->groups[1].usable, 0);
        assert_int_equal(node->groups[0].held + node->groups[1].held, 8);
        assert_false(
                ledger_sick_of_pod(ledger_pods_find(l, "default", "p"), NULL)); /* a kubelet that restarts */
        node->groups[0].healthy = 3;
        assert_true(ledger_sick_of_pod(ledger_pods_find(l, "default", "p"), NULL));
        node->trust.doubt = LEDGER_OTHER_BOOT;
        assert_false(ledger_sick_of_pod(ledger_pods_find(l, "default", "p"), NULL));
        ledger_life_free(l);
}

static void a_node_is_remade_when_its_uid_changes(void **state)
{
        struct ledger_trust trust = { 0 };

        (void) state;
        ledger_trust_set_uid(&trust, 7, 10);
        ledger_trust_set_uid(&trust, 7, 20);
        ledger_trust_set_uid(&trust, 0, 30);
        assert_int_equal(trust.remade_usec, 0);
        ledger_trust_set_uid(&trust, 8, 40);
        assert_int_equal(trust.remade_usec, 40);
}

/* A parse error proves nothing: what was readable stands, and what never was is no node that is gone. */
static void a_node_that_cannot_be_read_is_there(void **state)
{
        static const struct row row = { "", TOLD(4, 4), .allocatable = 8 };
        struct ledger *l = test_ledger();
        struct ledger_node *node;

        (void) state;
        add_node(l, &row);
        node = ledger_nodes_find(l, "n", 1);
        assert_int_equal(ledger_nodes_note(l, "n"), 0);
        assert_int_equal(node->trust.doubt, LEDGER_BELIEVED);
        assert_int_equal(node->groups[0].usable, 4);
        ledger_nodes_drop(l, "n");
        assert_int_equal(ledger_nodes_note(l, "n"), 0);
        assert_true(node->has_object);
        assert_int_equal(node->trust.doubt, LEDGER_NODE_UNREADABLE);
        assert_int_equal(node->groups[0].usable, 0);
        assert_int_equal(ledger_nodes_note(l, "bare"), 0);
        assert_true(ledger_node_known(ledger_nodes_find(l, "bare", 4)));
        add_node(l, &row);
        assert_int_equal(node->trust.doubt, LEDGER_BELIEVED);
        assert_int_equal(node->groups[0].usable, 4);
        ledger_nodes_drop(l, "bare");
        assert_null(ledger_nodes_find(l, "bare", 4));
        ledger_life_free(l);
}

/* Of 4 + 4 chips: what pods may still have. */
static const struct {
        const char *sentence;
        int allocatable, slices; /* NONE = it is not named; there are none */
        unsigned healthy, held;  /* of the second group; by claims */
        unsigned open;
} claims[] = {
        { "a plugin alone", 8, NONE, 4, 0, 8 },
        { "a driver alone", NONE, 8, 4, 0, 8 },
        { "a driver that offers fewer", NONE, 5, 4, 0, 5 },
        { "a driver that offers more than is healthy", NONE, 8, 2, 0, 6 },
        { "a driver that offers none yet", NONE, 0, 4, 0, 0 },
        { "what its claims hold is not free", NONE, 8, 4, 3, 5 },
        { "not when its slices are gone either", NONE, NONE, 4, 3, 5 },
        { "both, and the plugin knows of no claim", 8, 8, 4, 3, 5 },
        { "both, and the plugin leaves out what claims hold", 5, 8, 4, 3, 5 },
        { "both, and it leaves out more", 4, 8, 4, 3, 4 },
        { "a plugin that is gone leaves the chips to claims", 0, 8, 4, 3, 5 },
        { "and none to nobody", 0, NONE, 4, 3, 0 },
        { "more is held than there is", 8, 8, 4, 9, 0 },
};

static void chips_of_claims_are_subtracted_once(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
                struct row row = { .healthy = { 4, claims[i].healthy },
                                   .allocatable = claims[i].allocatable };
                struct ledger *l = test_ledger(), *copy;
                struct ledger_devices devices = { .offer_count = 1 };
                struct ledger_node *node;
                unsigned open;

                add_node(l, &row);
                devices.offers[0] = (struct ledger_devices_offer){
                        .resource = symbols_add(&l->symbols, "nvidia.com/gpu"),
                        .offers = claims[i].slices != NONE,
                        .offered = claims[i].slices == NONE ? 0 : (uint32_t) claims[i].slices,
                        .held = claims[i].held,
                };
                assert_int_equal(ledger_nodes_set_devices(l, ledger_nodes_find(l, "n", 1), &devices), 0);
                copy = ledger_life_copy(l);
                assert_non_null(copy);
                for (int k = 0; k < 2; k++) {
                        node = ledger_nodes_find(k == 0 ? l : copy, "n", 1);
                        ledger_nodes_judge(k == 0 ? l : copy, node);
                        open = ledger_group_open(&node->groups[0]) + ledger_group_open(&node->groups[1]);
                        if (open != claims[i].open)
                                fail_msg("%s: %u open", claims[i].sentence, open);
                }
                ledger_life_free(copy);
                ledger_life_free(l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_that_cannot_be_read_is_there),
                cmocka_unit_test(each_node_is_believed_as_it_should),
                cmocka_unit_test(chips_of_claims_are_subtracted_once),
                cmocka_unit_test(a_pod_is_not_sick_of_a_doubt),
                cmocka_unit_test(a_node_is_remade_when_its_uid_changes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
