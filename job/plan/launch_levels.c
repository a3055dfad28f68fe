/* Groups of workers from ranks or from a plan, the choice over them, and its sentence. */
#include "job/plan/launch_levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define PROPOSAL "auto:" /* what a job says itself has no such word, and is to be followed or refused */

static const char *host_of(const struct launch_rank *rank)
{
        return rank->host != NULL ? rank->host : rank->node;
}

size_t launch_levels_groups(const struct launch_world *world, struct levels_group *ret)
{
        const struct launch_rank *last = NULL;
        size_t count = 0;

        for (size_t i = 0; i < world->count; i++) {
                const struct launch_rank *rank = &world->ranks[i];

                if (rank->server)
                        continue;
                if (last == NULL || strcmp(last->group, rank->group) != 0 ||
                    strcmp(last->node, rank->node) != 0)
                        ret[count++] = (struct levels_group){ .node = host_of(rank),
                                                              .network_mbps = rank->network_mbps };
                ret[count - 1].workers++;
                last = rank;
        }
        return count;
}

/* What was counted, so that people can count again. */
static void tell(const struct levels_choice *choice, struct launch_levels *ret)
{
        char unknown[80] = "";

        ret->hosts = choice->nodes > 1;
        if (!ret->hosts) {
                (void) text_copy(ret->why, sizeof(ret->why),
                                 "one level: all workers are on one host, no link is between them");
                return;
        }
        if (choice->unknown > 0)
                (void) text_format(unknown, sizeof(unknown),
                                   "; of %zu hosts it is not known and taken for %d", choice->unknown,
                                   LEVELS_NETWORK_MBPS);
        if (ret->two)
                (void) text_format(ret->why, sizeof(ret->why),
                                   "two levels, groups %.40s: a host's link carries %.2f times the gradients "
                                   "instead of a ring's %.2f, at %llu Mbit/s%s",
                                   ret->proposed + strlen(PROPOSAL), choice->two_link, choice->one_link,
                                   (unsigned long long) choice->network_mbps, unknown);
        else
                (void) text_format(ret->why, sizeof(ret->why),
                                   "one level: two would take %.2f ms a megabyte, one takes %.2f, at %llu "
                                   "Mbit/s%s",
                                   choice->two_ms, choice->one_ms, (unsigned long long) choice->network_mbps,
                                   unknown);
}

/* What the job or what it is says, without a look at the links. */
static void take_given(const struct levels_group *groups, size_t count, bool two, const char *why,
                       struct launch_levels *ret)
{
        struct levels_choice choice;

        levels_choose(groups, count, &choice);
        ret->two = two;
        ret->hosts = choice.nodes > 1;
        (void) text_format(ret->why, sizeof(ret->why), "%s: %s", two ? "two levels" : "one level", why);
}

static int choose(const struct levels_group *groups, size_t count, struct launch_levels *ret)
{
        CLEANUP(free_p) size_t *sizes = calloc(count + 1, sizeof(*sizes));
        struct levels_choice choice;
        struct text list = { 0 };

        if (sizes == NULL)
                return -ENOMEM;
        levels_choose(groups, count, &choice);
        ret->two = choice.cut != LEVELS_ONE;
        if (ret->two) {
                count = levels_sizes(groups, count, choice.cut, sizes);
                text_append(&list, PROPOSAL);
                for (size_t i = 0; i < count; i++)
                        text_printf(&list, "%s%zu", i == 0 ? "" : ",", sizes[i]);
                ret->proposed = text_take(&list, NULL);
                if (ret->proposed == NULL)
                        return -ENOMEM;
        }
        tell(&choice, ret);
        return 0;
}

int launch_levels_choose(const struct launch_world *world, const struct job *spec, struct launch_levels *ret)
{
        CLEANUP(free_p) struct levels_group *groups = calloc(world->count + 1, sizeof(*groups));
        const char *why = NULL;
        size_t count;

        *ret = (struct launch_levels){ 0 };
        if (groups == NULL)
                return -ENOMEM;
        count = launch_levels_groups(world, groups);
        if (job_levels_may_be(spec, &why))
                return choose(groups, count, ret);
        take_given(groups, count, spec->levels.kind == JOB_LEVELS_LIST, why, ret);
        return 0;
}

static const char *variable_of(const Subtask__Plan *plan, const char *name)
{
        for (size_t i = 0; i < plan->n_environment; i++)
                if (strcmp(plan->environment[i]->key, name) == 0)
                        return plan->environment[i]->value;
        return NULL;
}

int launch_levels_choose_plan(const Subtask__Plan *plan, struct launch_levels *ret)
{
        CLEANUP(free_p) struct levels_group *groups = calloc(plan->n_groups + 1, sizeof(*groups));
        const char *said = variable_of(plan, "REMUDA_LEVELS"),
                   *strategy = variable_of(plan, "REMUDA_STRATEGY"), *why;
        size_t count = 0;

        *ret = (struct launch_levels){ 0 };
        if (groups == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                if (!group->used || group->role == SUBTASK__GROUP__ROLE__server)
                        continue;
                groups[count++] =
                        (struct levels_group){ .node = group->node[0] != '\0' ? group->node : group->name,
                                               .workers = group->chips,
                                               .network_mbps = group->network_mbps };
        }
        why = said != NULL           ? "the job says so"
              : plan->n_segments > 0 ? "the job lists segments, which are of one level"
              : strategy != NULL && strcmp(strategy, "allreduce") != 0 ? "its strategy is not allreduce"
                                                                       : NULL;
        if (why == NULL)
                return choose(groups, count, ret);
        take_given(groups, count, said != NULL && strcmp(said, "none") != 0, why, ret);
        return 0;
}

void launch_levels_free(struct launch_levels *levels)
{
        free(levels->proposed);
        *levels = (struct launch_levels){ 0 };
}
