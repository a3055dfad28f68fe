/* From stages in the order of the ranks to groups. */
#include "job/plan/stages/group_replicas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/job_plan.h"

struct taking {
        const struct job_state *state;
        const struct stage_plan *plan;
        const size_t *index;
        struct job_group *groups; /* new ones */
        size_t count;
        bool *used;    /* [old group]: has it given a new one its name? */
        size_t last;   /* the old group of the last new one */
        uint32_t next; /* index */
};

static size_t replica_of(const struct stage_plan *plan, size_t stage)
{
        size_t i = 0;

        while (stage >= plan->replicas[i].first + plan->replicas[i].count)
                i++;
        return i;
}

/* Do all ranks of the pipelines up to this stage's, from the first one of the group on, take the same? */
static bool alike(const struct stage_plan *plan, size_t first, size_t stage)
{
        for (size_t i = replica_of(plan, first); i <= replica_of(plan, stage); i++) {
                const struct stage_plan_replica *replica = &plan->replicas[i];

                if (replica->batch % replica->count != 0 ||
                    replica->batch / replica->count != stage_plan_part(plan, first))
                        return false;
        }
        return true;
}

/* May the stage's rank stand in the group of the rank before it? */
static bool goes_on(const struct taking *t, size_t stage)
{
        const struct job_group *group = &t->groups[t->count - 1];

        if (stage == 0 || t->index[t->plan->pipeline.stages[stage].worker] != t->last)
                return false;
        return replica_of(t->plan, group->first_rank) == replica_of(t->plan, stage) ||
               alike(t->plan, group->first_rank, stage);
}

static int add_layers(struct job_group *group, const struct pipeline_stage *stage, struct err *err)
{
        size_t length = strlen(group->layers);

        if (!text_format(group->layers + length, sizeof(group->layers) - length, "%s%zu:%zu",
                         length == 0 ? "" : ",", stage->first, stage->last))
                return err_set(err, -ERANGE,
                               "spec.workers: so many stages on one device group, %s, are more than a status "
                               "holds; ask for fewer chips of it",
                               group->group);
        return 0;
}

static int add_rank(struct taking *t, size_t stage, struct err *err)
{
        size_t old = t->index[t->plan->pipeline.stages[stage].worker];
        const struct job_group *from = &t->state->groups[old];
        struct job_group *group = &t->groups[t->count];

        if (from->chips != from->ranks)
                return err_set(err, -ERANGE,
                               "spec.replicas: %u ranks share %u chips of %s, and are not dealt out to "
                               "pipelines; ask for no more chips than there are",
                               from->ranks, from->chips, from->group);
        if (goes_on(t, stage)) {
                group--;
        } else {
                if (t->count == JOB_GROUPS_MAX)
                        return err_set(err, -ERANGE,
                                       "spec.replicas: the pipelines need more than %d groups of chips; ask "
                                       "for fewer replicas, or for fewer chips",
                                       JOB_GROUPS_MAX);
                *group = *from;
                group->chips = group->ranks = 0;
                group->layers[0] = '\0';
                group->batch = 0;
                group->first_rank = (uint32_t) stage; /* of the workers, until they are named */
                group->samples_per_s = from->samples_per_s / from->ranks;
                if (t->used[old]) {
                        group->name[0] = '\0';
                        group->index = t->next++;
                }
                t->used[old] = true;
                t->last = old;
                t->count++;
        }
        if (group->ranks > 0)
                group->samples_per_s += from->samples_per_s / from->ranks;
        group->chips++;
        group->ranks++;
        group->batch += stage_plan_part(t->plan, stage);
        return add_layers(group, &t->plan->pipeline.stages[stage], err);
}

int group_replicas_take(struct job_state *state, const struct stage_plan *plan, const size_t *index,
                        struct err *err)
{
        CLEANUP(free_p) bool *used = calloc(state->group_count + 1, sizeof(*used));
        struct taking t = {
                .state = state, .plan = plan, .index = index, .used = used, .next = state->next_index
        };
        int r = 0;

        t.groups = calloc(state->group_count + plan->pipeline.stage_count + 1, sizeof(*t.groups));
        if (used == NULL || t.groups == NULL) {
                free(t.groups);
                return err_set(err, -ENOMEM, "no memory for the plan");
        }
        for (size_t s = 0; r == 0 && s < plan->pipeline.stage_count; s++)
                r = add_rank(&t, s, err);
        if (r < 0) {
                free(t.groups);
                return r;
        }
        free(state->groups);
        state->groups = t.groups;
        state->group_count = t.count;
        state->next_index = t.next;
        return 0;
}
