/* Stages: what each step does to the inventory that it takes over. */
#include "agent/stages.h"

#include <errno.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/continuity.h"
#include "base/text.h"

static struct inventory take(struct inventory *from)
{
        struct inventory taken = *from;

        inventory_init(from);
        return taken;
}

int stages_find(const struct tree *tree, const struct discovery_options *options,
                const struct link_report_list *links, const struct inventory *before, struct numbers *numbers,
                struct stages_found *ret, struct err *err)
{
        struct inventory inventory;
        int r = discovery_run_linked(tree, options, links, &inventory, err);

        if (r == 0 && (continuity_keep(before, &inventory) < 0 || numbers_keep(numbers, &inventory) < 0))
                r = err_set(err, -ENOMEM, "no memory for the scan");
        if (r < 0)
                inventory_free(&inventory);
        else
                ret->inventory = inventory;
        return r;
}

int stages_judge(struct stages_found *found, struct judge *judge, const struct agent_config *config,
                 const struct inventory *before, uint64_t now_usec, uint64_t real_usec,
                 const struct judge_callbacks *callbacks, struct stages_judged *ret)
{
        struct inventory inventory = take(&found->inventory);

        if (judge_scan(judge, config, before, &inventory, now_usec, real_usec, callbacks) < 0) {
                inventory_free(&inventory);
                return -ENOMEM;
        }
        ret->inventory = inventory;
        return 0;
}

int stages_describe(const struct agent_config *config, const struct resource_map *resources,
                    struct inventory *inventory, struct err *err)
{
        inventory->node_class = config->node_class;
        (void) text_copy(inventory->pool, sizeof(inventory->pool), config->pool);
        return resource_map_apply(resources, inventory, err);
}

int stages_publish(struct stages_judged *judged, const struct stages_additions *additions,
                   struct stages_published *ret, struct err *err)
{
        struct inventory *inventory = &ret->inventory;
        int r;

        *inventory = take(&judged->inventory);
        (void) text_copy(inventory->node, sizeof(inventory->node), additions->node);
        r = stages_describe(additions->config, additions->resources, inventory, err);
        additions->fill(additions->userdata, inventory);
        return r;
}
