/* How long one look at all emergencies keeps the event loop, and after how many looks and seconds all have
 * been planned: 50 and 500 that wait at once, single pods, gangs and both, on a reserve of 5,000 nodes that
 * is wholly lent. usage: bench_reserve [WORD]: the shapes with it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/reserve.h"
#include "tests/support/extender_bed.h"
#include "tests/support/lent_reserve.h"

#define NODES     5000
#define LIMIT_MS  50.0
#define LOOKS_MAX 2000

static const struct shape {
        const char *name;
        uint32_t members[4], chips[4]; /* one after the other; members 0 = the end */
} shapes[] = {
        { "single pods of 8", { 1 }, { 8 } },
        { "single pods of 1 to 8", { 1, 1, 1, 1 }, { 1, 8, 2, 4 } },
        { "gangs of 4 x 8", { 4 }, { 8 } },
        { "gangs of 2 to 16 and pods", { 2, 1, 16, 4 }, { 8, 4, 1, 4 } },
};

static double now_ms(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void ask(struct ledger *ledger, const struct shape *shape, size_t count, uint64_t now_usec)
{
        for (size_t i = 0, k = 0; i < count; i++, k++) {
                char name[32];

                if (k == ARRAY_SIZE(shape->members) || shape->members[k] == 0)
                        k = 0;
                (void) text_format(name, sizeof(name), "fire%zu-", i);
                lent_emergency(ledger, name, shape->members[k], shape->chips[k], now_usec + i);
        }
}

struct figures {
        double worst_ms, whole_ms, again_ms; /* again: a look when all are planned */
        size_t looks;
};

static double look(struct extender *x, uint64_t now_usec, bool *ret_all)
{
        double begin = now_ms();

        backfill_clear(cluster_ledger(x->cluster)); /* as its neighbour in the look does */
        *ret_all = reserve_update(x, now_usec);
        return now_ms() - begin;
}

/* Has every one of them its place? */
static bool served(const struct ledger *ledger)
{
        for (const struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending)
                if (!pod->served)
                        return false;
        return true;
}

static bool measure(const struct shape *shape, size_t count, bool gangs, struct figures *ret)
{
        struct extender_bed *b = extender_bed_begin(true);
        struct ledger *ledger = cluster_ledger(b->extender->cluster);
        uint64_t seed = 17, now = extender_now(b->extender);
        bool all = false;

        *ret = (struct figures){ .looks = 0 };
        b->extender->cluster->options.rules.takes = LEDGER_PODS_TAKES_BORROWERS;
        ledger_pods_drop(ledger, "default", "p");
        ledger_pods_drop(ledger, "default", "q");
        lend_reserve(ledger, &seed, NODES, gangs, now);
        ask(ledger, shape, count, now);
        while (!all && ret->looks < LOOKS_MAX) {
                double ms = look(b->extender, now, &all);

                ret->worst_ms = ms > ret->worst_ms ? ms : ret->worst_ms;
                ret->whole_ms += ms;
                ret->looks++;
        }
        while (b->extender->metrics.take_backs > 0 && ret->again_ms == 0)
                ret->again_ms = look(b->extender, now, &all);
        all = all && served(ledger);
        extender_bed_free(b);
        return all;
}

static void tell(const struct shape *shape, size_t count, bool gangs)
{
        const char *lent = gangs ? "to gangs" : "half to gangs";
        struct figures f;
        bool all = measure(shape, count, gangs, &f);
        double worst = f.worst_ms > f.again_ms ? f.worst_ms : f.again_ms;

        printf("%u nodes lent %s, %zu x %s: processor time of a look, worst | %.1f ms | %.0f ms | %s\n",
               NODES, lent, count, shape->name, worst, LIMIT_MS, worst <= LIMIT_MS ? "within" : "MISSED");
        printf("%u nodes lent %s, %zu x %s: all are planned: looks, processor time, a look then | %zu, %.0f "
               "ms, "
               "%.1f ms | all | %s\n",
               NODES, lent, count, shape->name, f.looks, f.whole_ms, f.again_ms, all ? "within" : "MISSED");
        (void) fflush(stdout);
}

int main(int argc, char **argv)
{
        static const size_t counts[] = { 50, 500 };

        for (size_t k = 0; k < 2 * ARRAY_SIZE(counts) * ARRAY_SIZE(shapes); k++) {
                const struct shape *shape = &shapes[k / 2 % ARRAY_SIZE(shapes)];

                if (argc == 1 || strstr(shape->name, argv[1]) != NULL)
                        tell(shape, counts[k / 2 / ARRAY_SIZE(shapes)], k % 2 > 0);
        }
        return EXIT_SUCCESS;
}
