/* The account of a node in parts, dealt to chips: first where a claim or the agent knows, then by count. */
#include "scheduler-extender/page/page_holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/dra_name.h"
#include "base/array.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct reading {
        struct page_holders *holders;
        const struct ledger *ledger;
        const struct ledger_node *node;
};

static void add(struct page_holders *holders, const struct ledger_pod *pod, const struct ledger_job *job,
                uint32_t group, uint32_t chips)
{
        struct page_holders_part *part =
                array_add(&holders->parts, &holders->count, &holders->capacity, sizeof(*part));

        if (part == NULL)
                holders->failed = true;
        else
                *part = (struct page_holders_part){ pod, job, group, chips, 0 };
}

static uint32_t resource_of(const struct ledger_node *node, uint32_t group)
{
        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].name == group)
                        return node->groups[i].resource;
        return 0;
}

static void on_part(void *userdata, const struct ledger_account_part *part)
{
        add(((struct reading *) userdata)->holders, part->pod, part->job, part->group, part->chips);
}

/* A part of the pod's, else of claims that nobody was found for. Return: its place; holders->count = none. */
static size_t part_with(const struct page_holders *holders, uint32_t group, const struct ledger_pod *pod,
                        uint32_t shares)
{
        size_t i = 0;

        while (i < holders->count && !(holders->parts[i].group == group && holders->parts[i].pod == pod &&
                                       holders->parts[i].job == NULL && holders->parts[i].left >= shares))
                i++;
        return i;
}

static void name(struct page_holders *holders, size_t part, const char *device, uint32_t shares)
{
        struct page_holders_named *named =
                array_add(&holders->named, &holders->named_count, &holders->named_capacity, sizeof(*named));

        if (named == NULL)
                holders->failed = true;
        else
                *named = (struct page_holders_named){ device, part, shares };
}

static void on_had(void *userdata, const struct claims_account_had *had)
{
        struct reading *reading = userdata;
        struct page_holders *holders = reading->holders;
        uint32_t group = symbols_find(&reading->ledger->symbols, had->group, strlen(had->group));
        const struct ledger_pod *pod =
                cluster_claims_pod_of(reading->ledger, had->claim, had->pod, had->pod_uid);
        size_t own = group == 0 ? holders->count : part_with(holders, group, pod, had->shares), of;

        if (own == holders->count && pod != NULL && group != 0 &&
            (of = part_with(holders, group, NULL, had->shares)) < holders->count) {
                holders->parts[of].left -= had->shares;
                add(holders, pod, NULL, group, had->shares);
        }
        if (own == holders->count || holders->failed)
                return; /* the account knows nothing of it yet */
        holders->parts[own].left -= had->shares;
        holders->parts[own].named += had->shares;
        name(holders, own, had->device, had->shares);
}

/* Chips that the pod asks for of the resource, and that are not in a part of it yet. */
static uint32_t owed(const struct page_holders *holders, const struct ledger_node *node,
                     const struct ledger_pod *pod, uint32_t resource)
{
        uint32_t chips = 0, had = 0;

        for (size_t i = 0; i < pod->request.item_count; i++)
                if (pod->request.items[i].resource == resource)
                        chips += pod->request.items[i].chips;
        for (size_t i = 0; i < holders->count; i++)
                if (holders->parts[i].pod == pod && resource_of(node, holders->parts[i].group) == resource)
                        had += holders->parts[i].left + holders->parts[i].named;
        return chips > had ? chips - had : 0;
}

/* What claims hold is of the pods whose claims they are, as far as these ask by resource. */
static void share_out(const struct reading *reading, uint32_t group, uint32_t chips)
{
        uint32_t resource = resource_of(reading->node, group);

        for (const struct ledger_pod *pod = reading->node->pods; pod != NULL && chips > 0;
             pod = pod->next_on_node) {
                uint32_t part = ledger_pods_has_claimed(pod)
                                        ? owed(reading->holders, reading->node, pod, resource)
                                        : 0;

                part = part < chips ? part : chips;
                if (part > 0)
                        add(reading->holders, pod, NULL, group, part);
                chips -= part;
        }
        if (chips > 0)
                add(reading->holders, NULL, NULL, group, chips);
}

/* ... once it is known what is named. */
static void share_out_all(const struct reading *reading)
{
        size_t count = reading->holders->count;

        for (size_t i = 0; i < count; i++) {
                struct page_holders_part part = reading->holders->parts[i];

                if (part.pod != NULL || part.job != NULL || part.left == 0)
                        continue;
                reading->holders->parts[i].left = 0;
                share_out(reading, part.group, part.left);
        }
}

int page_holders_read(struct page_holders *holders, const struct ledger *ledger, const struct claims *claims,
                      const struct ledger_node *node)
{
        struct reading reading = { holders, ledger, node };
        int r = ledger_account_tell(node, on_part, &reading);

        if (claims != NULL)
                claims_account_tell(claims, node->name, on_had, &reading);
        share_out_all(&reading);
        return holders->failed ? -ENOMEM : r;
}

void page_holders_free(struct page_holders *holders)
{
        free(holders->parts);
        free(holders->named);
        *holders = (struct page_holders){ .parts = NULL };
}

static struct page_holders_part *next_part(struct page_holders *holders, uint32_t group)
{
        for (size_t i = 0; i < holders->count; i++)
                if (holders->parts[i].group == group && holders->parts[i].left > 0)
                        return &holders->parts[i];
        return NULL;
}

static struct page_holders_part *part_of(struct page_holders *holders, uint32_t group, const char *pod)
{
        for (size_t i = 0; i < holders->count; i++)
                if (holders->parts[i].group == group && holders->parts[i].left > 0 &&
                    holders->parts[i].pod != NULL && strcmp(holders->parts[i].pod->key, pod) == 0)
                        return &holders->parts[i];
        return NULL;
}

static uint32_t capacity_of(const struct page_node_group *group)
{
        return group->shares > 1 ? group->shares : 1;
}

/* As claims say. What is of no chip here is dealt by count. */
static void deal_named(struct page_holders *holders, uint32_t symbol, const struct page_node_told *told,
                       const struct page_node_group *group, struct page_holders_chip *ret)
{
        struct dra_name label;

        for (uint32_t i = 0; holders->named_count > 0 && i < group->count; i++) {
                dra_name_alone(page_node_text(told, told->chips[group->first + i].id), &label);
                for (size_t k = 0; k < holders->named_count; k++) {
                        struct page_holders_named *named = &holders->named[k];

                        if (named->shares == 0 || holders->parts[named->part].group != symbol ||
                            strcmp(named->device, label.label) != 0)
                                continue;
                        ret[i].used += named->shares;
                        if (ret[i].part == NULL)
                                ret[i].part = &holders->parts[named->part];
                        named->shares = 0;
                }
        }
        for (size_t k = 0; k < holders->named_count; k++) {
                struct page_holders_named *named = &holders->named[k];

                if (holders->parts[named->part].group != symbol)
                        continue;
                holders->parts[named->part].left += named->shares;
                named->shares = 0; /* the part's own count of them is done with */
        }
}

/* As its agent says: a pod that has a broken device has at least a share of it. */
static void deal_told(struct page_holders *holders, uint32_t symbol, const struct page_node_told *told,
                      const struct page_node_group *group, struct page_holders_chip *ret)
{
        for (uint32_t i = 0; i < group->count; i++) {
                const struct page_node_chip *chip = &told->chips[group->first + i];
                struct page_holders_part *part =
                        chip->holder == 0 ? NULL
                                          : part_of(holders, symbol, page_node_text(told, chip->holder));

                if (part == NULL || ret[i].part != NULL)
                        continue;
                part->left--;
                ret[i] = (struct page_holders_chip){ part, 1 };
        }
}

/* Return: did somebody get one? */
static bool deal_to(struct page_holders *holders, uint32_t symbol, uint32_t capacity,
                    struct page_holders_chip *chip)
{
        uint32_t before = chip->used;

        while (chip->used < capacity) {
                struct page_holders_part *part = next_part(holders, symbol);
                uint32_t n;

                if (part == NULL)
                        break;
                n = capacity - chip->used < part->left ? capacity - chip->used : part->left;
                part->left -= n;
                chip->used += n;
                if (chip->part == NULL)
                        chip->part = part;
        }
        return chip->used > before;
}

static bool may_be_used(const struct page_node_told *told, const struct page_node_group *group, uint32_t i)
{
        uint32_t usable = 0;

        if (i < group->count)
                return told->chips[group->first + i].usable;
        for (uint32_t j = 0; j < group->count; j++)
                usable += told->chips[group->first + j].usable;
        return i - group->count + usable < group->healthy; /* the first of those that are not told */
}

void page_holders_deal(struct page_holders *holders, const struct ledger *ledger,
                       const struct page_node_told *told, const struct page_node_group *group,
                       struct page_holders_chip *ret, bool *ret_counted)
{
        const char *name = page_node_text(told, group->name);
        uint32_t symbol = symbols_find(&ledger->symbols, name, strlen(name));
        uint32_t chips = group->total > group->count ? group->total : group->count;
        const struct page_holders_part *first = NULL;
        bool dealt = false, others = false;

        *ret_counted = false;
        if (symbol == 0)
                return;
        deal_named(holders, symbol, told, group, ret);
        deal_told(holders, symbol, told, group, ret);
        for (int usable = 1; usable >= 0; usable--)
                for (uint32_t i = 0; i < chips; i++)
                        if (may_be_used(told, group, i) == (usable == 1) &&
                            (usable == 1 || ret[i].part == NULL))
                                dealt = deal_to(holders, symbol, capacity_of(group), &ret[i]) || dealt;
        for (uint32_t i = 0; i < chips; i++) {
                first = i == 0 ? ret[i].part : first;
                others = others || ret[i].part != first;
        }
        *ret_counted = dealt && others;
}
