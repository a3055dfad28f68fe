/* Rows of times that are the same are written once: a plan is an annotation, which has an end. */
#include "job/plan/stages/stage_message.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void stage_message_free(struct stage_message *room)
{
        free(room->layers);
        free(room->layer_list);
        free(room->times);
        free(room->times_list);
}

static bool make_room(struct stage_message *room, size_t layers, size_t groups)
{
        room->layers = calloc(layers + 1, sizeof(*room->layers));
        room->layer_list = calloc(layers + 1, sizeof(Subtask__Layer *));
        room->times = calloc(groups + 1, sizeof(*room->times));
        room->times_list = calloc(groups + 1, sizeof(Subtask__Times *));
        room->failed = room->layers == NULL || room->layer_list == NULL || room->times == NULL ||
                       room->times_list == NULL;
        return !room->failed;
}

static void fill_layer(const struct pipeline_layer *from, Subtask__Layer *to)
{
        subtask__layer__init(to);
        to->has_state_bytes = to->has_held_bytes = to->has_output_bytes = to->has_begin = true;
        to->state_bytes = from->state_bytes;
        to->held_bytes = from->held_bytes;
        to->output_bytes = from->output_bytes;
        to->begin = from->begin;
}

/* The row of such times: one that is there, or one more. */
static uint32_t row_of(Subtask__Split *split, Subtask__Times *times, const double *ms, size_t count)
{
        Subtask__Times *row;

        for (size_t i = 0; i < split->n_times; i++)
                if (memcmp(split->times[i]->ms, ms, count * sizeof(*ms)) == 0)
                        return (uint32_t) i;
        row = &times[split->n_times];
        subtask__times__init(row);
        row->ms = (double *) ms;
        row->n_ms = count;
        split->times[split->n_times] = row;
        return (uint32_t) split->n_times++;
}

Subtask__Split *stage_message_fill(const struct stage_ranks *ranks, const struct job_state *state,
                                   Subtask__Group *groups, struct stage_message *room)
{
        const struct pipeline_problem *problem = &ranks->problem;
        size_t layers = problem->layer_count, rank = 0;
        Subtask__Split *split = &room->message;

        if (problem->worker_count == 0 || problem->worker_count != job_state_world_size(state) ||
            !make_room(room, layers, state->group_count))
                return NULL;
        subtask__split__init(split);
        split->layers = room->layer_list;
        split->times = room->times_list;
        split->n_layers = layers;
        split->has_microbatches = split->has_compared = true;
        split->microbatches = problem->microbatches;
        split->compared = ranks->compared;
        for (size_t i = 0; i < layers; i++) {
                fill_layer(&problem->layers[i], &room->layers[i]);
                room->layer_list[i] = &room->layers[i];
        }
        for (size_t i = 0; i < state->group_count; i++) {
                const struct pipeline_worker *worker = &problem->workers[rank];

                groups[i].has_times = groups[i].has_memory_bytes = groups[i].has_bytes_per_ms = true;
                groups[i].times = row_of(split, room->times, worker->ms, layers);
                if (split->n_times * layers > STAGE_MESSAGE_TIMES_MAX)
                        return NULL;
                groups[i].memory_bytes = worker->memory_bytes;
                groups[i].bytes_per_ms = isfinite(worker->bytes_per_ms) ? worker->bytes_per_ms : 0;
                rank += state->groups[i].ranks;
        }
        return split;
}

int stage_message_check(const Subtask__Plan *plan, struct err *err)
{
        const Subtask__Split *split = plan->split;

        for (size_t i = 0; split != NULL && i < split->n_times; i++) {
                const Subtask__Times *times = split->times[i];

                if (times->n_ms != split->n_layers)
                        return err_set(err, -EINVAL,
                                       "split.times[%zu].ms: %zu; one for each layer, %zu, is needed", i,
                                       times->n_ms, split->n_layers);
                for (size_t k = 0; k < times->n_ms; k++)
                        if (!(times->ms[k] >= -1 && times->ms[k] <= 1e12))
                                return err_set(err, -EINVAL, "split.times[%zu].ms[%zu]: -1 to 1e12 is needed",
                                               i, k);
        }
        for (size_t i = 0; split != NULL && split->n_layers > 0 && i < plan->n_groups; i++) {
                if (plan->groups[i]->times >= split->n_times ||
                    !(plan->groups[i]->bytes_per_ms >= 0 && plan->groups[i]->bytes_per_ms <= 1e18))
                        return err_set(
                                err, -EINVAL,
                                "groups[%zu]: times, an index of split.times, and bytes_per_ms of 0 or "
                                "more are needed",
                                i);
                for (size_t k = 0; k < plan->groups[i]->n_stages; k++)
                        if (plan->groups[i]->stages[k]->last >= split->n_layers)
                                return err_set(err, -EINVAL,
                                               "groups[%zu].stages[%zu].last: %u; split has %zu layers", i, k,
                                               (unsigned) plan->groups[i]->stages[k]->last, split->n_layers);
        }
        return 0;
}

static void read_layer(const Subtask__Layer *from, struct pipeline_layer *to)
{
        *to = (struct pipeline_layer){ .state_bytes = from->state_bytes,
                                       .held_bytes = from->held_bytes,
                                       .output_bytes = from->output_bytes,
                                       .begin = (enum pipeline_begin) from->begin };
}

int stage_message_read(const Subtask__Plan *plan, struct stage_ranks *ret, struct err *err)
{
        const Subtask__Split *split = plan->split;
        size_t ranks = 0, layers = split == NULL ? 0 : split->n_layers;
        int r;

        stage_ranks_free(ret);
        if (layers == 0)
                return 0;
        r = stage_ranks_new(plan->world_size, layers, ret, err);
        for (size_t i = 0; r == 0 && i < layers; i++)
                read_layer(split->layers[i], &ret->layers[i]);
        for (size_t i = 0; r == 0 && i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                for (uint32_t k = 0; group->used && k < group->chips && ranks < plan->world_size;
                     k++, ranks++) {
                        memcpy(ret->ms + ranks * layers, split->times[group->times]->ms,
                               layers * sizeof(*ret->ms));
                        ret->workers[ranks].memory_bytes = group->memory_bytes;
                        ret->workers[ranks].bytes_per_ms =
                                group->bytes_per_ms > 0 ? group->bytes_per_ms : INFINITY;
                }
        }
        ret->problem.microbatches = split->microbatches;
        ret->compared = split->compared;
        return r;
}
