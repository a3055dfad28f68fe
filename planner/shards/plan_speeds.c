/* Fills in the speeds of workers that name a device: from the table of speeds, else the mean of those known.
 */
#include "planner/shards/plan_speeds.h"

#include <stdbool.h>

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
        set_speed(worker, row->alpha_ms, row->beta_ms, "table");
}

void plan_speeds_fill(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                      const struct speed_table *table, const char *model)
{
        struct known known = { .count = 0 };

        for (size_t i = 0; i < count; i++)
                if (has_speed(&workers[i]))
                        note_given(&known, &workers[i]);
                else
                        look_up(&known, &workers[i], &devices[i], table, model);
        for (size_t i = 0; i < count; i++)
                if (!has_speed(&workers[i]) && known.count > 0)
                        set_speed(&workers[i], known.alpha_ms / (double) known.count,
                                  known.beta_ms / (double) known.count, "assumed");
                else if (!has_speed(&workers[i]))
                        set_speed(&workers[i], 0, 1, "assumed");
}
