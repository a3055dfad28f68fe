/* Devices are marked by the claims that have them, and counted. */
#include "scheduler-extender/claims/claims_account.h"

#include <string.h>

#include "agent/inventory/dra_share.h"
#include "scheduler-extender/claims/claims_internal.h"

static uint32_t shares_asked(const struct result *result)
{
        return result->shares > 0 ? result->shares : 1;
}

/* A part of a device, or all of it. */
static void take(struct offered *device, const struct result *result, bool as_chip)
{
        bool all = device->shares == 0;

        if (!all) {
                const struct dra_share_room room = { .memory_bytes = device->memory_bytes,
                                                     .shares = device->shares };
                uint32_t shares = shares_asked(result);

                device->used_shares += shares;
                device->beside_shares += as_chip ? 0 : shares;
                device->used_bytes +=
                        result->memory_bytes > 0 ? result->memory_bytes : dra_share_memory(&room);
                all = device->used_shares >= device->shares ||
                      (device->memory_bytes > 0 && device->used_bytes >= device->memory_bytes);
        }
        device->taken = device->taken || all;
        device->held = device->held || as_chip;
}

/* The device of the result's pool that is called so; NULL = no slice that counts has it. */
static struct offered *find_named(const struct place *place, const struct result *result, const char *name,
                                  struct slice **ret)
{
        for (struct slice *s = place->slices; s != NULL; s = s->next)
                for (uint32_t i = 0;
                     s->counts && i < s->device_count && same_pool(s, result->driver, result->pool); i++)
                        if (strcmp(s->text + s->devices[i].name, name) == 0) {
                                *ret = s;
                                return &s->devices[i];
                        }
        return NULL;
}

/* Return: does a slice have the device? With it go those that it stands for. */
static bool take_device(struct place *place, const struct result *result, bool as_chip)
{
        struct slice *slice, *of;
        struct offered *device = find_named(place, result, result->device, &slice), *member;
        const char *name;

        if (device == NULL)
                return false;
        take(device, result, as_chip);
        name = slice->text + device->members;
        for (uint32_t i = 0; i < device->member_count; i++, name += strlen(name) + 1)
                if ((member = find_named(place, result, name, &of)) != NULL)
                        take(member, result, as_chip);
        return true;
}

/* NULL = nobody's that is known, or one vendor too many. */
static struct claims_account_chips *chips_of(struct claims_account *account, const struct vendor *vendor)
{
        for (size_t i = 0; i < account->chip_count; i++)
                if (account->chips[i].vendor == vendor)
                        return &account->chips[i];
        if (vendor == NULL || account->chip_count == CLAIMS_ACCOUNT_VENDORS_MAX)
                return NULL;
        account->chips[account->chip_count] = (struct claims_account_chips){ .vendor = vendor };
        return &account->chips[account->chip_count++];
}

static bool counts_itself(const struct claims *c, const struct claim *claim)
{
        return name_map_find(&c->extended, claim->entry.key) == NULL;
}

static bool same_device(const struct result *a, const struct result *b)
{
        return strcmp(a->device, b->device) == 0 && strcmp(a->pool, b->pool) == 0 &&
               strcmp(a->driver, b->driver) == 0;
}

/* Has a claim that counts before this one, or this one itself, taken the same device? */
static bool took_before(const struct claims *c, const struct place *place, const struct claim *claim,
                        uint32_t index)
{
        for (const struct claim *other = place->claims;; other = other->next) {
                for (uint32_t i = 0; i < (other == claim ? index : other->result_count); i++)
                        if (counts_itself(c, other) &&
                            same_device(&other->results[i], &claim->results[index]))
                                return true;
                if (other == claim)
                        return false;
        }
}

/* A device that no slice has (any more) is a chip as long as it is allocated. */
static void take_claim(const struct claims *c, struct place *place, const struct claim *claim,
                       struct claims_account *ret)
{
        bool as_chip = counts_itself(c, claim);

        for (uint32_t i = 0; i < claim->result_count; i++) {
                const char *whole = NULL;
                struct claims_account_chips *chips;

                if (take_device(place, &claim->results[i], as_chip) || !as_chip ||
                    took_before(c, place, claim, i))
                        continue;
                chips = chips_of(ret, vendor_of_claims(claim->results[i].driver, &whole));
                if (chips != NULL)
                        chips->held++;
                else if (strcmp(claim->results[i].driver, DRA_NAME_DRIVER) == 0)
                        ret->unnamed++;
        }
}

static bool same_chip(const struct slice *a, const struct offered *x, const struct slice *b,
                      const struct offered *y)
{
        return x->chip != x->name && y->chip != y->name && strcmp(a->text + x->chip, b->text + y->chip) == 0;
}

/* The chip of a device, told with the first of its devices alone. Return: is it that one? */
static bool is_first_of_chip(const struct place *place, const struct slice *slice,
                             const struct offered *device, bool *ret_held)
{
        *ret_held = device->held;
        if (device->chip == device->name)
                return !device->part;
        for (const struct slice *s = place->slices, *met = NULL; s != NULL; s = s->next) {
                if (!s->counts || !same_pool(s, slice->driver, slice->pool))
                        continue;
                for (uint32_t i = 0; i < s->device_count; i++) {
                        if (&s->devices[i] == device)
                                met = s;
                        else if (!same_chip(s, &s->devices[i], slice, device))
                                continue;
                        else if (met == NULL)
                                return false;
                        *ret_held = *ret_held || s->devices[i].held;
                }
        }
        return true;
}

static void hold_in_group(const char *name, uint32_t held, struct claims_account *ret)
{
        size_t i = 0;

        while (i < ret->group_count && strcmp(ret->groups[i].name, name) != 0)
                i++;
        if (i == CLAIMS_ACCOUNT_GROUPS_MAX) /* held, and where is not told */
                return;
        if (i == ret->group_count)
                ret->groups[ret->group_count++] = (struct claims_account_group){ .name = name };
        ret->groups[i].held += held;
}

static uint32_t shares_of(const struct offered *device)
{
        return device->shares > 0 ? device->shares : 1;
}

/* All of them where nothing else of it is left: its memory is had. */
static uint32_t used_of(const struct offered *device)
{
        uint32_t shares = shares_of(device);

        return device->taken || device->used_shares > shares ? shares : device->used_shares;
}

/* As ids of chips are counted everywhere: of one that is shared in shares (ledger_nodes.c). */
static uint32_t held_of(const struct offered *device, bool held)
{
        uint32_t used = used_of(device);

        if (!held || device->shares == 0)
                return held;
        return used > device->beside_shares ? used - device->beside_shares : 0;
}

static void count_free(const struct offered *device, const struct slice *slice, struct claims_account *ret)
{
        uint32_t shares = shares_of(device), used = used_of(device);

        if (!slice->whole)
                return;
        ret->offered += shares;
        ret->free += shares - used;
        if (strcmp(slice->driver, DRA_NAME_DRIVER) != 0)
                return;
        ret->ours += shares;
        ret->ours_free += shares - used;
}

static void add_slice(const struct place *place, const struct slice *slice, struct claims_account *ret)
{
        struct claims_account_chips *chips = chips_of(ret, slice->vendor);

        ret->judged = ret->judged && slice->whole;
        if (chips != NULL)
                chips->offers = true;
        for (uint32_t i = 0; i < slice->device_count; i++) {
                const struct offered *device = &slice->devices[i];
                bool held = false;

                if (device->member_count > 0)
                        continue;
                ret->judged = ret->judged && (!device->shared || device->shares > 0);
                if (!slice->planned)
                        count_free(device, slice, ret);
                chips = chips_of(ret, device->vendor);
                if (chips == NULL || !is_first_of_chip(place, slice, device, &held))
                        continue;
                chips->offers = true;
                chips->planned = slice->planned;
                chips->offered += slice->whole ? shares_of(device) : 0;
                chips->held += held_of(device, held);
                if (held && device->group != 0)
                        hold_in_group(slice->text + device->group, held_of(device, held), ret);
        }
}

void claims_account(struct claims *c, const char *node, struct claims_account *ret)
{
        struct place *place = (struct place *) name_map_find(&c->places, node);

        *ret = (struct claims_account){ .judged = true };
        for (struct slice *s = place == NULL ? NULL : place->slices; s != NULL; s = s->next)
                for (uint32_t i = 0; i < s->device_count; i++) {
                        s->devices[i].taken = s->devices[i].held = false;
                        s->devices[i].used_shares = s->devices[i].beside_shares = 0;
                        s->devices[i].used_bytes = 0;
                }
        for (const struct claim *claim = place == NULL ? NULL : place->claims; claim != NULL;
             claim = claim->next)
                take_claim(c, place, claim, ret);
        for (const struct slice *s = place == NULL ? NULL : place->slices; s != NULL; s = s->next)
                if (s->counts)
                        add_slice(place, s, ret);
}

struct telling {
        const struct place *place;
        const struct claim *claim;
        const struct result *result;
        bool first; /* of the claims that count the device for themselves */
        void (*tell)(void *userdata, const struct claims_account_had *had);
        void *userdata;
};

static void tell_device(const struct telling *t, const struct slice *slice, const struct offered *device)
{
        uint32_t left = used_of(device) > device->used_shares ? used_of(device) - device->used_shares : 0;
        const struct claims_account_had had = {
                .device = slice->text + device->name,
                .group = device->group != 0 ? slice->text + device->group : "",
                .claim = t->claim->entry.key,
                .pod = t->claim->pod,
                .pod_uid = t->claim->pod_uid,
                .shares = device->shares == 0
                                  ? 1
                                  : (t->result->shares > 0 ? t->result->shares : 1) + (t->first ? left : 0),
        };

        t->tell(t->userdata, &had);
}

static void tell_result(const struct telling *t)
{
        struct slice *slice, *of;
        const struct offered *device = find_named(t->place, t->result, t->result->device, &slice), *member;
        const char *name = device == NULL ? NULL : slice->text + device->members;

        if (device == NULL)
                return;
        if (device->member_count == 0)
                tell_device(t, slice, device);
        for (uint32_t i = 0; i < device->member_count; i++, name += strlen(name) + 1)
                if ((member = find_named(t->place, t->result, name, &of)) != NULL)
                        tell_device(t, of, member);
}

void claims_account_tell(const struct claims *c, const char *node,
                         void (*tell)(void *userdata, const struct claims_account_had *had), void *userdata)
{
        const struct place *place = (const struct place *) name_map_find(&c->places, node);

        for (const struct claim *claim = place == NULL ? NULL : place->claims; claim != NULL;
             claim = claim->next)
                for (uint32_t i = 0; i < claim->result_count; i++)
                        if (strcmp(claim->results[i].driver, DRA_NAME_DRIVER) == 0)
                                tell_result(&(struct telling){ place, claim, &claim->results[i],
                                                               !took_before(c, place, claim, i), tell,
                                                               userdata });
}
