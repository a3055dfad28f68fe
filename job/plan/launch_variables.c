/* The names, in the order in which people read them. */
#include "job/plan/launch_variables.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "job/plan/launch_levels.h"
#include "job/spec/job_role.h"

static void set(void *userdata, const char *name, const char *value)
{
        (void) json_object_set_new(userdata, name, json_string(value));
}

struct launch_variables launch_variables_json(json_t *object)
{
        return (struct launch_variables){ set, object };
}

void launch_variables_add(const struct launch_variables *to, const char *name, const char *fmt, ...)
{
        CLEANUP(free_p) char *value = NULL;
        va_list values;

        va_start(values, fmt);
        if (vasprintf(&value, fmt, values) < 0)
                value = NULL;
        va_end(values);
        to->add(to->userdata, name, value == NULL ? "" : value);
}

void launch_variables_torch(const struct launch_world *world, size_t rank, const struct launch_variables *to)
{
        struct launch_place place = launch_place_of(world, rank);

        to->add(to->userdata, "MASTER_ADDR", world->ranks[0].address);
        launch_variables_add(to, "MASTER_PORT", "%u", world->port);
        launch_variables_add(to, "RANK", "%zu", rank);
        launch_variables_add(to, "WORLD_SIZE", "%zu", world->count);
        launch_variables_add(to, "LOCAL_RANK", "%zu", place.local_rank);
        launch_variables_add(to, "LOCAL_WORLD_SIZE", "%zu", place.local_size);
        launch_variables_add(to, "GROUP_RANK", "%zu", place.node_index);
        launch_variables_add(to, "GROUP_WORLD_SIZE", "%zu", place.node_count);
        launch_variables_add(to, "ROLE_RANK", "%zu", rank);
        launch_variables_add(to, "ROLE_WORLD_SIZE", "%zu", world->count);
        to->add(to->userdata, "TORCHELASTIC_RUN_ID", world->job);
        launch_variables_add(to, "TORCHELASTIC_RESTART_COUNT", "%llu", (unsigned long long) world->restarts);
        launch_variables_add(to, "TORCHELASTIC_MAX_RESTARTS", "%llu",
                             (unsigned long long) world->restart_max);
}

/* The shortest decimal that is read as the same number. */
static void add_number(const struct launch_variables *to, const char *name, double number)
{
        struct text text = { 0 };

        json_writer_append_double(&text, number);
        to->add(to->userdata, name, text.data == NULL ? "0" : text.data);
        text_free(&text);
}

static void add_list(const struct launch_variables *to, const char *name, const uint64_t *numbers,
                     size_t count)
{
        struct text list = { 0 };

        for (size_t i = 0; i < count; i++)
                text_printf(&list, "%s%llu", i == 0 ? "" : ",", (unsigned long long) numbers[i]);
        if (list.data != NULL)
                to->add(to->userdata, name, list.data);
        text_free(&list);
}

/* "4,2" */
void launch_variables_groups(const struct launch_world *world, const struct launch_variables *to)
{
        CLEANUP(free_p) struct levels_group *groups = calloc(world->count + 1, sizeof(*groups));
        size_t count = groups == NULL ? 0 : launch_levels_groups(world, groups);
        struct text list = { 0 };

        for (size_t i = 0; i < count; i++)
                text_printf(&list, "%s%zu", i == 0 ? "" : ",", groups[i].workers);
        to->add(to->userdata, "REMUDA_GROUPS", list.data == NULL ? count == 0 ? "0" : "" : list.data);
        text_free(&list);
}

void launch_variables_segments(const uint64_t *last, size_t count, const struct launch_variables *to)
{
        add_list(to, "REMUDA_SEGMENTS", last, count);
}

/* What the job says of it. Where it leaves it to the links, who starts the ranks proposes it. */
static void add_levels(const struct job *job, const struct launch_variables *to)
{
        if (job->levels.kind == JOB_LEVELS_LIST)
                add_list(to, "REMUDA_LEVELS", job->levels.workers, job->levels.count);
        else if (job->levels.kind == JOB_LEVELS_NONE)
                to->add(to->userdata, "REMUDA_LEVELS", "none");
}

static void add_data(const struct job *job, const struct launch_variables *to)
{
        to->add(to->userdata, "REMUDA_DATA", job->data.path);
        to->add(to->userdata, "REMUDA_FORMAT", job_format_names[job->data.format]);
        to->add(to->userdata, "REMUDA_DISTRIBUTE", job_distribute_names[job->data.distribute]);
        to->add(to->userdata, "REMUDA_ORDER", job_order_names[job->data.order]);
        if (job->data.preprocess[0] != '\0')
                to->add(to->userdata, "REMUDA_PREPROCESS", job->data.preprocess);
        if (job->data.poll_seconds > 0)
                add_number(to, "REMUDA_POLL", (double) job->data.poll_seconds);
}

void launch_variables_job(const struct job *job, const struct launch_variables *to)
{
        const struct {
                const char *name;
                bool said;
                double value;
        } rows[] = {
                { "REMUDA_GLOBAL_BATCH", true, (double) job->global_batch },
                { "REMUDA_EPOCHS", job->has_epochs, (double) job->epochs },
                { "REMUDA_STALENESS", job->strategy == JOB_STRATEGY_PS_SSP, (double) job->staleness },
                { "REMUDA_MICROBATCHES", job->strategy == JOB_STRATEGY_SPLIT, (double) job->microbatches },
                { "REMUDA_LEARNING_RATE", job->learning_rate > 0, job->learning_rate },
                { "REMUDA_NEIGHBOUR_EXCHANGE", job->neighbour_exchange > 0, job->neighbour_exchange },
                { "REMUDA_CHECKPOINT_EVERY", job->checkpoint.given, (double) job->checkpoint.every_steps },
        };

        to->add(to->userdata, "REMUDA_STRATEGY", job_strategy_names[job->strategy]);
        if (job->has_model)
                to->add(to->userdata, "REMUDA_MODEL", job->model);
        if (job->has_seed)
                launch_variables_add(to, "REMUDA_SEED", "%llu", (unsigned long long) job->seed);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (rows[i].said)
                        add_number(to, rows[i].name, rows[i].value);
        if (job->segments == JOB_SEGMENTS_NONE)
                to->add(to->userdata, "REMUDA_SEGMENTS", "none");
        launch_variables_segments(job->segment_list, job->segment_count, to);
        add_levels(job, to);
        if (job->data.given)
                add_data(job, to);
}

/* Of several, which one is it, and how much of each batch is its? */
static void add_pipeline(const struct launch_world *world, size_t rank, const struct launch_variables *to)
{
        struct launch_pipeline pipeline = launch_pipeline_of(world, rank);

        if (pipeline.count < 2)
                return;
        launch_variables_add(to, "REMUDA_PIPELINE", "%zu", pipeline.index);
        launch_variables_add(to, "REMUDA_PIPELINES", "%zu", pipeline.count);
        launch_variables_add(to, "REMUDA_PIPELINE_BATCH", "%llu", (unsigned long long) pipeline.batch);
}

void launch_variables_own(const struct launch_world *world, size_t rank, const struct launch_variables *to)
{
        const struct launch_rank *of = &world->ranks[rank];
        const char *visible = vendor_program_variable(of->runtime);

        if (visible != NULL && of->visible != NULL)
                to->add(to->userdata, visible, of->visible);
        else if (visible != NULL)
                launch_variables_add(to, visible, "%u", of->device_index);
        to->add(to->userdata, "REMUDA_JOB", world->job);
        to->add(to->userdata, "REMUDA_ROLE", job_role_names[of->server]);
        to->add(to->userdata, "REMUDA_VENDOR", of->vendor);
        if (of->device != NULL)
                to->add(to->userdata, "REMUDA_DEVICES", of->device);
        if (of->pci != NULL && of->pci[0] != '\0')
                to->add(to->userdata, "REMUDA_PCI", of->pci);
        if (world->global_batch > 0) {
                add_number(to, "REMUDA_WEIGHT", of->weight);
                launch_variables_add(to, "REMUDA_BATCH", "%llu", (unsigned long long) of->batch);
        }
        if (world->levels != NULL)
                to->add(to->userdata, "REMUDA_LEVELS", world->levels);
        if (of->layers != NULL)
                launch_variables_add(to, "REMUDA_LAYERS", "%llu:%llu", (unsigned long long) of->layers[0],
                                     (unsigned long long) of->layers[1]);
        add_pipeline(world, rank, to);
        if (world->epoch_known || of->end > of->begin)
                launch_variables_add(to, "REMUDA_SHARD", "%llu:%llu", (unsigned long long) of->begin,
                                     (unsigned long long) of->end);
}
