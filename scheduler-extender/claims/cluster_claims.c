/* From objects to facts, from facts to the accounts of the nodes that they changed. */
#include "scheduler-extender/claims/cluster_claims.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/vendor/device_class.h"
#include "base/cleanup.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/claims/claims_planned.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define RESOURCES_MAX 32 /* of one vendor */

static_assert(CLAIMS_ASKS_MAX <= DEVICE_ASKS_MAX && CLAIMS_CHOICES_MAX <= DEVICE_ASKS_CHOICES_MAX,
              "an ask for each request");
static_assert(CLAIMS_ACCOUNT_VENDORS_MAX <= LEDGER_DEVICES_OFFERS_MAX, "an offer for each vendor");
static_assert(CLAIMS_ACCOUNT_GROUPS_MAX <= LEDGER_DEVICES_GROUPS_MAX, "a place for each group");

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

/* The row of a resource, made if need be; NULL = one too many. */
static struct ledger_devices_offer *offer_of(struct ledger_devices *devices, uint32_t resource)
{
        struct ledger_devices_offer *offer =
                (struct ledger_devices_offer *) ledger_devices_offer(devices, resource);

        if (offer != NULL || devices->offer_count == LEDGER_DEVICES_OFFERS_MAX)
                return offer;
        offer = &devices->offers[devices->offer_count++];
        *offer = (struct ledger_devices_offer){ .resource = resource };
        return offer;
}

/* A kubelet has wiped our slices, and chips stay held: those of the first group that is no CPU's. */
static void hold_unnamed(const struct symbols *symbols, const struct ledger_node *node, uint32_t held,
                         struct ledger_devices *devices)
{
        uint32_t cpu = symbols_find(symbols, "cpu", 3), g = 0;
        struct ledger_devices_offer *offer;

        while (g + 1 < node->group_count && node->groups[g].vendor == cpu)
                g++;
        offer = held == 0 || g >= node->group_count ? NULL : offer_of(devices, node->groups[g].resource);
        if (offer != NULL)
                offer->held += held;
}

static void name_groups(const struct symbols *symbols, const struct claims_account *account,
                        struct ledger_devices *devices)
{
        for (size_t i = 0; i < account->group_count; i++) {
                const char *name = account->groups[i].name;
                uint32_t symbol = symbols_find(symbols, name, strlen(name));

                if (symbol == 0)
                        continue;
                devices->groups[devices->group_count].name = symbol;
                devices->groups[devices->group_count++].held = account->groups[i].held;
        }
}

static void apply(struct cluster *c, struct ledger_node *node)
{
        struct ledger_devices devices = { 0 };
        struct claims_account account;

        claims_account(c->claims, node->name, &account);
        if (node->devices == NULL && account.offered == 0 && account.chip_count == 0 &&
            account.unnamed == 0 && account.judged)
                return;
        devices.unjudged = !account.judged;
        devices.lost = account.unnamed > 0;
        devices.offered = account.offered;
        devices.free = account.free;
        devices.ours = account.ours;
        devices.ours_free = account.ours_free;
        for (size_t i = 0; i < account.chip_count; i++)
                devices.offers[devices.offer_count++] = (struct ledger_devices_offer){
                        .resource = resource_of(&c->ledger->symbols, node, account.chips[i].vendor),
                        .offers = account.chips[i].offers,
                        .planned = account.chips[i].planned,
                        .offered = account.chips[i].offered,
                        .held = account.chips[i].held,
                };
        hold_unnamed(&c->ledger->symbols, node, account.unnamed, &devices);
        name_groups(&c->ledger->symbols, &account, &devices);
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

int cluster_claims_take_inventory(struct cluster *c, const char *node, const struct inventory *inventory)
{
        int r = c->tried != NULL ? 0 : claims_planned_set(c->claims, node, inventory);

        apply_changes(c);
        cluster_claims_update(c, node);
        return r;
}

int cluster_claims_take_slice(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct claims_slice_facts facts;
        int r = 0;

        if (c->tried != NULL)
                return 0;
        if (object != NULL)
                r = claims_json_slice(object, &facts, err);
        if (r == 0)
                r = claims_set_slice(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        return r;
}

static const struct ledger_node *node_of(const struct cluster *c, const char *claim_key)
{
        const char *name = claims_node(c->claims, claim_key);

        return name == NULL ? NULL : ledger_nodes_find(c->ledger, name, strlen(name));
}

struct ledger_pod *cluster_claims_pod_of(const struct ledger *ledger, const char *claim_key, const char *name,
                                         const char *uid)
{
        char namespace_[256];
        struct ledger_pod *pod;

        (void) store_key_split(claim_key, namespace_);
        pod = name == NULL ? NULL : ledger_pods_find(ledger, namespace_, name);
        return pod == NULL || strcmp(pod->uid, uid) != 0 ? NULL : pod;
}

/* The chips of the claim are the pod's, or are not any more: its place in a plan follows. */
static void tell_pod(struct cluster *c, const char *claim_key, bool claimed)
{
        const char *uid = NULL, *name = claims_reserved(c->claims, claim_key, &uid);
        struct ledger_pod *pod = cluster_claims_pod_of(c->ledger, claim_key, name, uid);
        struct ledger_job *job;

        if (pod == NULL || pod->claimed == claimed ||
            (claimed && pod->request.by_claims && claims_asked_by(c->claims, pod->key) > 0))
                return;
        ledger_jobs_set_claimed(c->ledger, pod, claimed, node_of(c, claim_key));
        job = ledger_jobs_planning(c->ledger, pod->key);
        if (job != NULL)
                ledger_jobs_keep_plan(c->ledger, job);
}

/* Is the claim, as it is told now (NULL: gone), still that of the pod that had it? */
static bool stays_reserved(const struct cluster *c, const char *key, const struct claims_claim_facts *now)
{
        const char *uid = NULL;

        return now != NULL && now->allocated && now->pod != NULL &&
               claims_reserved(c->claims, key, &uid) != NULL && strcmp(uid, now->pod_uid) == 0;
}

int cluster_claims_take_claim(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct claims_claim_facts facts;
        int r = 0;

        if (c->tried != NULL)
                return 0;
        if (object != NULL)
                r = claims_json_claim(object, &facts, err);
        if (r == 0 && !stays_reserved(c, key, object == NULL ? NULL : &facts))
                tell_pod(c, key, false);
        if (r == 0)
                r = claims_set_claim(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        tell_pod(c, key, true);
        if (r == 0)
                r = ledger_jobs_claim_place(c->ledger, key,
                                            object != NULL && facts.planned && facts.allocated ? facts.node
                                                                                               : NULL);
        return r;
}

int cluster_claims_take_template(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct claims_claim_facts facts;
        int r = 0;

        if (c->tried != NULL)
                return 0;
        if (object != NULL)
                r = claims_json_template(object, &facts, err);
        return r < 0 ? r : claims_set_template(c->claims, key, object == NULL ? NULL : &facts);
}

bool cluster_claims_has(const json_t *pod)
{
        return json_array_size(json_object_get(json_object_get(pod, "spec"), "resourceClaims")) > 0;
}

/* Its claim may have been told first. */
static void tell_claim(struct cluster *c, const char *pod_key, const char *name)
{
        char key[512];

        if (text_format(key, sizeof(key), "%.*s/%s", (int) strcspn(pod_key, "/"), pod_key, name))
                tell_pod(c, key, true);
}

int cluster_claims_take_pod(struct cluster *c, const char *key, const json_t *object)
{
        struct claims_pod_facts facts;
        int r;

        if (object != NULL)
                claims_json_pod(object, &facts);
        if (c->tried != NULL)
                return claims_set_pod(c->tried, key, object == NULL ? NULL : &facts);
        r = claims_set_pod(c->claims, key, object == NULL ? NULL : &facts);
        apply_changes(c);
        for (size_t i = 0; r == 0 && object != NULL && i < facts.name_count; i++)
                tell_claim(c, key, facts.names[i]);
        return r;
}

/* Names of vendors and runtimes as the ledger's groups have them. Return: false, of one that is no such name.
 */
static bool turn_ask(const struct symbols *symbols, const struct claims_ask *ask, struct device_ask *ret)
{
        ret->one_group = ask->one_group;
        ret->choice_count = ask->choice_count;
        for (size_t k = 0; k < ask->choice_count; k++) {
                const char *of = ask->choices[k].of;

                ret->choices[k] = (struct device_choice){ .of = symbols_find(symbols, of, strlen(of)),
                                                          .devices = ask->choices[k].devices };
                if (ret->choices[k].of == 0 && !device_class_knows(of))
                        return false;
        }
        return true;
}

static void turn_asks(const struct symbols *symbols, const struct claims_ask *asks, size_t count,
                      struct device_asks *ret)
{
        *ret = (struct device_asks){ .count = 0 };
        for (size_t i = 0; i < count; i++)
                ret->count += turn_ask(symbols, &asks[i], &ret->asks[ret->count]);
}

uint32_t cluster_claims_asked(const struct cluster *c, const char *namespace_, const json_t *pod,
                              struct device_asks *ret_asks)
{
        struct claims_ask asks[CLAIMS_ASKS_MAX];
        struct claims_pod_facts facts;

        ret_asks->count = 0;
        claims_json_pod(pod, &facts);
        if (facts.name_count == 0)
                return 0;
        turn_asks(&c->ledger->symbols, asks, claims_asked_classes(c->claims, namespace_, &facts, asks),
                  ret_asks);
        ret_asks->own = claims_asked_own(&facts);
        return claims_asked(c->claims, namespace_, &facts);
}

uint32_t cluster_claims_asked_by(const struct cluster *c, const char *pod_key, struct device_asks *ret_asks)
{
        struct claims_ask asks[CLAIMS_ASKS_MAX];

        ret_asks->count = 0;
        if (!claims_pod(cluster_claims(c), pod_key, NULL))
                return 0;
        turn_asks(&c->ledger->symbols, asks, claims_asked_classes_by(cluster_claims(c), pod_key, asks),
                  ret_asks);
        ret_asks->own = claims_asked_own_by(cluster_claims(c), pod_key);
        return claims_asked_by(cluster_claims(c), pod_key);
}

bool cluster_claims_got(const struct cluster *c, const char *namespace_, const char *name, struct text *ret)
{
        char key[512];

        return text_format(key, sizeof(key), "%s/%s", namespace_, name) &&
               claims_asked_got(cluster_claims(c), key, ret);
}

const struct claims *cluster_claims(const struct cluster *c)
{
        return c->tried != NULL ? c->tried : c->claims;
}

static uint32_t chips_of(const struct request *request, uint32_t resource)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource == resource)
                        return request->items[i].chips;
        return 0;
}

void cluster_claims_try(struct cluster *c, struct ledger_node *node, const struct rules_context *context)
{
        struct ledger_devices devices = { 0 };
        struct rules_on room;
        const struct request *on = rules_on(context, node, &room)->request;

        if (context->devices == 0 || context->request->by_claims) /* the pod itself counts for its claims */
                return;
        if (node->devices != NULL)
                devices = *node->devices;
        devices.free -= devices.free < context->devices ? devices.free : context->devices;
        for (size_t i = 0; i < on->item_count; i++) {
                uint32_t taken = on->items[i].chips - chips_of(context->request, on->items[i].resource);
                struct ledger_devices_offer *offer =
                        taken == 0 ? NULL : offer_of(&devices, on->items[i].resource);

                if (offer != NULL)
                        offer->held += taken;
        }
        (void) ledger_nodes_set_devices(c->ledger, node, &devices);
}
