/* The stages of a split job: which layers each worker holds, by the layers' measured times and the exact
 * planner (planner/splits/chain.h). Every chip of a fixed count is used; one of a range that has no
 * part is left out. */
#include "job/run/run_split.h"
#include "job/run/run_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/run/run_migrate.h"
#include "planner/splits/chain_all.h"

#define LINK_BYTES_PER_MS 1e6 /* shared memory of one machine: a gigabyte a second is assumed */
#define CLASSES_MAX       12  /* each worker is a class of its own: 2^12 states */

void run_split_read_layers(struct run *run, size_t index, const json_t *layers)
{
        size_t count = json_array_size(layers);
        struct run_rank *rank = &run->ranks[index];
        double *ms;

        if (count == 0 || count > CHAIN_LAYERS_MAX || (run->layer_count != 0 && run->layer_count != count))
                return;
        ms = calloc(count, sizeof(*ms));
        if (run->layer_output_bytes == NULL)
                run->layer_output_bytes = calloc(count, sizeof(*run->layer_output_bytes));
        if (ms == NULL || run->layer_output_bytes == NULL) {
                free(ms);
                return;
        }
        for (size_t i = 0; i < count; i++) {
                const json_t *layer = json_array_get(layers, i);
                double value = json_number_value(json_object_get(layer, "ms"));

                ms[i] = isfinite(value) && value > 1e-6 ? value : 1e-6;
                run->layer_output_bytes[i] =
                        (uint64_t) json_integer_value(json_object_get(layer, "output_bytes"));
        }
        run->layer_count = count;
        free(rank->layer_ms);
        rank->layer_ms = ms;
}

/* The ranks in the order of the stages; each stage begins at first[]. */
static int take_order(struct run *run, const size_t *order, const size_t *first, size_t count)
{
        CLEANUP(free_p) struct run_rank *ranks = calloc(count, sizeof(*ranks));

        if (ranks == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                ranks[i] = run->ranks[order[i]];
                ranks[i].layers[0] = first[i];
                ranks[i].layers[1] = (i + 1 < count ? first[i + 1] : run->layer_count) - 1;
        }
        memcpy(run->ranks, ranks, count * sizeof(*ranks));
        return 0;
}

/* Return: was one left out, so that the plan has to be made anew? */
static bool leave_idle_out(struct run *run, const struct chain_plan *plan)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                bool used = false;

                for (size_t k = 0; k < plan->stage_count; k++)
                        used = used || plan->stages[k].class_index == i;
                if (!used && run_migrate_do_without(run, i))
                        return true;
        }
        return false;
}

static bool layers_are_known(const struct run *run)
{
        for (size_t i = 0; i < run->rank_count; i++)
                if (run->ranks[i].layer_ms == NULL)
                        return false;
        return run->layer_count >= run->rank_count && run->rank_count > 1 && run->rank_count <= CLASSES_MAX;
}

/* @classes, @order, @first: room for all ranks. Return: 0, CHAIN_NO_FIT, or a negative errno. */
static int plan_stages(struct run *run, struct chain_class *classes, size_t *order, size_t *first,
                       struct err *err)
{
        CLEANUP(free_p) uint64_t *memory = calloc(run->layer_count, sizeof(*memory));
        struct chain_problem problem = { .layer_count = run->layer_count,
                                         .memory_bytes = memory,
                                         .activation_bytes = run->layer_output_bytes,
                                         .classes = classes,
                                         .schedule = CHAIN_GPIPE,
                                         .microbatches = (unsigned) run->job.microbatches };
        struct chain_plan plan = { 0 };
        bool left_out;
        int r = memory == NULL ? -ENOMEM : 0;

        do {
                chain_plan_free(&plan);
                plan = (struct chain_plan){ 0 };
                problem.class_count = run->rank_count;
                for (size_t i = 0; i < run->rank_count; i++)
                        classes[i] = (struct chain_class){ .count = 1,
                                                           .memory_bytes = (uint64_t) 1 << 50,
                                                           .bytes_per_ms = LINK_BYTES_PER_MS,
                                                           .ms = run->ranks[i].layer_ms };
                if (r == 0)
                        r = chain_split(&problem, &plan, err);
                left_out = r == 0 && leave_idle_out(run, &plan);
        } while (left_out);
        if (r == 0)
                r = chain_all(&problem, &plan, order, first);
        if (r == 0)
                r = take_order(run, order, first, run->rank_count);
        chain_plan_free(&plan);
        return r == -ENOMEM ? err_set(err, r, "no memory for the stages") : r;
}

int run_split_plan(struct run *run, struct err *err)
{
        CLEANUP(free_p) struct chain_class *classes = calloc(run->rank_count, sizeof(*classes));
        CLEANUP(free_p) size_t *order = calloc(run->rank_count, sizeof(*order));
        CLEANUP(free_p) size_t *first = calloc(run->rank_count, sizeof(*first));
        CLEANUP(free_p) char *stages = NULL;
        int r;

        if (classes == NULL || order == NULL || first == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        if (!layers_are_known(run)) {
                run->layer_count = 0; /* the program cuts itself: equal numbers */
                return 0;
        }
        r = plan_stages(run, classes, order, first, err);
        if (r != 0)
                return r > 0 ? err_set(err, -EINVAL, "no split of the model is possible") : r;
        stages = run_split_stages(run);
        run_event(run, "Split", "stages %s of %zu layers, by their measured times",
                  stages == NULL ? "" : stages, run->layer_count);
        return 0;
}

bool run_split_is_planned(const struct run *run)
{
        return run->job.strategy == JOB_STRATEGY_SPLIT && run->layer_count > 0;
}

char *run_split_stages(const struct run *run)
{
        struct text list = { 0 };

        if (!run_split_is_planned(run))
                return NULL;
        for (size_t i = 0; i < run->rank_count; i++)
                text_printf(&list, "%s%llu:%llu", i == 0 ? "" : ",",
                            (unsigned long long) run->ranks[i].layers[0],
                            (unsigned long long) run->ranks[i].layers[1]);
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
