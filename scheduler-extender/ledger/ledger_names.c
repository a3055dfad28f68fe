/* Everything in the ledger that holds a symbol says so, and the symbols that nobody named go.
 *
 * Counting them at each change instead would need a hand at some thirty places that copy or drop a name, and
 * one that is forgotten gives back a name in use. Here a field that is forgotten does so too, but at one
 * place, which tests/model looks at. Shapes of kinds that no node is of any more (scheduler-extender/decide/
 * node_kinds.h) do not count: their symbols are then equal to none, so no node is found to be like them. */
#include "scheduler-extender/ledger/ledger_names.h"

#include <stdlib.h>

#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"

struct use {
        const struct symbols *symbols;
        bool *used;        /* by index */
        uint16_t *brought; /* of the node that is looked at, or NULL */
};

/* A name that several nodes use is the first one's. */
static void use(struct use *u, uint32_t symbol)
{
        uint32_t index = symbols_index(u->symbols, symbol);

        if (index == SYMBOLS_NONE || u->used[index])
                return;
        u->used[index] = true;
        if (u->brought != NULL && !u->symbols->entries[index].kept)
                ++*u->brought;
}

static void use_node(struct use *u, struct ledger_node *node)
{
        node->brought = 0;
        u->brought = &node->brought;
        for (uint32_t g = 0; g < node->group_count; g++) {
                const struct ledger_group *group = &node->groups[g];
                const uint32_t names[] = { group->name, group->vendor, group->runtime, group->model,
                                           group->resource };

                for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                        use(u, names[i]);
        }
        use(u, node->hardware.memory_type);
        use(u, node->hardware.network_kind);
        use(u, node->pool);
        use(u, node->switch_domain);
        for (uint32_t i = 0; i < node->allocatable_count; i++)
                use(u, node->allocatable[i].resource);
        for (uint32_t i = 0; i < node->program_count; i++)
                use(u, node->programs[i].runtime);
        for (uint32_t i = 0; i < node->sick_count; i++)
                use(u, node->sick[i].group);
        u->brought = NULL;
}

static void use_request(struct use *u, const struct request *request)
{
        for (size_t i = 0; i < request->item_count; i++)
                use(u, request->items[i].resource);
        for (size_t i = 0; i < request->model_count; i++)
                use(u, request->models[i]);
}

static void use_pod(struct use *u, const struct ledger_pod *pod)
{
        use_request(u, &pod->request);
        for (size_t i = 0; i < pod->part_count; i++)
                use(u, pod->parts[i].group);
        for (size_t i = 0; i < pod->kind_count; i++)
                use(u, pod->kinds[i].resource);
}

static void use_job(struct use *u, const struct ledger_job *job)
{
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job)
                use_request(u, &slot->request);
        for (size_t i = 0; i < job->place_count; i++)
                use_request(u, &job->places[i].request);
}

void ledger_names_release(struct ledger *ledger)
{
        struct use u = { .symbols = &ledger->symbols, .used = calloc(ledger->symbols.top + 1, sizeof(bool)) };

        if (u.used == NULL)
                return;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                use_node(&u, ledger->nodes[i]);
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                if (ledger->pod_slots[i] != NULL)
                        use_pod(&u, ledger->pod_slots[i]);
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        use_job(&u, job);
        symbols_release(&ledger->symbols, u.used);
        free(u.used);
}
