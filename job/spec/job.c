/* What a job may say, beyond the bounds of each field; defaults and what follows from several fields. */
#include "job/spec/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/spec/job_arguments.h"
#include "job/spec/preprocess_steps.h"

#define STALENESS    4 /* unless the job says another */
#define MICROBATCHES 4

/* clang-format off */
const char *const job_urgency_names[JOB_URGENCY_COUNT + 1] = {
        [JOB_URGENCY_REGULAR]   = "regular",
        [JOB_URGENCY_EMERGENCY] = "emergency",
};
const char *const job_placement_names[JOB_PLACEMENT_COUNT + 1] = {
        [JOB_PLACEMENT_FASTEST]      = "fastest",
        [JOB_PLACEMENT_UNIFORM]      = "uniform",
        [JOB_PLACEMENT_LARGEST_FREE] = "largest-free",
        [JOB_PLACEMENT_PACKED]       = "packed",
};
const char *const job_strategy_names[JOB_STRATEGY_COUNT + 1] = {
        [JOB_STRATEGY_ALLREDUCE] = "allreduce",
        [JOB_STRATEGY_PS_SYNC]   = "ps-sync",
        [JOB_STRATEGY_PS_ASYNC]  = "ps-async",
        [JOB_STRATEGY_PS_SSP]    = "ps-ssp",
        [JOB_STRATEGY_SPLIT]     = "split",
};
const char *const job_disruption_names[JOB_EVICTION_COUNT + 1] = {
        [JOB_EVICTION_AUTO] = "auto",
        [JOB_EVICTION_NEVER] = "never",
        [JOB_EVICTION_ALLOWED] = "allowed",
};
const char *const job_shards_names[JOB_SHARDS_COUNT + 1] = {
        [JOB_SHARDS_WEIGHTED] = "weighted",
        [JOB_SHARDS_EQUAL]    = "equal",
};
const char *const job_format_names[JOB_FORMAT_COUNT + 1] = {
        [JOB_FORMAT_IDX]  = "idx",
        [JOB_FORMAT_RAW]  = "raw",
        [JOB_FORMAT_TEXT] = "text",
};
const char *const job_distribute_names[JOB_DATA_COUNT + 1] = {
        [JOB_DATA_SHARED]  = "shared",
        [JOB_DATA_MANAGER] = "manager",
        [JOB_DATA_ONCE]    = "once",
};
const char *const job_order_names[JOB_ORDER_COUNT + 1] = {
        [JOB_ORDER_BLOCKS]      = "blocks",
        [JOB_ORDER_ROUND_ROBIN] = "round-robin",
};
/* clang-format on */

void job_init(struct job *job)
{
        *job = (struct job){
                .staleness = STALENESS,
                .microbatches = MICROBATCHES,
                .replicas = 1,
                .profile = { .samples = 1 },
                .model = "mlp",
                .seed = 1,
                .global_batch = 256,
                .epochs = 1,
                .checkpoint.every_steps = 100,
                .tls = { .server_name = "manager", .group_name = "group" },
                .run_as_user = JOB_USER,
                .run_as_group = JOB_USER,
                .servers = { .runtime = "cpu",
                             .chips = 1,
                             .min_chips = 1 }, /* it is there on every machine */
                .restart = { .max = 3, .migrate = true, .resplit = true, .hang_seconds = JOB_HANG_SECONDS },
        };
}

static void free_strings(char **strings, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(strings[i]);
        free(strings);
}

void job_free(struct job *job)
{
        if (job == NULL)
                return;
        for (size_t i = 0; i < job->program_count; i++)
                free_strings(job->programs[i].command, job->programs[i].command_count);
        free(job->programs);
        free_strings(job->args, job->arg_count);
        free(job->depends_on);
        free(job->segment_list);
        free(job->levels.workers);
        free(job->stages);
        job_split_profile_free(&job->profile);
        free(job->pull_secrets);
        for (size_t i = 0; i < job->worker_count; i++) {
                json_table_free(&job_template_table, &job->workers[i].template);
                job_role_free_place(&job->workers[i].place);
        }
        json_table_free(&job_template_table, &job->servers.template);
        job_role_free_place(&job->servers.place);
        job_role_free_place(&job->manager_place);
        free(job->workers);
        job_init(job);
}

bool job_strategy_has_servers(int strategy)
{
        return strategy == JOB_STRATEGY_PS_SYNC || strategy == JOB_STRATEGY_PS_ASYNC ||
               strategy == JOB_STRATEGY_PS_SSP;
}

bool job_shares_follow_speeds(const struct job *job)
{
        return job->shards == JOB_SHARDS_WEIGHTED && job->strategy != JOB_STRATEGY_SPLIT;
}

bool job_shares_change_live(const struct job *job)
{
        return job_shares_follow_speeds(job) && job->data.distribute == JOB_DATA_SHARED &&
               job->neighbour_exchange <= 0 &&
               (job->strategy == JOB_STRATEGY_ALLREDUCE || job->strategy == JOB_STRATEGY_PS_SYNC);
}

uint64_t job_worker_chips(const struct job *job)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < job->worker_count; i++)
                chips += job->workers[i].chips;
        return chips;
}

uint64_t job_server_chips(const struct job *job)
{
        if (!job_strategy_has_servers(job->strategy))
                return 0;
        return job->has_servers ? job->servers.chips : 1;
}

uint64_t job_restart_max(const struct job *job)
{
        if (job->restart.given)
                return job->restart.max;
        return job->checkpoint.given ? 3 : 0;
}

static int check_roles(const struct job *job, struct err *err)
{
        if (job_worker_chips(job) > JOB_CHIPS_MAX)
                return err_set(err, -EINVAL, "spec.workers: %llu chips in all; at most %d are allowed",
                               (unsigned long long) job_worker_chips(job), JOB_CHIPS_MAX);
        if (job->strategy != JOB_STRATEGY_SPLIT && job->global_batch < job_worker_chips(job))
                return err_set(err, -EINVAL,
                               "spec.globalBatch: %llu is fewer than one sample for each of the %llu chips; "
                               "raise it or "
                               "ask for fewer chips",
                               (unsigned long long) job->global_batch,
                               (unsigned long long) job_worker_chips(job));
        return 0;
}

/* The reference trainer knows four models; a job of a program of one's own names its model as it likes. */
static int check_model(const struct job *job, struct err *err)
{
        static const char *const known[] = { "mlp", "cnn", "resnet", "text" };

        if (!job_arguments_taken(job))
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(job->model, known[i]) == 0)
                        return 0;
        return err_set(err, -EINVAL,
                       "spec.model: '%s' is not mlp, cnn, resnet or text; a program of your own is given its "
                       "options by spec.args and may then name any model",
                       job->model);
}

/* So it is with the steps of its own data. */
static int check_preprocess(const struct job *job, struct err *err)
{
        struct preprocess_steps steps;
        int r = job->has_args ? 0 : preprocess_steps_parse(job->data.preprocess, &steps, err);

        if (r == 0 && !job->has_args)
                r = preprocess_steps_fit(&steps, strcmp(job->model, "text") == 0, err);
        return r < 0 ? err_wrap(err, r, "spec.data.preprocess") : 0;
}

static int check_dependencies(const struct job *job, struct err *err)
{
        for (size_t i = 0; i < job->dependency_count; i++) {
                const char *parent = job->depends_on[i];

                if (strcmp(parent, job->name) == 0)
                        return err_set(err, -EINVAL,
                                       "spec.dependsOn[%zu]: '%s' is this job itself; remove it", i, parent);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(parent, job->depends_on[k]) == 0)
                                return err_set(err, -EINVAL,
                                               "spec.dependsOn[%zu]: '%s' is listed twice; remove one", i,
                                               parent);
        }
        return 0;
}

/* What one strategy alone follows, another would drop without a word. The default passes, as the API server
 * writes it into every job; so does what the strategy does anyway: nobody is ahead, and a batch is one part.
 */
static int check_strategy(const struct job *job, struct err *err)
{
        const struct {
                const char *field;
                uint64_t value, default_;
                int strategy; /* whose it is */
                bool done;    /* by this one, too */
        } rows[] = {
                { "staleness", job->staleness, STALENESS, JOB_STRATEGY_PS_SSP,
                  job->staleness == 0 && job->strategy != JOB_STRATEGY_PS_ASYNC },
                { "microbatches", job->microbatches, MICROBATCHES, JOB_STRATEGY_SPLIT,
                  job->microbatches == 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (job->strategy != rows[i].strategy && rows[i].value != rows[i].default_ && !rows[i].done)
                        return err_set(err, -EINVAL,
                                       "spec.%s: %llu is for strategy %s alone, and strategy is %s; leave "
                                       "%s out, or write strategy: %s",
                                       rows[i].field, (unsigned long long) rows[i].value,
                                       job_strategy_names[rows[i].strategy],
                                       job_strategy_names[job->strategy], rows[i].field,
                                       job_strategy_names[rows[i].strategy]);
        return 0;
}

/* As above, of lists. */
static int check_split(const struct job *job, struct err *err)
{
        const char *field = job->replicas != 1                                                 ? "replicas"
                            : job->stage_count > 0                                             ? "stages"
                            : job->profile.layer_count > 0 || job->profile.map.name[0] != '\0' ? "profile"
                                                                                               : NULL;

        if (field != NULL && job->strategy != JOB_STRATEGY_SPLIT)
                return err_set(
                        err, -EINVAL,
                        "spec.%s: it is for strategy split alone, and strategy is %s; leave %s out, or "
                        "write strategy: split",
                        field, job_strategy_names[job->strategy], field);
        if (field != NULL && job->shards == JOB_SHARDS_EQUAL)
                return err_set(err, -EINVAL,
                               "spec.%s: nothing follows it where shards are equal; leave it out, or write "
                               "shards: weighted",
                               field);
        if (job->replicas > job_worker_chips(job) || job->replicas > job->microbatches)
                return err_set(err, -EINVAL,
                               "spec.replicas: %llu pipelines for %llu chips and %llu microbatches, of which "
                               "each has one or more; ask for fewer, or for more microbatches",
                               (unsigned long long) job->replicas, (unsigned long long) job_worker_chips(job),
                               (unsigned long long) job->microbatches);
        if (job->stage_count > job_worker_chips(job))
                return err_set(
                        err, -EINVAL,
                        "spec.stages: %zu for %llu chips, each of which holds one stage; list fewer, or "
                        "ask for more chips",
                        job->stage_count, (unsigned long long) job_worker_chips(job));
        return job_split_check(job->stages, job->stage_count, job->profile.layer_count, err);
}

static int check_segments(const struct job *job, struct err *err)
{
        for (size_t i = 1; i < job->segment_count; i++)
                if (job->segment_list[i] <= job->segment_list[i - 1])
                        return err_set(err, -EINVAL,
                                       "spec.segments[%zu]: %llu does not come after %llu; list the last "
                                       "tensor of each "
                                       "segment, growing",
                                       i, (unsigned long long) job->segment_list[i],
                                       (unsigned long long) job->segment_list[i - 1]);
        if (job->segment_count > 0 && job->strategy != JOB_STRATEGY_ALLREDUCE)
                return err_set(err, -EINVAL,
                               "spec.segments: a list is for strategy allreduce alone, and strategy is %s, "
                               "which cuts no gradients; leave segments out, or write strategy: allreduce",
                               job_strategy_names[job->strategy]);
        return 0;
}

/* A path becomes an argument of a program: it must not be taken for an option. */
static int check_path(const char *path, const char *field, struct err *err)
{
        if (path[0] == '-')
                return err_set(err, -EINVAL, "%s: '%.100s' looks like an option; write ./%.100s", field, path,
                               path);
        return 0;
}

int job_check(const struct job *job, struct err *err)
{
        int r = check_model(job, err);

        if (r == 0)
                r = check_preprocess(job, err);
        if (r == 0)
                r = check_roles(job, err);
        if (r == 0)
                r = check_dependencies(job, err);
        if (r == 0)
                r = check_segments(job, err);
        if (r == 0)
                r = job_levels_check(job, err);
        if (r == 0)
                r = check_strategy(job, err);
        if (r == 0)
                r = check_split(job, err);
        if (r == 0 && job->preemptible && job->disruption == JOB_EVICTION_NEVER)
                return err_set(
                        err, -EINVAL,
                        "spec.disruption: never, and preemptible is true; of a job that may be evicted "
                        "write allowed, or leave it out");
        if (r == 0 && job->data.given)
                r = check_path(job->data.path, "spec.data.path", err);
        if (r == 0 && job->checkpoint.given)
                r = check_path(job->checkpoint.path, "spec.checkpoint.path", err);
        if (r == 0 && job->checkpoint.claim[0] != '\0' && job->checkpoint.path[0] != '/')
                return err_set(
                        err, -EINVAL,
                        "spec.checkpoint.claim: a claim is mounted at spec.checkpoint.path, which must "
                        "then be absolute; write path: /checkpoint");
        if (r == 0 && job->data.claim[0] != '\0' && job->data.path[0] != '/')
                return err_set(err, -EINVAL,
                               "spec.data.claim: a claim is mounted at spec.data.path, which must then be "
                               "absolute; write path: /data");
        return r;
}
