/* How long a look for victims takes, and how far what it finds is from the lower bound: reserves of 200 to
 * 5,000 nodes of 8 chips, wholly lent to pods of 1 to 8 chips, half of them or all in gangs of 2 to 8 over
 * several nodes, for emergencies of several shapes; and 2,000 nodes of 64 chips, each of a pod by itself or
 * in a gang, where CPUs are what is scarce. usage: bench_emergency [CASES] (20 of each) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "scheduler-extender/emergency/take_back.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/support/lent_reserve.h"

#define NOW        UINT64_C(1000000000000)
#define LIMIT_MS   50.0
#define LIMIT_COST 1.2

static const struct shape {
        const char *name;
        uint32_t members, chips;
} shapes[] = {
        { "one of 8", 1, 8 }, { "2 of 8", 2, 8 },   { "4 of 4", 4, 4 },
        { "16 of 8", 16, 8 }, { "64 of 1", 64, 1 },
};

static const struct shape scarce_shapes[] = { { "one of 1", 1, 1 },
                                              { "8 of 1", 8, 1 },
                                              { "64 of 1", 64, 1 } };

static double now_ms(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static struct ledger *reserve_of(uint64_t *seed, unsigned nodes, bool all)
{
        struct ledger *ledger = ledger_life_new();

        if (ledger != NULL)
                lend_reserve(ledger, seed, nodes, all, NOW);
        return ledger;
}

struct figures {
        double ms[1000], worst_cost;
        size_t count, unhelped;
};

static void look(struct ledger *ledger, struct figures *figures)
{
        const struct ledger_pod *self = ledger_pods_find(ledger, "default", "fire0");
        struct asked asked = { .context = { .ledger = ledger,
                                            .rules = &fixture_rules,
                                            .request = &self->request,
                                            .job = self->job,
                                            .self = self,
                                            .created_usec = NOW,
                                            .now_usec = NOW,
                                            .unfiltered = true },
                               .job = self->job };
        struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };
        struct take_back plan;
        struct trial trial;
        double begin = now_ms(), cost;
        int r;

        trial_begin(&trial, ledger);
        rules_prepare(&asked.context);
        r = take_back_plan(&trial, &asked, &rules, &plan);
        trial_end(&trial);
        figures->ms[figures->count++] = now_ms() - begin;
        cost = r == 0 ? (double) victim_chip_seconds(plan.cost) / (double) victim_chip_seconds(plan.bound)
                      : 0;
        figures->unhelped += r != 0;
        figures->worst_cost = cost > figures->worst_cost ? cost : figures->worst_cost;
        take_back_free(&plan);
}

static int by_time(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void tell(unsigned nodes, const struct shape *shape, const char *lent, struct figures *f)
{
        double p99;

        qsort(f->ms, f->count, sizeof(f->ms[0]), by_time);
        p99 = f->ms[f->count - 1 - f->count / 100];
        printf("%u nodes lent %s, %s: processor time p50, p99 | %.1f, %.1f ms | %.0f ms | %s\n", nodes, lent,
               shape->name, f->ms[f->count / 2], p99, LIMIT_MS, p99 <= LIMIT_MS ? "within" : "MISSED");
        printf("%u nodes lent %s, %s: work lost over the lower bound, worst | %.2f | %.1f | %s\n", nodes,
               lent, shape->name, f->worst_cost, LIMIT_COST,
               f->worst_cost <= LIMIT_COST && f->unhelped == 0 ? "within" : "MISSED");
}

static int measure(unsigned nodes, const struct shape *shape, bool all, size_t cases)
{
        static struct figures figures;
        uint64_t seed = 17;

        figures = (struct figures){ .count = 0 };
        for (size_t i = 0; i < cases && i < ARRAY_SIZE(figures.ms); i++) {
                struct ledger *ledger = reserve_of(&seed, nodes, all);

                if (ledger == NULL)
                        return -1;
                lent_emergency(ledger, "fire", shape->members, shape->chips, NOW);
                look(ledger, &figures);
                ledger_life_free(ledger);
        }
        tell(nodes, shape, all ? "to gangs" : "half to gangs", &figures);
        return 0;
}

#define SCARCE_NODES 2000
#define SCARCE_CHIPS 64

/* The emergency's CPUs are those of several borrowers, its chip is one's. */
static struct ledger *scarce_reserve(uint64_t *seed, bool gangs)
{
        struct ledger *ledger = ledger_life_new();

        for (unsigned n = 0; n < SCARCE_NODES && ledger != NULL; n++) {
                struct ledger_node_facts room = { .room = { .offered = { .cpu_milli = 512000 } } };
                char node[32], name[32], job[32];

                (void) text_format(node, sizeof(node), "r%05u", n);
                add_node(ledger, node, NODE_CLASS_ANY, "reserved", "H100", SCARCE_CHIPS, SCARCE_CHIPS);
                room.name = node;
                (void) ledger_nodes_set(ledger, &room);
                for (unsigned p = 0; p < SCARCE_CHIPS; p++) {
                        struct ledger_pod_facts facts;

                        (void) text_format(name, sizeof(name), "b%u-%u", n, p);
                        (void) text_format(job, sizeof(job), "g%u-%u", n / 4, p / 2);
                        facts = pod_of(ledger, name, 1);
                        facts.node = node;
                        facts.request.needs.cpu_milli = 4000 + (int64_t) random_below(seed, 4000);
                        facts.created_usec = NOW - (1 + random_below(seed, 100000)) * 1000000;
                        facts.job = gangs ? job : NULL;
                        facts.request.gang_size = gangs ? 8 : 1;
                        (void) ledger_pods_set(ledger, &facts);
                }
        }
        return ledger;
}

static int measure_scarce(const struct shape *shape, bool gangs, size_t cases)
{
        static struct figures figures;
        uint64_t seed = 17;

        figures = (struct figures){ .count = 0 };
        for (size_t i = 0; i < cases && i < ARRAY_SIZE(figures.ms); i++) {
                struct ledger *ledger = scarce_reserve(&seed, gangs);

                if (ledger == NULL)
                        return -1;
                lent_emergency_with(ledger, "fire", shape->members, shape->chips, 40000, NOW);
                look(ledger, &figures);
                ledger_life_free(ledger);
        }
        tell(SCARCE_NODES, shape, gangs ? "by one chip to gangs, CPUs scarce" : "by one chip, CPUs scarce",
             &figures);
        return 0;
}

int main(int argc, char **argv)
{
        static const unsigned sizes[] = { 200, 1000, 5000 };
        size_t cases = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;

        for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
                for (size_t k = 0; k < 2 * ARRAY_SIZE(shapes); k++)
                        if (measure(sizes[s], &shapes[k / 2], k % 2 > 0, cases) < 0)
                                return EXIT_FAILURE;
        for (size_t k = 0; k < 2 * ARRAY_SIZE(scarce_shapes); k++)
                if (measure_scarce(&scarce_shapes[k / 2], k % 2 > 0, cases) < 0)
                        return EXIT_FAILURE;
        return EXIT_SUCCESS;
}
