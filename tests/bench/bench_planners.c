/* Processor time of the planners (one thread, no I/O), and what exact shares are worth. Rows: what | measured
 * | limit | verdict. Medians of several runs; about 20 s in all. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "planner/segments/segments.h"
#include "planner/shards/shards.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state >> 11;
}

static double uniform(double low, double high)
{
        return low + (high - low) * (double) next() / 9007199254740992.0;
}

static double now_ms(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
        double left = *(const double *) a, right = *(const double *) b;

        return (left > right) - (left < right);
}

static void row(const char *what, double measured, const char *unit, double limit, bool at_least)
{
        bool within = at_least ? measured >= limit : measured <= limit;

        printf("%s | %.4g%s | %s %.4g%s | %s\n", what, measured, unit, at_least ? ">=" : "<=", limit, unit,
               within ? "within" : "MISSED");
}

enum kind { SPEEDS, WHOLE_SPEEDS, MIXED, LIMITED };

static void make_workers(struct shard_worker *workers, struct shard_point (*tables)[4], size_t count,
                         enum kind kind)
{
        for (size_t i = 0; i < count; i++) {
                struct shard_worker *worker = &workers[i];

                *worker = (struct shard_worker){ .speed = kind == WHOLE_SPEEDS ? (double) (1 + next() % 100)
                                                                               : uniform(100, 1000) };
                if (kind < MIXED)
                        continue;
                worker->model = (enum shard_model)(i % 3);
                worker->alpha_ms = uniform(0, 20);
                worker->beta_ms = uniform(0.5, 10);
                for (size_t k = 0; k < 4; k++)
                        tables[i][k] = (struct shard_point){
                                (k == 0 ? 0 : tables[i][k - 1].samples) + 100 + next() % 900,
                                (k == 0 ? 0 : tables[i][k - 1].ms) + uniform(10, 2000)
                        };
                worker->points = tables[i];
                worker->point_count = 4;
                if (kind == MIXED)
                        continue;
                worker->min = next() % 2 ? next() % 300 : 0;
                worker->has_max = next() % 2;
                worker->max = 300 + next() % 2000;
                worker->multiple = 1 + next() % 16;
        }
}

static void time_shards(const char *what, size_t count, uint64_t batch, enum kind kind, int runs,
                        double limit_ms)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        CLEANUP(free_p) struct shard_point(*tables)[4] = calloc(count, sizeof(*tables));
        CLEANUP(free_p) struct shard *shards = calloc(count, sizeof(*shards));
        struct shards_plan plan;
        struct err err = { 0 };
        double times[16];

        make_workers(workers, tables, count, kind);
        for (int i = 0; i < runs; i++) {
                double start = now_ms();

                if (shards_plan(workers, count, batch, shards, &plan, &err) < 0) {
                        printf("%s | %s | - | MISSED\n", what, err.msg);
                        return;
                }
                times[i] = now_ms() - start;
        }
        qsort(times, (size_t) runs, sizeof(times[0]), by_size);
        row(what, times[runs / 2], " ms", limit_ms, false);
}

static void time_segments(const char *what, size_t count, bool table, double limit_ms)
{
        static const struct segment_point points[] = {
                { 1000, 0.5 },    { 10000, 0.6 },    { 100000, 0.9 },
                { 1000000, 1.7 }, { 10000000, 9.3 }, { 77000001, 71 }
        };
        const struct segment_level level = { 0.523027, 8.57075e-7 };
        struct segment_cost cost = { .levels = &level, .level_count = 1 };
        CLEANUP(free_p) struct segment_tensor *tensors = calloc(count, sizeof(*tensors));
        struct segments_plan plan;
        double times[9], ready_ms = 0;

        if (table)
                cost = (struct segment_cost){ .points = points, .point_count = ARRAY_SIZE(points) };
        for (size_t i = 0; i < count; i++) {
                ready_ms += uniform(0, 1);
                tensors[i] = (struct segment_tensor){ .bytes = 100 + next() % 4000000, .ready_ms = ready_ms };
        }
        for (int i = 0; i < 9; i++) {
                double start = now_ms();

                if (segments_plan(tensors, count, &cost, 8, &plan, NULL) < 0)
                        return;
                times[i] = now_ms() - start;
                segments_plan_free(&plan);
        }
        qsort(times, 9, sizeof(times[0]), by_size);
        row(what, times[4], " ms", limit_ms, false);
}

/* Modelled throughput over the sum of speeds: ideal step / step, where every worker is a plain speed. */
static void throughput(uint64_t samples_each, bool mean, double limit)
{
        static const double kinds[] = { 1, 1, 2, 3, 5 };
        double sum = 0, worst = 1;
        enum { ROUNDS = 20000 };
        char what[96];

        for (int i = 0; i < ROUNDS; i++) {
                struct shard_worker workers[64];
                struct shard shards[64];
                struct shards_plan plan;
                size_t count = 2 + next() % 63;
                double speeds = 0, ratio;
                uint64_t batch = samples_each * count;

                for (size_t w = 0; w < count; w++) {
                        workers[w] =
                                (struct shard_worker){ .speed = kinds[next() % 5] * uniform(0.7, 1.3) * 100 };
                        speeds += workers[w].speed;
                }
                if (shards_plan(workers, count, batch, shards, &plan, NULL) < 0)
                        return;
                ratio = (double) batch / plan.step_ms * 1000 / speeds;
                sum += ratio;
                worst = ratio < worst ? ratio : worst;
        }
        (void) snprintf(what, sizeof(what), "throughput / sum of speeds at B = %u n, %s of %d clusters",
                        (unsigned) samples_each, mean ? "mean" : "worst", ROUNDS);
        row(what, mean ? sum / ROUNDS : worst, "", limit, true);
}

int main(void)
{
        time_shards("shards: 4,096 workers, batch 10^6, speeds of 17 digits", 4096, 1000000, SPEEDS, 9, 10);
        time_shards("shards: 4,096 workers, batch 10^6, whole speeds", 4096, 1000000, WHOLE_SPEEDS, 9, 10);
        time_shards("shards: 4,096 workers, batch 10^6, speeds, lines and tables", 4096, 1000000, MIXED, 9,
                    10);
        time_shards("shards: 256 x 10^5 with min, max and multiple", 256, 100000, LIMITED, 5, 1000);
        time_shards("shards: 10^6 workers, batch 10^8", 1000000, 100000000, SPEEDS, 1, 10000);
        throughput(64, false, 0.9749);
        throughput(128, true, 0.995);
        time_segments("segments: 242 tensors, 8 segments", 242, false, 2);
        time_segments("segments: 242 tensors, 8 segments, a measured table", 242, true, 2);
        time_segments("segments: 2,000 tensors, 8 segments", 2000, false, 50);
        time_segments("segments: 2,000 tensors, 8 segments, a measured table", 2000, true, 50);
        return 0;
}
