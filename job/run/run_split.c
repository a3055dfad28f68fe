/* The stages of a split job: what is known of its layers and chips goes to the one planner, and the ranks
 * stand as it says. Every chip of a fixed count is used; one of a range that would slow the job is left out.
 */
#include "job/run/run_split.h"
#include "job/run/run_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/run/run_migrate.h"
#include "job/stages/stage_plan.h"
#include "job/stages/stage_profile.h"
#include "job/world/resplit.h"

bool run_split_measures(const struct run *run)
{
        return run->job.strategy == JOB_STRATEGY_SPLIT && run->job.profile.layer_count == 0;
}

static uint64_t bytes_of(const json_t *layer, const char *name)
{
        json_int_t value = json_integer_value(json_object_get(layer, name));

        return value > 0 ? (uint64_t) value : 0;
}

/* The sizes of the layers, which are the same on every chip. Return: false without memory. */
static bool read_sizes(struct run *run, const json_t *layers, uint64_t samples)
{
        size_t count = json_array_size(layers);

        run->measured.layers = calloc(count + 1, sizeof(*run->measured.layers));
        if (run->measured.layers == NULL)
                return false;
        run->measured.layer_count = count;
        run->measured.samples = samples;
        for (size_t i = 0; i < count; i++) {
                const json_t *layer = json_array_get(layers, i);

                run->measured.layers[i] = (struct job_split_layer){
                        .memory_bytes = bytes_of(layer, "state_bytes"),
                        .params_bytes = bytes_of(layer, "parameter_bytes"),
                        .activation_bytes = bytes_of(layer, "output_bytes"),
                        .held_bytes = bytes_of(layer, "held_bytes"),
                };
        }
        return true;
}

void run_split_read_layers(struct run *run, size_t index, const json_t *answer)
{
        const json_t *layers = json_object_get(answer, "layers");
        uint64_t samples = bytes_of(answer, "microbatch");
        size_t count = json_array_size(layers);
        struct run_rank *rank = &run->ranks[index];
        double *ms, link = json_number_value(json_object_get(answer, "link_bytes_per_ms")),
                    begin = json_number_value(json_object_get(answer, "begin_ms"));

        if (count == 0 || count > JOB_LAYERS_MAX || samples == 0 ||
            (run->measured.layer_count != 0 && run->measured.layer_count != count))
                return;
        ms = calloc(count, sizeof(*ms));
        if (ms == NULL || (run->measured.layer_count == 0 && !read_sizes(run, layers, samples))) {
                free(ms);
                return;
        }
        for (size_t i = 0; i < count; i++) {
                double value = json_number_value(json_object_get(json_array_get(layers, i), "ms"));

                ms[i] = isfinite(value) && value > 1e-6 ? value : 1e-6;
        }
        rank->link_measured = isfinite(link) && link > 0;
        rank->link_bytes_per_ms = rank->link_measured ? link : rank->link_bytes_per_ms;
        free(rank->layer_ms);
        rank->layer_ms = ms;
        rank->begin_ms = isfinite(begin) && begin > 0 ? begin : 0;
}

static const struct run_rank *worker_of(const struct run *run, size_t index)
{
        return &run->ranks[run->server_count + index];
}

static size_t worker_count(const struct run *run)
{
        return run->rank_count - run->server_count;
}

/* Its part of the chip's memory: several ranks may be on one. */
static uint64_t memory_of(const struct run *run, const struct run_rank *rank)
{
        uint64_t alike = 0;

        for (size_t i = 0; i < worker_count(run); i++)
                alike += strcmp(worker_of(run, i)->device, rank->device) == 0 &&
                         strcmp(worker_of(run, i)->node, rank->node) == 0;
        return rank->memory_bytes / (alike > 0 ? alike : 1);
}

/* Do the ranks stand on several nodes? Else no network is between them. */
static bool has_network(const struct run *run)
{
        for (size_t i = 1; i < worker_count(run); i++)
                if (strcmp(worker_of(run, i)->node, worker_of(run, 0)->node) != 0)
                        return true;
        return false;
}

static void describe(const struct run *run, const struct run_rank *rank, struct stage_plan_worker *ret)
{
        *ret = (struct stage_plan_worker){
                .role = rank->role,
                .chips = 1,
                .memory_bytes = memory_of(run, rank),
                .leaves_node = has_network(run),
                .bytes_per_ms = rank->link_measured || has_network(run) ? rank->link_bytes_per_ms : 0,
                .link_measured = rank->link_measured,
                .layer_ms = run_split_measures(run) ? rank->layer_ms : NULL,
                .begin_ms = rank->begin_ms,
                .samples_per_s = rank->speed_source == CHIP_SPEED_MEASURED
                                         ? chip_speed_samples_per_s(&rank->speed)
                                         : 0,
                .speed =
                        rank->speed_source == CHIP_SPEED_ASSUMED ? 1 : chip_speed_samples_per_s(&rank->speed),
        };
        (void) text_copy(ret->chip.vendor, sizeof(ret->chip.vendor), rank->vendor);
        (void) text_copy(ret->chip.runtime, sizeof(ret->chip.runtime), rank->runtime);
        (void) text_copy(ret->chip.model, sizeof(ret->chip.model), rank->device_model);
        (void) text_copy(ret->chip.group, sizeof(ret->chip.group), rank->group);
}

/* The ranks in the order of the stages, those that are left out behind them. */
static int take_order(struct run *run, const struct stage_plan *whole)
{
        const struct pipeline_plan *plan = &whole->pipeline;
        size_t count = worker_count(run), next = plan->stage_count;
        CLEANUP(free_p) struct run_rank *ranks = calloc(count, sizeof(*ranks));

        if (ranks == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                size_t s = 0;

                while (s < plan->stage_count && plan->stages[s].worker != i)
                        s++;
                if (s == plan->stage_count) {
                        ranks[next++] = *worker_of(run, i);
                        continue;
                }
                ranks[s] = *worker_of(run, i);
                ranks[s].layers[0] = plan->stages[s].first;
                ranks[s].layers[1] = plan->stages[s].last;
                ranks[s].stage_batch = stage_plan_part(whole, s);
        }
        memcpy(&run->ranks[run->server_count], ranks, count * sizeof(*ranks));
        while (worker_count(run) > plan->stage_count &&
               run_migrate_do_without(run, run->server_count + plan->stage_count))
                ;
        return worker_count(run) == plan->stage_count ? 0 : -EPROTO;
}

/* What is known of the layers: as the job says, else as they were measured, else what is known of it. */
static const struct job_split_profile *profile_of(const struct run *run, struct job_split_profile *own)
{
        bool measured = run->measured.layer_count > 0;

        for (size_t i = 0; i < worker_count(run); i++)
                measured = measured && worker_of(run, i)->layer_ms != NULL;
        if (measured && run->job.profile.layer_count == 0)
                return &run->measured;
        return stage_profile_of(&run->job, worker_count(run), own);
}

/* The program cuts itself. */
static int leave_it(struct run *run, struct err *err)
{
        if (run->job.stage_count > 0 || run->job.replicas != 1)
                return err_set(err, -EINVAL,
                               "%s: how many layers the model has is not known; bind all of them, a "
                               "stage to each chip, or give spec.profile or --profile FILE",
                               run->job.stage_count > 0 ? "spec.stages" : "spec.replicas");
        if (worker_count(run) > 1)
                run_event(run, "NotPlanned",
                          "the model's layers are not known: the program cuts itself, as the trainer does in "
                          "equal numbers; give spec.profile or --profile FILE");
        return 0;
}

int run_split_plan(struct run *run, struct err *err)
{
        CLEANUP(free_p) struct stage_plan_worker *workers = calloc(worker_count(run) + 1, sizeof(*workers));
        CLEANUP(job_split_profile_free) struct job_split_profile own = { .samples = 1 };
        const struct job_split_profile *profile = profile_of(run, &own);
        struct stage_plan plan = { 0 };
        struct text said = { 0 };
        size_t stages;
        int r;

        run->layers_planned = run->replicas = false;
        stage_ranks_free(&run->split);
        if (workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        if (profile == NULL)
                return leave_it(run, err);
        for (size_t i = 0; i < worker_count(run); i++)
                describe(run, worker_of(run, i), &workers[i]);
        r = stage_plan(&run->job, profile, workers, worker_count(run), false, PIPELINE_EFFORT, &plan, err);
        if (r < 0)
                return r;
        stage_plan_sentence(&plan, &said);
        stages = plan.pipeline.stage_count;
        r = take_order(run, &plan);
        run->replicas = r == 0 && plan.replica_count > 1;
        run->split = plan.ranks;
        plan.ranks = (struct stage_ranks){ 0 };
        stage_plan_free(&plan);
        run->layers_planned = r == 0;
        if (r == 0)
                run_event(run, "Split", "%s", said.data == NULL ? "" : said.data);
        text_free(&said);
        return r == -EPROTO ? err_set(err, r,
                                      "the plan has %zu stages and %zu ranks take part: a fault of the "
                                      "planner; please report it with the job file",
                                      stages, worker_count(run))
               : r < 0      ? err_set(err, r, "no memory for the stages")
                            : 0;
}

int run_split_begin(struct run *run, struct err *err)
{
        CLEANUP(free_p) size_t *first = calloc(run->rank_count + 1, sizeof(*first));

        if (first == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t i = 0; i < run->rank_count; i++)
                first[i] = (size_t) run->ranks[i].layers[0];
        return resplit_begin(&run->world, run_split_is_planned(run) ? &run->split.problem : NULL, first,
                             run->split.compared, err);
}

bool run_split_move(struct run *run)
{
        const struct split_state *split = &run->world.split;

        if (split->problem == NULL || run->world.rank_count != run->rank_count)
                return false;
        for (size_t i = 0; i < run->rank_count; i++) {
                stage_ranks_stretch(&run->split, i, split->ranks[i].stretch);
                run->ranks[i].layers[0] = split->ranks[i].next_first;
                run->ranks[i].layers[1] = resplit_next_last(&run->world, i);
        }
        run->split.compared = false;
        return true;
}

bool run_split_is_planned(const struct run *run)
{
        return run->job.strategy == JOB_STRATEGY_SPLIT && run->layers_planned;
}

char *run_split_stages(const struct run *run)
{
        struct text list = { 0 };

        if (!run_split_is_planned(run))
                return NULL;
        for (size_t i = 0; i < worker_count(run); i++)
                text_printf(&list, "%s%llu:%llu", i == 0 ? "" : ",",
                            (unsigned long long) worker_of(run, i)->layers[0],
                            (unsigned long long) worker_of(run, i)->layers[1]);
        return text_take(&list, NULL);
}

void run_split_add_layers(const struct run *run, size_t rank, json_t *entry)
{
        if (run_split_is_planned(run))
                (void) json_object_set_new(entry, "layers",
                                           json_pack("[I, I]", (json_int_t) run->ranks[rank].layers[0],
                                                     (json_int_t) run->ranks[rank].layers[1]));
}

static void take_list(struct run *run, const char *list)
{
        CLEANUP(free_p) char *copy = strdup(list);
        char *rest = copy, *word;

        free(run->segments);
        run->segments = calloc(JOB_SEGMENTS_MAX, sizeof(*run->segments));
        run->segment_count = 0;
        while (copy != NULL && run->segments != NULL && run->segment_count < JOB_SEGMENTS_MAX &&
               (word = strsep(&rest, ",\n")) != NULL)
                if (text_parse_uint64(word, &run->segments[run->segment_count]) == 0)
                        run->segment_count++;
        if (run->segment_count > 0)
                run_event(run, "Segments",
                          "the gradients go in %zu segments, by the exchange's measured cost",
                          run->segment_count);
}

void run_split_read_segments(struct run *run)
{
        static const char mark[] = "; last tensors ";
        CLEANUP(fclose_p) FILE *f = NULL;
        CLEANUP(free_p) char *line = NULL;
        char path[RUN_PATH_BYTES];
        size_t size = 0;

        if (run->job.segments != JOB_SEGMENTS_AUTO || run->segment_count > 0 || !run->trainer ||
            !run_folder_rank_path(run, path, run->server_count, "err"))
                return;
        f = fopen(path, "re");
        while (f != NULL && run->segment_count == 0 && getline(&line, &size, f) > 0) {
                const char *list = strstr(line, mark);

                if (text_starts_with(line, "remuda-train: in trial steps ") && list != NULL)
                        take_list(run, list + strlen(mark));
        }
}
