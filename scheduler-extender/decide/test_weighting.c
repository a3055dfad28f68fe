/* Shares of members that are bound one by one: whoever comes first, they are the parts of one exact cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/random.h"
#include "scheduler-extender/decide/weighting_share.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define MEMBERS_MAX 5
#define NIC         "rdma/hca"

struct chips {
        const char *model;
        double bf16, fp16, fp32;
        bool estimated;
};

#define H100                                                                                                 \
        {                                                                                                    \
                "H100", 989, 989, 67, false                                                                  \
        }
#define V100                                                                                                 \
        {                                                                                                    \
                "V100", 0, 125, 15.7, false                                                                  \
        }
#define A910                                                                                                 \
        {                                                                                                    \
                "Ascend910A", 0, 256, 0, false                                                               \
        }
#define B910                                                                                                 \
        {                                                                                                    \
                "Ascend910B", 313, 313, 0, false                                                             \
        }
#define CPU                                                                                                  \
        {                                                                                                    \
                "Xeon", 0, 0, 2, true                                                                        \
        }
#define NONE                                                                                                 \
        {                                                                                                    \
                "Odd", 0, 0, 0, false                                                                        \
        }

struct gang_case {
        const char *what;
        uint32_t chips; /* of each member */
        struct chips members[MEMBERS_MAX];
        const char *source, *precision;
        uint64_t shares[MEMBERS_MAX]; /* of 1024 */
};

static const struct gang_case cases[] = {
        { "H100 and V100", 1, { H100, V100 }, "table", "fp16", { 909, 115 } },
        { "whole nodes of them", 8, { H100, V100 }, "table", "fp16", { 912, 112 } },
        { "H100 and 910A", 1, { H100, A910 }, "table", "fp16", { 814, 210 } },
        { "H100 and processors", 1, { H100, CPU }, "table", "bf16", { 1022, 2 } },
        { "H100, 910B and processors", 1, { H100, B910, CPU }, "table", "bf16", { 777, 246, 1 } },
        { "three alike", 1, { H100, H100, H100 }, "table", "bf16", { 342, 342, 340 } },
        { "one that nobody knows", 1, { H100, NONE }, "assumed", "", { 512, 512 } },
};

struct cluster_of_case {
        struct ledger *ledger;
        struct ledger_job *job;
        struct ledger_pod *pods[MEMBERS_MAX];
        struct ledger_node *nodes[MEMBERS_MAX];
        size_t count;
};

static void add_chips(struct ledger *ledger, const char *node, const struct chips *chips, unsigned total)
{
        struct inventory inventory;
        struct device_group *group;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), node);
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "group-0");
        (void) text_copy(group->vendor, sizeof(group->vendor), "x");
        (void) text_copy(group->runtime, sizeof(group->runtime), "x");
        (void) text_copy(group->model, sizeof(group->model), chips->model);
        (void) text_copy(group->resource, sizeof(group->resource), GPU);
        group->total = group->healthy = total;
        group->tflops_bf16 = chips->bf16;
        group->tflops_fp16 = chips->fp16;
        group->tflops_fp32 = chips->fp32;
        group->tflops_estimated = chips->estimated;
        assert_int_equal(ledger_nodes_set_inventory(ledger, &inventory), 0);
        inventory_free(&inventory);
}

/* Members that wait, each with a slot on its node; besides them a chip in the cluster that nobody knows. */
static void make(const struct gang_case *c, struct cluster_of_case *ret)
{
        const struct chips stranger = NONE;

        *ret = (struct cluster_of_case){ .ledger = test_ledger() };
        ledger_chips_mark(ret->ledger, GPU);
        add_chips(ret->ledger, "z", &stranger, 8);
        ret->job = ledger_jobs_refer(ret->ledger, "default", "train");
        for (; ret->count < MEMBERS_MAX && c->members[ret->count].model != NULL; ret->count++) {
                char name[2] = { (char) ('a' + ret->count), '\0' };
                struct ledger_pod_facts facts = pod_of(ret->ledger, name, c->chips);
                struct request slot;

                add_chips(ret->ledger, name, &c->members[ret->count], 8);
                facts.job = "train";
                facts.request.batch = 1024;
                facts.request.gang_size = MEMBERS_MAX;
                slot = facts.request; /* leases are of chips alone */
                facts.request.items[facts.request.item_count++] =
                        (struct request_item){ .resource = symbols_add(&ret->ledger->symbols, NIC),
                                               .chips = 2 };
                assert_int_equal(ledger_pods_set(ret->ledger, &facts), 0);
                ret->pods[ret->count] = ledger_pods_find(ret->ledger, "default", name);
                ret->nodes[ret->count] = ledger_nodes_find(ret->ledger, name, 1);
                assert_int_equal(ledger_jobs_add_slot(ret->ledger, ret->job, ret->nodes[ret->count], &slot),
                                 0);
        }
}

static struct weighting_share bind_one(struct cluster_of_case *k, size_t index, bool recorded)
{
        struct weighting *weighting = calloc(1, sizeof(*weighting));
        struct ledger_pod *pod = k->pods[index];
        struct request request = pod->request;
        struct ledger_pod_part part = { .group = k->nodes[index]->groups[0].name,
                                        .chips = request.items[0].chips };
        struct weighting_share share;

        assert_non_null(weighting);
        ledger_chips_only(k->ledger, &request);
        assert_int_equal(weighting_build(k->ledger, k->job, pod, &request, weighting), 0);
        assert_int_equal(weighting_share(weighting, k->job, pod, &request, k->nodes[index], &part, 1, &share),
                         0);
        assert_int_equal(ledger_pods_assume(k->ledger, pod, k->nodes[index], &part, recorded), 0);
        free(weighting);
        return share;
}

/* In every order of the binds, those of others (no parts are recorded then, and a NIC is no chip) included.
 */
static void every_gang_is_cut_exactly(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                for (uint64_t seed = 1; seed < 9; seed++) {
                        const struct gang_case *c = &cases[i];
                        struct cluster_of_case k;
                        bool bound[MEMBERS_MAX] = { false };
                        uint64_t dice = seed, sum = 0;

                        make(c, &k);
                        for (size_t n = 0; n < k.count; n++) {
                                size_t at = random_below(&dice, k.count);
                                struct weighting_share share;

                                while (bound[at])
                                        at = (at + 1) % k.count;
                                bound[at] = true;
                                share = bind_one(&k, at, seed % 2);
                                sum += share.batch;
                                if (share.batch != c->shares[at] ||
                                    strcmp(chip_speed_names[share.speeds.source], c->source) != 0 ||
                                    strcmp(chip_speed_precision_names[share.speeds.precision],
                                           c->precision) != 0)
                                        fail_msg("%s: member %zu takes %llu (%s %s), seed %llu", c->what, at,
                                                 (unsigned long long) share.batch,
                                                 chip_speed_names[share.speeds.source],
                                                 chip_speed_precision_names[share.speeds.precision],
                                                 (unsigned long long) seed);
                                assert_int_equal(share.chips, k.count * c->chips);
                                if (share.speeds.source == CHIP_SPEED_ASSUMED)
                                        assert_string_equal(share.lacking_node->name, "b");
                        }
                        assert_int_equal(sum, 1024);
                        ledger_jobs_drop_lease(k.ledger, k.job);
                        ledger_jobs_release(k.ledger, k.job);
                        ledger_life_free(k.ledger);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_gang_is_cut_exactly),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
