/* Each option of the trainer, from the fields that it stands for. */
#include "job/spec/job_arguments.h"

#include "base/text.h"

static void add_pair(struct arguments *args, const char *option, const char *value)
{
        arguments_add(args, "%s", option);
        arguments_add(args, "%s", value);
}

static void add_number(struct arguments *args, const char *option, uint64_t value)
{
        arguments_add(args, "%s", option);
        arguments_add(args, "%llu", (unsigned long long) value);
}

/* "1,2,3" */
static void add_list(struct arguments *args, const char *option, const uint64_t *numbers, size_t count)
{
        struct text list = { 0 };

        for (size_t i = 0; i < count; i++)
                text_printf(&list, "%s%llu", i == 0 ? "" : ",", (unsigned long long) numbers[i]);
        if (list.data != NULL)
                add_pair(args, option, list.data);
        args->failed = args->failed || list.failed;
        text_free(&list);
}

static void add_strategy(const struct job *job, const struct job_arguments *what, struct arguments *args)
{
        add_pair(args, "--strategy", job_strategy_names[job->strategy]);
        if (job_strategy_has_servers(job->strategy))
                add_number(args, "--servers", what->servers);
        if (job->strategy == JOB_STRATEGY_PS_SSP)
                add_number(args, "--staleness", job->staleness);
        if (job->strategy == JOB_STRATEGY_SPLIT)
                add_number(args, "--microbatches", job->microbatches);
        if (job->neighbour_exchange > 0) {
                arguments_add(args, "--neighbour-exchange");
                arguments_add(args, "%.17g", job->neighbour_exchange);
        }
}

static void add_data(const struct job *job, struct arguments *args)
{
        add_pair(args, "--data", job->data.path);
        if (job->data.order != JOB_ORDER_BLOCKS)
                add_pair(args, "--order", job_order_names[job->data.order]);
        if (job->data.preprocess[0] != '\0')
                add_pair(args, "--preprocess", job->data.preprocess);
        if (job->data.distribute != JOB_DATA_SHARED)
                add_pair(args, "--distribute", job_distribute_names[job->data.distribute]);
        if (job->data.poll_seconds > 0)
                add_number(args, "--poll", job->data.poll_seconds);
        add_pair(args, "--model", job->model);
        add_number(args, "--seed", job->seed);
        if (job->learning_rate > 0) {
                arguments_add(args, "--learning-rate");
                arguments_add(args, "%.17g", job->learning_rate);
        }
}

bool job_arguments_taken(const struct job *job)
{
        return job->data.given && !job->has_args;
}

uint64_t job_arguments_epochs(const struct job *job)
{
        return job_arguments_taken(job) || job->has_epochs ? job->epochs : 0;
}

void job_arguments_add(const struct job *job, const struct job_arguments *what, struct arguments *args)
{
        add_data(job, args);
        add_number(args, "--batch", job->global_batch);
        add_number(args, "--epochs", job->epochs);
        add_strategy(job, what, args);
        if ((job->strategy != JOB_STRATEGY_SPLIT || what->replicas) && what->share_count > 0)
                add_list(args, "--shares", what->shares, what->share_count);
        if (job->strategy == JOB_STRATEGY_SPLIT && what->stages != NULL)
                add_pair(args, "--stages", what->stages);
        if (job->segments == JOB_SEGMENTS_AUTO && what->segment_count > 0)
                add_list(args, "--segments", what->segments, what->segment_count);
        else if (job->segments == JOB_SEGMENTS_AUTO && job->strategy == JOB_STRATEGY_ALLREDUCE &&
                 what->share_count != 1) /* 0: a cluster's, where no list of them is given */
                add_pair(args, "--segments", "auto");
        else if (job->segments == JOB_SEGMENTS_NONE)
                add_pair(args, "--segments", "none");
        else
                add_list(args, "--segments", job->segment_list, job->segment_count);
        if (job->levels.kind == JOB_LEVELS_LIST)
                add_list(args, "--groups", job->levels.workers, job->levels.count);
        arguments_add(args, "--evaluate");
        if (what->checkpoint[0] != '\0') {
                add_pair(args, "--checkpoint", what->checkpoint);
                add_number(args, "--every", job->checkpoint.every_steps);
                if (what->resume)
                        arguments_add(args, "--resume");
        }
        if (what->sample_log != NULL)
                add_pair(args, "--sample-log", what->sample_log);
        if (what->timeline != NULL)
                add_pair(args, "--timeline", what->timeline);
}
