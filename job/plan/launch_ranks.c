/* The entries of rank files and of plans. */
#include "job/plan/launch_ranks.h"

#include <limits.h>

#include "job/plan/launch_frameworks.h"
#include "job/spec/job_role.h"

bool launch_ranks_path(char *path, size_t size, const struct launch_ranks_files *files, size_t number,
                       const char *suffix)
{
        return text_format(path, size, "%s/%s-%zu.%s", files->folder, files->tag, number, suffix);
}

unsigned launch_ranks_threads(unsigned cores, size_t ranks)
{
        return ranks > 0 && cores / ranks > 1 ? (unsigned) (cores / ranks) : 1;
}

static json_t *environment_of(const struct launch_world *world, size_t rank, const char *progress,
                              const struct launch_ranks_files *files)
{
        const struct launch_rank *of = &world->ranks[rank];
        json_t *environment = json_object();
        const struct launch_variables to = launch_variables_json(environment);

        launch_variables_own(world, rank, &to);
        launch_frameworks_add(world, rank, files->table, &to);
        to.add(to.userdata, "REMUDA_GROUP", of->group);
        to.add(to.userdata, "REMUDA_PLAN", files->plan);
        to.add(to.userdata, "REMUDA_PROGRESS", progress);
        if (files->shares != NULL)
                to.add(to.userdata, "REMUDA_SHARES", files->shares);
        launch_variables_add(&to, "REMUDA_WORLD", "%llu", (unsigned long long) world->number);
        launch_variables_add(&to, "REMUDA_RESTARTS", "%llu", (unsigned long long) world->restarts);
        if (files->checkpoint[0] != '\0')
                to.add(to.userdata, "REMUDA_CHECKPOINT", files->checkpoint);
        if (files->threads > 0)
                launch_variables_add(&to, "OMP_NUM_THREADS", "%u", files->threads);
        launch_variables_groups(world, &to);
        launch_variables_segments(world->segments, world->segment_count, &to);
        if (world->spec != NULL)
                launch_variables_job(world->spec, &to);
        return environment;
}

json_t *launch_ranks_entry(const struct launch_world *world, size_t rank, size_t number,
                           const struct launch_ranks_files *files)
{
        char out[PATH_MAX], errors[PATH_MAX], report[PATH_MAX], progress[PATH_MAX];

        (void) launch_ranks_path(out, sizeof(out), files, number, "out");
        (void) launch_ranks_path(errors, sizeof(errors), files, number, "err");
        (void) launch_ranks_path(report, sizeof(report), files, number, "report");
        (void) launch_ranks_path(progress, sizeof(progress), files, number, "progress");
        return json_pack("{s:s, s:o, s:s, s:s, s:s}", "runtime", world->ranks[rank].runtime, "environment",
                         environment_of(world, rank, progress, files), "stdout", out, "stderr", errors,
                         "report", report);
}

static void put(json_t *entry, const char *name, const char *word)
{
        if (word != NULL)
                (void) json_object_set_new(entry, name, json_string(word));
}

static json_t *pair(uint64_t first, uint64_t last)
{
        return json_pack("[I, I]", (json_int_t) first, (json_int_t) last);
}

/* A peak of a data sheet is no speed that anybody saw. */
static json_t *speed_json(const struct launch_speed *known)
{
        json_t *ret = known->beta_ms > 0 ? json_pack("{s:f, s:f, s:s}", "alpha_ms", known->alpha_ms,
                                                     "beta_ms", known->beta_ms, "source", known->source)
                                         : json_pack("{s:s}", "source", known->source);

        if (known->precision[0] != '\0')
                (void) json_object_set_new(ret, "precision", json_string(known->precision));
        return ret;
}

static json_t *plan_entry(const struct launch_world *world, size_t index)
{
        const struct launch_rank *rank = &world->ranks[index];
        struct launch_pipeline pipeline = launch_pipeline_of(world, index);
        json_t *entry = json_pack("{s:I, s:s, s:s}", "rank", (json_int_t) index, "role",
                                  job_role_names[rank->server], "runtime", rank->runtime);

        put(entry, "device", rank->device);
        put(entry, "group", rank->group);
        put(entry, "program", rank->known.program);
        put(entry, "program_sha256", rank->known.sha256);
        (void) json_object_set_new(entry, "batch", json_integer((json_int_t) rank->batch));
        (void) json_object_set_new(entry, "weight", json_real(rank->weight));
        (void) json_object_set_new(entry, "shard", pair(rank->begin, rank->end));
        if (rank->known.source != NULL)
                (void) json_object_set_new(entry, "speed", speed_json(&rank->known));
        put(entry, "node", rank->node);
        put(entry, "device_model", rank->model);
        if (rank->layers != NULL)
                (void) json_object_set_new(entry, "layers", pair(rank->layers[0], rank->layers[1]));
        if (pipeline.count > 1)
                (void) json_object_set_new(entry, "pipeline", json_integer((json_int_t) pipeline.index));
        return entry;
}

json_t *launch_ranks_plan(const struct launch_world *world)
{
        json_t *ranks = json_array();
        int r = 0;

        for (size_t i = 0; r == 0 && i < world->count; i++)
                r = json_array_append_new(ranks, plan_entry(world, i));
        if (r == 0)
                return ranks;
        json_decref(ranks);
        return NULL;
}
