#include "job/controller/job_speeds.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define BATCHES_MIN 10  /* the first ones are slow */
#define LOOK_WEIGHT 4.0 /* of all ranks together */

static const struct job_group *find_group(const struct job_state *state, const json_t *rank)
{
        const char *name = json_string_value(json_object_get(rank, "group"));

        for (size_t i = 0; name != NULL && i < state->group_count; i++)
                if (strcmp(state->groups[i].name, name) == 0)
                        return &state->groups[i];
        return NULL;
}

static bool read_rank(const struct job_state *state, const json_t *programs, const json_t *rank,
                      struct job_speed *ret)
{
        const struct job_group *group = find_group(state, rank);
        double batch = json_number_value(json_object_get(rank, "batch")),
               samples = json_number_value(json_object_get(rank, "samples")),
               speed = json_number_value(json_object_get(rank, "samples_per_s"));
        const char *program;

        if (group == NULL || group->server || group->model[0] == '\0' || group->chips == 0 || !(batch >= 1) ||
            !(samples >= BATCHES_MIN * batch) || !(speed > 0) || !isfinite(speed))
                return false;
        program = json_string_value(json_object_get(programs, group->name));
        (void) text_copy(ret->program, sizeof(ret->program),
                         program != NULL && sha256_is_hex(program) ? program : "");
        speed_table_device(ret->device, group->model, (group->ranks + group->chips - 1) / group->chips);
        ret->batch = batch;
        ret->step_ms = batch * 1000 / speed;
        return true;
}

size_t job_speeds_read(const struct job *job, const struct job_state *state, const json_t *answer,
                       struct job_speed *ret, size_t max)
{
        const json_t *ranks = json_object_get(answer, "ranks"), *rank;
        size_t count = 0, i;

        if (job->has_args || !job->data.given || job->strategy == JOB_STRATEGY_SPLIT)
                return 0;
        json_array_foreach((json_t *) ranks, i, rank)
        {
                if (count < max && read_rank(state, json_object_get(answer, "programs"), rank, &ret[count]))
                        count++;
        }
        for (i = 0; i < count; i++)
                ret[i].weight = LOOK_WEIGHT / (double) count;
        return count;
}
