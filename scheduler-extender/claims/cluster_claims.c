/* From objects to facts, from facts to the accounts of the nodes that they changed. */
#include "scheduler-extender/claims/cluster_claims.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"

#define RESOURCES_MAX 32 /* of one vendor */

static_assert(CLAIMS_ACCOUNT_VENDORS_MAX <= LEDGER_DEVICES_OFFERS_MAX, "an offer for each vendor");

static bool has_resource(const struct ledger_node *node, uint32_t resource)
{
        for (uint32_t g = 0; g < node->group_count; g++)
                if (node->groups[g].resource == resource)
                        return true;
        return false;
}

/* The vendor's usual resource, where the node has none of his. */
static uint32_t resource_of(const struct symbols *symbols, const struct ledger_node *node,
                            const struct vendor *vendor)
{
        const char *names[RESOURCES_MAX];
        size_t count = vendor_resources(vendor, names, RESOURCES_MAX);

        for (size_t i = 0; i < count; i++) {
                uint32_t resource = symbols_find(symbols, names[i], strlen(names[i]));

                if (resource != 0 && has_resource(node, resource))
                        return resource;
        }
        return symbols_find(symbols, names[0], strlen(names[0]));
}

static void apply(struct cluster *c, struct ledger_node *node)
{
        struct ledger_devices devices = { 0 };
        struct claims_account account;

        claims_account(c->claims, node->name, &account);
        if (node->devices == NULL && account.offered == 0 && account.chip_count == 0 && account.judged)
                return;
        devices.unjudged = !account.judged;
        devices.offered = account.offered;
        devices.free = account.free;
        for (size_t i = 0; i < account.chip_count; i++)
                devices.offers[devices.offer_count++] = (struct ledger_devices_offer){
                        .resource = resource_of(&c->ledger->symbols, node, account.chips[i].vendor),
                        .offers = account.chips[i].offers,
                        .offered = account.chips[i].offered,
                        .held = account.chips[i].held,
                };
        (void) ledger_nodes_set_devices(c->ledger, node, &devices); /* without memory as it was */
}

void cluster_claims_update(struct cluster *c, const char *name)
{
        struct ledger_node *node = ledger_nodes_find(c->ledger, name, strlen(name));

        if (node != NULL)
                apply(c, node);
}

/* A node's change is the ledger's own to count. */
static void apply_changes(struct cluster *c)
{
        struct ledger *ledger = c->ledger;
        const char *name;

        if (ledger->has_slices != claims_has_slices(c->claims) ||
            ledger->loose_devices != claims_loose(c->claims))
                ledger->generation++;
        ledger->has_slices = claims_has_slices(c->claims);
        ledger->loose_devices = claims_loose(c->claims);
        while ((name = claims_next_changed(c->claims)) != NULL)
                cluster_claims_update(c, name);
}

int cluster_claims_take_slice(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct claims_slice_facts facts;
        int r = 0;

        if (c->claims_borrowed)
                return 0;
        if (object != NULL)
                r = claims_json_slice(object, &facts, err);
        if (r == 0)
                r = claims_set_slice(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        return r;
}

int cluster_claims_take_claim(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct claims_claim_facts facts;
        int r = 0;

        if (c->claims_borrowed)
                return 0;
        if (object != NULL)
                r = claims_json_claim(object, &facts, err);
        if (r == 0)
                r = claims_set_claim(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        return r;
}

int cluster_claims_take_pod(struct cluster *c, const char *key, const json_t *object)
{
        struct claims_pod_facts facts;
        int r;

        if (c->claims_borrowed)
                return 0;
        if (object != NULL)
                claims_json_pod(object, &facts);
        r = claims_set_pod(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        return r;
}

uint32_t cluster_claims_asked(const struct cluster *c, const char *namespace_, const json_t *pod)
{
        struct claims_pod_facts facts;

        claims_json_pod(pod, &facts);
        return claims_asked(c->claims, namespace_, &facts);
}

const struct claims *cluster_claims(const struct cluster *c)
{
        return c->claims;
}
