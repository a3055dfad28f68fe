/* Fills in the speeds of workers that name a device: one kind of figure for all, or, beside speeds that were
 * given, the SpeedTable's rows and the mean of those known. */
#include "planner/shards/plan_speeds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct known {
        double alpha_ms, beta_ms; /* sums */
        size_t count;
};

static void note(struct known *known, double alpha_ms, double beta_ms)
{
        known->alpha_ms += alpha_ms;
        known->beta_ms += beta_ms;
        known->count++;
}

static bool has_speed(const struct shard_worker *worker)
{
        return worker->model != SHARD_SPEED || worker->speed > 0;
}

static void set_speed(struct shard_worker *worker, double alpha_ms, double beta_ms, const char *source)
{
        worker->model = SHARD_AFFINE;
        worker->alpha_ms = alpha_ms;
        worker->beta_ms = beta_ms;
        worker->source = source;
}

/* A speed that was given; one without a slope, or beyond all reason, says nothing of others. */
static void note_given(struct known *known, struct shard_worker *worker)
{
        double beta_ms = worker->model == SHARD_SPEED ? 1000 / worker->speed : worker->beta_ms;

        worker->source = "measured";
        if (beta_ms > 0 && beta_ms < 1e12 && worker->alpha_ms < 1e12)
                note(known, worker->alpha_ms, beta_ms);
}

static void look_up(struct known *known, struct shard_worker *worker, const struct plan_speeds_device *device,
                    const struct speed_table *table, const char *model)
{
        char name[SPEED_TABLE_DEVICE_BYTES];
        const struct speed_table_row *row;

        speed_table_device(name, device->device, device->shared_by);
        row = speed_table_find(table, device->program, model, name);
        if (row == NULL)
                return;
        note(known, row->alpha_ms, row->beta_ms);
        set_speed(worker, row->alpha_ms, row->beta_ms, "measured");
}

static void fill_beside(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                        const struct speed_table *table, const char *model, struct plan_speeds_found *ret)
{
        struct known known = { .count = 0 };
        size_t lacking = count;

        for (size_t i = 0; i < count; i++)
                if (has_speed(&workers[i]))
                        note_given(&known, &workers[i]);
                else
                        look_up(&known, &workers[i], &devices[i], table, model);
        for (size_t i = 0; i < count; i++)
                if (!has_speed(&workers[i])) {
                        double of = known.count > 0 ? (double) known.count : 1;

                        lacking = lacking < count ? lacking : i;
                        set_speed(&workers[i], known.alpha_ms / of, known.count > 0 ? known.beta_ms / of : 1,
                                  "assumed");
                }
        if (lacking == count)
                return;
        ret->word = "SpeedAssumed";
        (void) text_format(
                ret->sentence, sizeof(ret->sentence),
                "%.60s (%.60s) is not in the SpeedTable and is taken for the mean of the others; give "
                "it a speed, or run a job on one",
                workers[lacking].name, devices[lacking].device);
}

static struct chip_speed_member member_of(const struct plan_speeds_known *known,
                                          const struct plan_speeds_device *device)
{
        struct chip_speed_member member = { .program = device->program,
                                            .device = device->device,
                                            .ranks_a_chip = (double) device->shared_by };

        for (size_t i = 0; i < known->chip_count; i++)
                if (strcmp(known->chips[i].model, device->device) == 0) {
                        member.figures = known->chips[i].figures;
                        break;
                }
        return member;
}

static int fill_all(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                    const struct plan_speeds_known *known, const char *model, struct plan_speeds_found *ret)
{
        CLEANUP(free_p) struct chip_speed_member *members = calloc(count + 1, sizeof(*members));
        struct chip_speed_verdict verdict;
        char lacking[CHIP_SPEED_REMARK_BYTES] = "";

        if (members == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                members[i] = member_of(known, &devices[i]);
        verdict = chip_speed_find(&known->table, model, members, count, workers);
        for (size_t i = 0; i < count; i++)
                workers[i].source = chip_speed_names[verdict.source];
        ret->ranks = true;
        ret->untimed = verdict.source != CHIP_SPEED_MEASURED;
        if (chip_speed_precision_names[verdict.precision][0] != '\0')
                ret->precision = chip_speed_precision_names[verdict.precision];
        if (verdict.lacking < count)
                (void) text_format(lacking, sizeof(lacking), "%.60s (%.60s)", workers[verdict.lacking].name,
                                   devices[verdict.lacking].device);
        ret->word = chip_speed_remark(&verdict, lacking, "a node that has one", ret->sentence);
        return 0;
}

int plan_speeds_fill(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                     const struct plan_speeds_known *known, const char *model, struct plan_speeds_found *ret)
{
        *ret = (struct plan_speeds_found){ .word = NULL };
        for (size_t i = 0; i < count; i++)
                if (has_speed(&workers[i])) {
                        fill_beside(workers, devices, count, &known->table, model, ret);
                        return 0;
                }
        return fill_all(workers, devices, count, known, model, ret);
}

void plan_speeds_known_free(struct plan_speeds_known *known)
{
        speed_table_free(&known->table);
        free(known->chips);
        *known = (struct plan_speeds_known){ .chip_count = 0 };
}
