/* Names: none goes that something in the ledger is called by, and all others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_names.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

static bool is_known(const struct ledger *ledger, const char *name)
{
        return symbols_find(&ledger->symbols, name, strlen(name)) != 0;
}

/* Every field that holds a symbol has a name of its own here. */
static void tell_node(struct ledger *ledger)
{
        struct inventory inventory;
        struct device_group *group;
        struct device *device;
        struct ledger_node_facts facts = { .name = "n", .uid = "u1", .switch_domain = "a domain" };

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), "n");
        (void) text_copy(inventory.pool, sizeof(inventory.pool), "a pool");
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "a group");
        (void) text_copy(group->vendor, sizeof(group->vendor), "a vendor");
        (void) text_copy(group->runtime, sizeof(group->runtime), "a runtime");
        (void) text_copy(group->model, sizeof(group->model), "a model");
        (void) text_copy(group->resource, sizeof(group->resource), "a resource");
        group->total = group->healthy = 8;
        device = inventory_add_device(&inventory);
        (void) text_copy(device->id, sizeof(device->id), "d");
        (void) text_copy(device->group, sizeof(device->group), "a sick group");
        (void) text_copy(inventory.hardware.memory_type, sizeof(inventory.hardware.memory_type), "a memory");
        inventory.hardware.network_count = 1;
        inventory.hardware.networks[0].mbps = 1;
        (void) text_copy(inventory.hardware.networks[0].kind, sizeof(inventory.hardware.networks[0].kind),
                         "a network");
        inventory.program_count = 1;
        (void) text_copy(inventory.programs[0].runtime, sizeof(inventory.programs[0].runtime), "a program");
        assert_int_equal(ledger_nodes_set_inventory(ledger, &inventory), 0);
        inventory_free(&inventory);
        facts.allocatable[0] =
                (struct ledger_trust_offer){ symbols_add(&ledger->symbols, "an allocatable resource"), 1, 0 };
        facts.allocatable_count = 1;
        assert_int_equal(ledger_nodes_set(ledger, &facts), 0);
}

static struct request request_for(struct ledger *ledger, const char *resource, const char *model)
{
        return (struct request){ .items = { { symbols_add(&ledger->symbols, resource), 1 } },
                                 .item_count = 1,
                                 .models = { symbols_add(&ledger->symbols, model) },
                                 .model_count = 1 };
}

static void tell_pod(struct ledger *ledger)
{
        struct ledger_pod_facts facts = pod_of(ledger, "p", 1);

        facts.request = request_for(ledger, "a pod's resource", "a pod's model");
        facts.node = "n";
        facts.parts[facts.part_count++] =
                (struct ledger_pod_part){ symbols_add(&ledger->symbols, "a part"), 1 };
        facts.kinds[facts.kind_count++] =
                (struct request_member){ symbols_add(&ledger->symbols, "a member's resource"), 1, 1 };
        assert_int_equal(ledger_pods_set(ledger, &facts), 0);
}

static void tell_jobs(struct ledger *ledger)
{
        struct ledger_job_place place = { .pod = "plan-0", .node = "nowhere" };
        struct ledger_job *gang = ledger_jobs_refer(ledger, "default", "gang");
        struct request slot = request_for(ledger, "a lease's resource", "a lease's model");

        assert_non_null(gang);
        place.request = request_for(ledger, "a plan's resource", "a plan's model");
        assert_int_equal(ledger_jobs_set_plan(ledger, "default", "plan", &place, 1), 0);
        assert_int_equal(ledger_jobs_add_slot(ledger, gang, node_of(ledger, "n"), &slot), 0);
        ledger_jobs_release(ledger, gang);
}

static const char
        *const node_names[] = { "a pool",    "a group",      "a vendor", "a runtime",
                                "a model",   "a resource",   "a memory", "a network",
                                "a program", "a sick group", "a domain", "an allocatable resource" },
               *const pod_names[] = { "a pod's resource", "a pod's model", "a part", "a member's resource" },
               *const job_names[] = { "a plan's resource", "a plan's model", "a lease's resource",
                                      "a lease's model" };

static void expect_all(const struct ledger *ledger, const char *const *names, size_t count, bool known)
{
        for (size_t i = 0; i < count; i++)
                if (is_known(ledger, names[i]) != known)
                        fail_msg("%s: known %d", names[i], !known);
}

static void what_is_used_stays(void **state)
{
        struct ledger *l = test_ledger();

        (void) state;
        (void) symbols_keep(&l->symbols, GPU);
        tell_node(l);
        tell_pod(l);
        tell_jobs(l);
        (void) symbols_add(&l->symbols, "nobody's");
        for (int round = 0; round < 2; round++) {
                ledger_names_release(l);
                assert_false(is_known(l, "nobody's"));
                expect_all(l, node_names, ARRAY_SIZE(node_names), true);
                expect_all(l, pod_names, ARRAY_SIZE(pod_names), true);
                expect_all(l, job_names, ARRAY_SIZE(job_names), true);
                assert_int_equal(node_of(l, "n")->brought, ARRAY_SIZE(node_names));
        }
        ledger_pods_drop(l, "default", "p");
        ledger_names_release(l);
        expect_all(l, pod_names, ARRAY_SIZE(pod_names), false);
        expect_all(l, node_names, ARRAY_SIZE(node_names), true);
        assert_int_equal(ledger_jobs_set_plan(l, "default", "plan", NULL, 0), 0);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "gang"));
        ledger_nodes_drop_inventory(l, "n");
        ledger_nodes_drop(l, "n");
        ledger_names_release(l);
        expect_all(l, job_names, ARRAY_SIZE(job_names), false);
        expect_all(l, node_names, ARRAY_SIZE(node_names), false);
        assert_true(is_known(l, GPU) && l->symbols.count == 1);
        ledger_life_free(l);
}

/* A node whose models have other names each minute, for a year; beside it one that stays, a pod on it, and
 * one that waits for chips that come later. */
static void a_node_of_ever_new_names_is_believed_again_and_again(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts waiting = pod_of(l, "waits", 1);
        char model[64];

        (void) state;
        add_node(l, "stays", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        bind_pod(l, "on-it", "stays", 4);
        waiting.request = request_for(l, GPU, "H200");
        assert_int_equal(ledger_pods_set(l, &waiting), 0);
        for (unsigned round = 0; round < 100000; round++) {
                (void) text_format(model, sizeof(model), "model-%u", round);
                add_node(l, "changes", NODE_CLASS_ANY, "regular", model, 8, 8);
                assert_string_equal(symbols_name(&l->symbols, node_of(l, "changes")->groups[0].model), model);
                if (round % 256 == 0)
                        ledger_names_release(l);
        }
        assert_int_equal(l->symbols.refused, 0);
        assert_true(l->symbols.top <= 300);
        assert_int_equal(node_of(l, "stays")->groups[0].held, 4);
        assert_string_equal(symbols_name(&l->symbols, node_of(l, "stays")->groups[0].model), "H100");
        add_node(l, "comes", NODE_CLASS_ANY, "regular", "H200", 8, 8);
        assert_string_equal(word_for(l, &ledger_pods_find(l, "default", "waits")->request, "comes"), "");
        assert_string_equal(word_for(l, &ledger_pods_find(l, "default", "waits")->request, "changes"),
                            "WrongModel");
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_used_stays),
                cmocka_unit_test(a_node_of_ever_new_names_is_believed_again_and_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
