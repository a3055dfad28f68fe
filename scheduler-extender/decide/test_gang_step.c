/* The least step of a gang against all ways tried one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define NPU       "huawei.com/Ascend910"
#define NODES     4
#define CASES     400
#define MEMBERS   5
#define MODELS    4
#define CHIPS_MAX 64

/* Every member on every group that has room: the least step there is, independent of how the plan is found.
 */
struct brute {
        uint32_t open[NODES][2], model[NODES][2], resource[NODES][2];
        double speed[MODELS];
        uint32_t need[MEMBERS], wants[MEMBERS];
        size_t count;
        uint64_t batch;
        bool equal;
        double chips[CHIPS_MAX];
        size_t chip_count;
        double best;
};

/* The least T with sum floor(T speed_i) >= batch, found among the T = b / speed_i; equal shares: the slowest.
 */
static double step_of(const struct brute *b)
{
        double best = INFINITY;

        if (b->equal) {
                double slowest = 0;

                for (size_t i = 0; i < b->chip_count; i++)
                        slowest = fmax(slowest,
                                       (double) (b->batch / b->chip_count + (i < b->batch % b->chip_count)) /
                                               b->chips[i]);
                return slowest;
        }
        for (size_t i = 0; i < b->chip_count; i++)
                for (uint64_t share = 1; share <= b->batch; share++) {
                        double step = (double) share / b->chips[i];
                        uint64_t sum = 0;

                        if (step >= best)
                                break;
                        for (size_t k = 0; k < b->chip_count; k++)
                                sum += (uint64_t) floor(step * b->chips[k] * (1 + 1e-12));
                        if (sum >= b->batch)
                                best = step;
                }
        return best;
}

static void try_all(struct brute *b, size_t member)
{
        if (member == b->count) {
                double step = step_of(b);

                b->best = step < b->best ? step : b->best;
                return;
        }
        for (size_t n = 0; n < NODES; n++)
                for (size_t g = 0; g < 2; g++) {
                        uint32_t chips = b->need[member];

                        if (b->resource[n][g] != b->wants[member] || b->open[n][g] < chips)
                                continue;
                        b->open[n][g] -= chips;
                        for (uint32_t c = 0; c < chips; c++)
                                b->chips[b->chip_count++] = b->speed[b->model[n][g]];
                        try_all(b, member + 1);
                        b->chip_count -= chips;
                        b->open[n][g] += chips;
                }
}

static void add_random_node(struct ledger *ledger, struct brute *b, size_t n, uint64_t *seed)
{
        static const char *const models[MODELS] = { "H100", "A100", "V100", "K80" };
        struct inventory inventory;

        inventory_init(&inventory);
        (void) text_format(inventory.node, sizeof(inventory.node), "n%zu", n);
        for (size_t g = 0; g < 2; g++) {
                struct device_group *group;

                b->resource[n][g] = (uint32_t) random_below(seed, 3); /* 0 = there is no such group */
                b->model[n][g] = (uint32_t) (random_below(seed, 2) + (b->resource[n][g] == 2 ? 2 : 0));
                b->open[n][g] = (uint32_t) random_below(seed, 5);
                if (g == 1 && b->resource[n][0] == b->resource[n][1] && b->model[n][0] == b->model[n][1])
                        b->resource[n][1] = 0; /* one kind, two groups: members may straddle them */
                if (b->resource[n][g] == 0)
                        continue;
                group = inventory_add_group(&inventory);
                (void) text_format(group->name, sizeof(group->name), "g%zu", g);
                (void) text_copy(group->vendor, sizeof(group->vendor), "x");
                (void) text_copy(group->runtime, sizeof(group->runtime), "cuda");
                (void) text_copy(group->model, sizeof(group->model), models[b->model[n][g]]);
                (void) text_copy(group->resource, sizeof(group->resource),
                                 b->resource[n][g] == 1 ? GPU : NPU);
                group->total = 4;
                group->healthy = b->open[n][g];
                group->tflops_bf16 = b->speed[b->model[n][g]];
        }
        (void) ledger_nodes_set_inventory(ledger, &inventory);
        inventory_free(&inventory);
}

/* The step of what was leased, by the chips that the slots say. */
static double planned_step(struct brute *b, const struct weighting *weighting, const struct ledger_job *job)
{
        b->chip_count = 0;
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                const struct ledger_group *group = weighting_group(
                        slot->node->groups, slot->node->group_count, &slot->request, weighting);

                for (uint32_t c = 0; c < slot->request.items[0].chips; c++)
                        b->chips[b->chip_count++] = group->figures.tflops[CHIP_SPEED_BF16];
        }
        return step_of(b);
}

/* All members that the first one lists wait in the store. */
static void add_members(struct ledger *ledger, const struct ledger_pod_facts *first)
{
        struct ledger_pod_facts facts = *first;
        char name[16];
        int count = 0;

        facts.name = facts.uid = name;
        for (size_t k = 0; k < first->kind_count; k++)
                for (uint32_t m = 0; m < first->kinds[k].members; m++) {
                        (void) text_format(name, sizeof(name), "m-%d", count++);
                        facts.request.items[0] = (struct request_item){ .resource = first->kinds[k].resource,
                                                                        .chips = first->kinds[k].chips };
                        assert_int_equal(ledger_pods_set(ledger, &facts), 0);
                }
}

static void one_case(uint64_t number)
{
        static const double speeds[] = { 1000, 700, 400, 300, 100, 50 };
        struct ledger *ledger = test_ledger();
        struct brute *b = calloc(1, sizeof(*b));
        uint64_t seed = 77 + number;
        struct ledger_pod_facts facts;
        struct ledger_job *job;
        struct rules_context ctx;
        struct weighting *weighting = calloc(1, sizeof(*weighting));
        struct gang_demand demand = { .keep = true };

        assert_non_null(weighting);
        ledger_chips_mark(ledger, GPU);
        ledger_chips_mark(ledger, NPU);
        for (size_t m = 0; m < MODELS; m++)
                b->speed[m] = speeds[random_below(&seed, 6)];
        for (size_t n = 0; n < NODES; n++)
                add_random_node(ledger, b, n, &seed);
        facts = pod_of(ledger, "m-0", (uint32_t) random_below(&seed, 2) + 1);
        facts.job = "train";
        facts.kind_count = 2;
        facts.kinds[0] = (struct request_member){ .resource = facts.request.items[0].resource,
                                                  .chips = facts.request.items[0].chips,
                                                  .members = (uint32_t) random_below(&seed, 3) + 1 };
        facts.kinds[1] = (struct request_member){ .resource = symbols_add(&ledger->symbols, NPU),
                                                  .chips = (uint32_t) random_below(&seed, 2) + 1,
                                                  .members = (uint32_t) random_below(&seed, 2) + 1 };
        facts.request.gang_size = facts.kinds[0].members + facts.kinds[1].members;
        facts.request.batch = (uint32_t) random_below(&seed, 60) + 10;
        b->batch = facts.request.batch;
        for (size_t k = 0; k < 2; k++)
                for (uint32_t m = 0; m < facts.kinds[k].members; m++) {
                        b->wants[b->count] = (uint32_t) k + 1;
                        b->need[b->count++] = facts.kinds[k].chips;
                }
        b->best = INFINITY;
        try_all(b, 0);
        add_members(ledger, &facts);
        job = ledger_jobs_refer(ledger, "default", "train");
        ctx = context_of(ledger, &facts.request);
        ctx.job = job;
        ctx.self = ledger_pods_find(ledger, "default", "m-0");
        assert_int_equal(weighting_build(ledger, job, NULL, &facts.request, weighting), 0);
        ctx.weighting = weighting;
        demand.kinds = facts.kinds;
        demand.kind_count = facts.kind_count;
        assert_true(gang_prepare(ledger, &ctx, job, &demand) >= 0);
        if (isinf(b->best) && job->slots == NULL)
                assert_true(ctx.gang_blocked);
        else if (!isinf(b->best)) {
                double planned = planned_step(b, weighting, job);

                if (fabs(planned - b->best) > 1e-9 * b->best)
                        fail_msg("case %llu: planned %.9g, best %.9g", (unsigned long long) number, planned,
                                 b->best);
        }
        ledger_jobs_drop_lease(ledger, job);
        ledger_jobs_release(ledger, job);
        free(weighting);
        free(b);
        ledger_life_free(ledger);
}

static void the_plan_has_the_least_step_that_trying_all_finds(void **state)
{
        (void) state;
        for (uint64_t i = 0; i < CASES; i++)
                one_case(i);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_plan_has_the_least_step_that_trying_all_finds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
