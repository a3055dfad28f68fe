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
#include "planner/splits/chain.h"

#define LINK_BYTES_PER_MS 1e6 /* shared memory of one machine: a gigabyte a second is assumed */
#define CLASSES_MAX       12  /* each worker is a class of its own: 2^12 states */
#define TRIED_MAX         6 /* workers of which every order is tried where the planner would leave one idle */

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

struct cuts {
        size_t layers;
        double *best; /* [k * (layers + 1) + j]: the largest load of the first k workers over the first j
                         layers */
        size_t *from; /* likewise: the first layer of worker k - 1 in that cut */
};

/* Fills the row of worker @k - 1, whose layers cost @layer_ms, from the row before. */
static void add_worker(const struct cuts *cuts, size_t k, const double *layer_ms)
{
        size_t row = cuts->layers + 1;

        for (size_t j = k; j < row; j++) {
                double load = 0;

                for (size_t i = j; i >= k; i--) { /* it has the layers i - 1 to j - 1 */
                        double before = cuts->best[(k - 1) * row + i - 1], largest;

                        load += layer_ms[i - 1];
                        largest = before > load ? before : load;
                        if (largest < cuts->best[k * row + j]) {
                                cuts->best[k * row + j] = largest;
                                cuts->from[k * row + j] = i - 1;
                        }
                }
        }
}

/* Largest load of the best cut of all layers over the workers in this order, each with one layer at least.
 * @ret_first: where each begins */
static double cut_in_order(const struct run *run, const size_t *order, size_t count, size_t *ret_first)
{
        size_t layers = run->layer_count;
        CLEANUP(free_p) double *best = calloc((count + 1) * (layers + 1), sizeof(*best));
        CLEANUP(free_p) size_t *from = calloc((count + 1) * (layers + 1), sizeof(*from));

        if (best == NULL || from == NULL)
                return INFINITY;
        for (size_t k = 0; k <= count; k++)
                for (size_t j = 0; j <= layers; j++)
                        best[k * (layers + 1) + j] = k == 0 && j == 0 ? 0 : INFINITY;
        for (size_t k = 1; k <= count; k++)
                add_worker(&(struct cuts){ layers, best, from }, k, run->ranks[order[k - 1]].layer_ms);
        for (size_t k = count, j = layers; k > 0; k--) {
                ret_first[k - 1] = from[k * (layers + 1) + j];
                j = ret_first[k - 1];
        }
        return best[count * (layers + 1) + layers];
}

struct search {
        const struct run *run;
        size_t count;
        size_t order[TRIED_MAX], best_order[TRIED_MAX];
        double best;
};

/* Recursion is bounded by TRIED_MAX. */
static void try_orders(struct search *search, size_t fixed)
{
        size_t first[TRIED_MAX];

        if (fixed == search->count) {
                double load = cut_in_order(search->run, search->order, search->count, first);

                if (load < search->best) {
                        search->best = load;
                        memcpy(search->best_order, search->order, sizeof(search->order));
                }
                return;
        }
        for (size_t i = fixed; i < search->count; i++) {
                size_t swap = search->order[fixed];

                search->order[fixed] = search->order[i];
                search->order[i] = swap;
                try_orders(search, fixed + 1);
                search->order[i] = search->order[fixed];
                search->order[fixed] = swap;
        }
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

/* Return: 0, CHAIN_NO_FIT, or a negative errno. */
static int ask_planner(const struct run *run, struct chain_plan *ret, struct err *err)
{
        size_t count = run->rank_count;
        CLEANUP(free_p) struct chain_class *classes = calloc(count, sizeof(*classes));
        CLEANUP(free_p) uint64_t *memory = calloc(run->layer_count, sizeof(*memory));
        struct chain_problem problem = { .layer_count = run->layer_count,
                                         .memory_bytes = memory,
                                         .activation_bytes = run->layer_output_bytes,
                                         .class_count = count,
                                         .classes = classes,
                                         .schedule = CHAIN_GPIPE,
                                         .microbatches = (unsigned) run->job.microbatches };

        if (classes == NULL || memory == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t i = 0; i < count; i++)
                classes[i] = (struct chain_class){ .count = 1,
                                                   .memory_bytes = (uint64_t) 1 << 50,
                                                   .bytes_per_ms = LINK_BYTES_PER_MS,
                                                   .ms = run->ranks[i].layer_ms };
        return chain_split(&problem, ret, err);
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

static int order_all(struct run *run, const struct chain_plan *plan, size_t *order, size_t *first)
{
        struct search search = { .run = run, .count = run->rank_count, .best = INFINITY };
        size_t next = plan->stage_count;

        if (run->rank_count <= TRIED_MAX && plan->stage_count < run->rank_count) {
                for (size_t i = 0; i < run->rank_count; i++)
                        search.order[i] = i;
                try_orders(&search, 0);
                memcpy(order, search.best_order, run->rank_count * sizeof(*order));
        } else {
                for (size_t k = 0; k < plan->stage_count; k++)
                        order[k] = plan->stages[k].class_index;
                for (size_t i = 0; i < run->rank_count; i++) {
                        bool used = false;

                        for (size_t k = 0; k < plan->stage_count; k++)
                                used = used || order[k] == i;
                        if (!used)
                                order[next++] = i;
                }
        }
        (void) cut_in_order(run, order, run->rank_count, first);
        return take_order(run, order, first, run->rank_count);
}

static bool layers_are_known(const struct run *run)
{
        for (size_t i = 0; i < run->rank_count; i++)
                if (run->ranks[i].layer_ms == NULL)
                        return false;
        return run->layer_count >= run->rank_count && run->rank_count > 1 && run->rank_count <= CLASSES_MAX;
}

int run_split_plan(struct run *run, struct err *err)
{
        CLEANUP(free_p) size_t *order = calloc(run->rank_count, sizeof(*order));
        CLEANUP(free_p) size_t *first = calloc(run->rank_count, sizeof(*first));
        CLEANUP(free_p) char *stages = NULL;
        struct chain_plan plan = { 0 };
        int r = order == NULL || first == NULL ? err_set(err, -ENOMEM, "no memory for the stages") : 0;

        if (r == 0 && !layers_are_known(run)) {
                run->layer_count = 0; /* the program cuts itself: equal numbers */
                return 0;
        }
        while (r == 0) {
                chain_plan_free(&plan);
                plan = (struct chain_plan){ 0 };
                r = ask_planner(run, &plan, err);
                if (r != 0 || !leave_idle_out(run, &plan))
                        break;
        }
        if (r == 0)
                r = order_all(run, &plan, order, first);
        chain_plan_free(&plan);
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
