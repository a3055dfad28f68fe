/* Gangs on small clusters: who fits together, who does not, and what a lease keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"

static const char *gang_word(struct ledger *l, const struct ledger_pod_facts *facts, const char *node,
                             bool keep)
{
        struct ledger_job *job = ledger_jobs_refer(l, facts->namespace_, facts->job);
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .request = &facts->request,
                                     .job = job,
                                     .now_usec = 1000000 };
        struct gang_demand demand = { .kinds = facts->kind_count > 0 ? facts->kinds : NULL,
                                      .kind_count = facts->kind_count,
                                      .keep = keep };
        const char *word;

        rules_prepare(&ctx);
        assert_true(gang_prepare(l, &ctx, job, &demand) >= 0);
        word = reason_text(rules_judge(&ctx, node_of(l, node)))->word;
        ledger_jobs_release(l, job);
        return word;
}

static struct ledger_pod_facts member(struct ledger *l, const char *name, uint32_t chips, uint32_t size)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.job = "train";
        facts.request.gang_size = size;
        facts.request.class_chips = (uint64_t) chips * size;
        return facts;
}

static struct ledger *three_nodes(void)
{
        struct ledger *l = ledger_life_new();

        ledger_mark_chips(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        return l;
}

static void two_of_eight_get_a_lease_and_others_are_told(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 2), other = pod_of(l, "other", 8);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        assert_string_equal(word_for(l, &other.request, "a"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.request, "b"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.request, "c"), "");
        assert_string_equal(gang_word(l, &m, "a", true), ""); /* again: the same lease */
        assert_int_equal(l->slot_total, 2);
        assert_int_equal(gang_expire(l, 1000000 + 60000001), 1);
        assert_string_equal(word_for(l, &other.request, "a"), "");
        ledger_life_free(l);
}

static void a_gang_that_does_not_fit_leaves_nothing(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 4);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_int_equal(l->slot_total, 0);
        m = member(l, "m-0", 8, 3);
        bind_pod(l, "x", "c", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_string_equal(gang_word(l, &m, "c", true), "ChipsBusy");
        ledger_life_free(l);
}

static void a_bound_member_gives_up_its_slot(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts first = member(l, "m-0", 8, 2), second = member(l, "m-1", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &first, "a", true), "");
        assert_int_equal(ledger_pods_set(l, &first), 0);
        assert_int_equal(
                ledger_pods_assume(l, ledger_pods_find(l, "default", "m-0"), node_of(l, "c"), NULL, 0), 0);
        assert_int_equal(l->slot_total, 1);
        assert_string_equal(gang_word(l, &second, "a", true), "");
        assert_string_equal(gang_word(l, &second, "c", true), "ChipsBusy");
        second.node = "a";
        assert_int_equal(ledger_pods_set(l, &second), 0);
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void prioritize_makes_no_lease(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", false), "");
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void members_of_different_size_are_searched_for(void **state)
{
        struct ledger *l = ledger_life_new();
        struct ledger_pod_facts m = member(l, "m", 3, 3);

        (void) state;
        ledger_mark_chips(l, GPU);
        add_node(l, "six", NODE_CLASS_ANY, "regular", "H100", 8, 6);
        add_node(l, "four", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        m.kinds[0] =
                (struct request_member){ .resource = m.request.items[0].resource, .chips = 3, .members = 2 };
        m.kinds[1] =
                (struct request_member){ .resource = m.request.items[0].resource, .chips = 4, .members = 1 };
        m.kind_count = 2;
        assert_string_equal(gang_word(l, &m, "six", true), "");
        assert_int_equal(l->slot_total, 3);
        ledger_life_free(l);
}

static void equal_nodes_stay_with_one_configuration(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 3);

        (void) state;
        add_node(l, "d", NODE_CLASS_MULTI, "regular", "A100", 8, 8);
        m.request.equal_nodes = true;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_string_equal(gang_word(l, &m, "d", true), "UnequalNode");
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        m.request.gang_size = 4;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        ledger_life_free(l);
}

static void add_npu(struct ledger *l, const char *name)
{
        struct inventory inventory;
        struct device_group *group;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), name);
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "npu");
        (void) text_copy(group->vendor, sizeof(group->vendor), "huawei");
        (void) text_copy(group->runtime, sizeof(group->runtime), "cann");
        (void) text_copy(group->model, sizeof(group->model), "910B");
        (void) text_copy(group->resource, sizeof(group->resource), "huawei.com/Ascend910");
        group->total = group->healthy = 8;
        assert_int_equal(ledger_nodes_set_inventory(l, &inventory), 0);
        inventory_free(&inventory);
}

/* Workers: so many GPUs (at least `least`), and eight NPUs if `mixed`. */
static void set_training(struct ledger *l, uint64_t gpus, uint64_t least, bool mixed)
{
        struct job *job = malloc(sizeof(*job));

        assert_non_null(job);
        job_init(job);
        job->worker_count = mixed ? 2 : 1;
        job->workers = calloc(2, sizeof(*job->workers));
        job->workers[0] = (struct job_role){ .runtime = "cuda", .chips = gpus, .min_chips = least };
        job->workers[1] = (struct job_role){ .runtime = "cann", .chips = 8, .min_chips = 8 };
        assert_int_equal(ledger_jobs_set_training(l, "default", "train", job), 0);
}

static size_t slots_on(struct ledger *l, const char *node)
{
        size_t count = 0;

        for (const struct ledger_job_slot *slot = node_of(l, node)->slots; slot != NULL;
             slot = slot->next_on_node)
                count++;
        return count;
}

static void members_that_a_training_job_lists_are_planned_with_the_first(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 2);

        (void) state;
        set_training(l, 8, 8, true);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit"); /* nobody has NPUs */
        add_npu(l, "npu");
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        assert_int_equal(slots_on(l, "npu"), 1);
        ledger_life_free(l);
}

static void min_chips_are_enough_where_all_do_not_fit(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 3);

        (void) state;
        set_training(l, 24, 16, false);
        bind_pod(l, "x", "c", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        bind_pod(l, "y", "b", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        ledger_life_free(l);
}

static void a_training_job_of_another_number_of_members_lists_nobody(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 4, 5); /* five copies, whatever the TrainingJob says */

        (void) state;
        set_training(l, 8, 8, false);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 5);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_of_eight_get_a_lease_and_others_are_told),
                cmocka_unit_test(a_gang_that_does_not_fit_leaves_nothing),
                cmocka_unit_test(a_bound_member_gives_up_its_slot),
                cmocka_unit_test(prioritize_makes_no_lease),
                cmocka_unit_test(members_of_different_size_are_searched_for),
                cmocka_unit_test(equal_nodes_stay_with_one_configuration),
                cmocka_unit_test(members_that_a_training_job_lists_are_planned_with_the_first),
                cmocka_unit_test(min_chips_are_enough_where_all_do_not_fit),
                cmocka_unit_test(a_training_job_of_another_number_of_members_lists_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
