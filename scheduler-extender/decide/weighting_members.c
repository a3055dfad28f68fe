/* Bound pods by what their bind recorded, or by what they ask for; slots by the chips that would serve them.
 */
#include "scheduler-extender/decide/weighting_members.h"

#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_pods.h"

typedef void add_fn(void *userdata, const struct ledger_node *node, const struct ledger_group *group,
                    size_t chips);

static const struct ledger_group *group_named(const struct ledger_node *node, uint32_t name)
{
        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].name == name)
                        return &node->groups[i];
        return NULL;
}

/* NICs and what else a pod may ask for train nothing. */
static const struct ledger_group *group_of(const struct weighting *w, const struct ledger_node *node,
                                           const struct request *request, const struct weighting *fastest,
                                           size_t *ret_chips)
{
        struct request chips = *request;

        ledger_chips_only(w->programs.ledger, &chips);
        *ret_chips = request_chips(&chips);
        return weighting_group(node->groups, node->group_count, &chips, fastest);
}

static void add_pod(const struct weighting *w, const struct ledger_pod *pod, add_fn *add, void *userdata)
{
        const struct ledger_group *group;
        size_t chips;

        for (size_t i = 0; i < pod->part_count; i++) {
                group = group_named(pod->node, pod->parts[i].group);
                if (group != NULL)
                        add(userdata, pod->node, group, pod->parts[i].chips);
        }
        if (pod->part_count > 0)
                return;
        group = group_of(w, pod->node, &pod->request, NULL, &chips); /* others bound it, and said nothing */
        if (group != NULL)
                add(userdata, pod->node, group, chips);
}

void weighting_members(const struct weighting *w, const struct weighting_members_of *self, add_fn *add,
                       void *userdata)
{
        const struct ledger_job *job = self->job;

        for (const struct ledger_pod *pod = job == NULL ? NULL : job->pods; pod != NULL;
             pod = pod->next_in_job)
                if (pod != self->pod && pod->node != NULL && !pod->request.serves)
                        add_pod(w, pod, add, userdata);
        for (const struct ledger_job_slot *slot = job == NULL || !self->slots_too ? NULL : job->slots;
             slot != NULL; slot = slot->next_in_job) {
                size_t chips;
                const struct ledger_group *group = group_of(w, slot->node, &slot->request, w, &chips);

                if (slot != self->slot && !slot->request.serves && group != NULL)
                        add(userdata, slot->node, group, chips);
        }
}

const struct ledger_job_slot *weighting_members_own_slot(const struct weighting *w,
                                                         const struct ledger_job *job,
                                                         const struct request *request,
                                                         const struct ledger_node *node,
                                                         const struct ledger_group *kind)
{
        const struct ledger_job_slot *any = NULL, *alike = NULL, *there = NULL;

        for (const struct ledger_job_slot *slot = job == NULL ? NULL : job->slots; slot != NULL;
             slot = slot->next_in_job) {
                const struct ledger_group *group;
                size_t chips;

                if (slot->request.serves || slot->request.items[0].resource != request->items[0].resource ||
                    slot->request.items[0].chips != request->items[0].chips)
                        continue;
                if (slot->node == node && request_same_models(&slot->request, request))
                        return slot; /* members that ask for other models may be leased there, too */
                if (slot->node == node)
                        there = slot;
                group = group_of(w, slot->node, &slot->request, w, &chips);
                any = any == NULL ? slot : any;
                if (alike == NULL && kind != NULL && group != NULL && group->model == kind->model &&
                    group->runtime == kind->runtime)
                        alike = slot;
        }
        return there != NULL ? there : alike != NULL ? alike : any;
}
