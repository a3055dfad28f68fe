/* A list of claims by their names, with what was picked for each. */
#include "job/controller/claims/claim_plan.h"

#include <stdlib.h>
#include <string.h>

struct claim_plan *claim_plan_find(const struct claim_plan_list *list, const char *key)
{
        return (struct claim_plan *) name_map_find(&list->claims, key);
}

struct claim_plan *claim_plan_make(struct claim_plan_list *list, const char *key)
{
        return (struct claim_plan *) name_map_make(&list->claims, key, sizeof(struct claim_plan));
}

void claim_plan_see(struct claim_plan *plan, const struct planned_claim *seen)
{
        if (seen->allocated || !seen->there || strcmp(seen->version, plan->seen.version) != 0) {
                plan->node[0] = '\0';
                plan->again_usec = 0;
                plan->shown = true;
        }
        plan->seen = *seen;
}

void claim_plan_settle(struct claim_plan_list *list, struct claim_plan *plan)
{
        if (plan->seen.there || plan->asked || plan->again_usec != 0)
                return;
        name_map_remove(&list->claims, &plan->entry);
        free(plan);
}

bool claim_plan_picked(const struct claim_plan_list *list, const struct claim_plan *than, const char *node,
                       const char *device)
{
        for (const struct name_map_entry *e = name_map_first(&list->claims); e != NULL;
             e = name_map_next(&list->claims, e)) {
                const struct claim_plan *plan = (const struct claim_plan *) e;

                if (plan == than || plan->node[0] == '\0' || strcmp(plan->node, node) != 0)
                        continue;
                for (size_t i = 0; i < plan->pick_count; i++)
                        if (strcmp(plan->picks[i], device) == 0)
                                return true;
        }
        return false;
}

void claim_plan_list_free(struct claim_plan_list *list)
{
        for (struct name_map_entry *e = name_map_first(&list->claims), *next; e != NULL; e = next) {
                next = name_map_next(&list->claims, e);
                free(e);
        }
        name_map_free(&list->claims);
}
