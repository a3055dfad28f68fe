/* Open chips added up by the number of a domain. */
#include "scheduler-extender/neighbours/domains.h"

#include <stdlib.h>

bool domains_init(struct domains *domains, const struct rules_context *ctx)
{
        size_t below = domains->below > 0 ? domains->below : (size_t) ctx->ledger->node_count + 1;

        domains->enough = 0;
        domains->chips = calloc(below, sizeof(*domains->chips));
        return domains->chips != NULL;
}

void domains_free(struct domains *domains)
{
        free(domains->chips);
        domains->chips = NULL;
}

void domains_add(struct domains *domains, const struct rules_context *ctx, const struct ledger_node *node)
{
        uint32_t domain = domains->of(ctx, node);
        struct rules_room room;
        bool before;

        if (domain == 0)
                return;
        rules_room(ctx, node, 0, &room);
        before = domains_have(domains, domain);
        domains->chips[domain] += room.open;
        domains->enough += !before && domains_have(domains, domain);
}

bool domains_have(const struct domains *domains, uint32_t domain)
{
        return domain != 0 && domains->chips[domain] >= domains->wanted;
}

bool domains_take(struct domains *domains, uint32_t domain)
{
        if (!domains_have(domains, domain))
                return false;
        domains->chips[domain] = 0;
        domains->enough--;
        return true;
}
