/* Devices are marked by the claims that have them, and counted. */
#include "scheduler-extender/claims/claims_account.h"

#include <string.h>

#include "scheduler-extender/claims/claims_internal.h"

/* Return: does a slice have the device? */
static bool take_device(struct place *place, const struct result *result, bool as_chip)
{
        bool found = false;

        for (struct slice *s = place->slices; s != NULL; s = s->next)
                for (uint32_t i = 0;
                     s->counts && i < s->device_count && same_pool(s, result->driver, result->pool); i++) {
                        struct offered *device = &s->devices[i];

                        if (strcmp(s->text + device->name, result->device) != 0)
                                continue;
                        device->taken = found = true;
                        device->held = device->held || as_chip;
                }
        return found;
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
                else if (strcmp(claim->results[i].driver, CLAIMS_OUR_DRIVER) == 0)
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

static void hold_in_group(const char *name, struct claims_account *ret)
{
        size_t i = 0;

        while (i < ret->group_count && strcmp(ret->groups[i].name, name) != 0)
                i++;
        if (i == CLAIMS_ACCOUNT_GROUPS_MAX) /* held, and where is not told */
                return;
        if (i == ret->group_count)
                ret->groups[ret->group_count++] = (struct claims_account_group){ .name = name };
        ret->groups[i].held++;
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

                ret->judged = ret->judged && !device->shared;
                ret->offered += slice->whole;
                ret->free += slice->whole && !device->taken;
                chips = chips_of(ret, device->vendor);
                if (chips == NULL || !is_first_of_chip(place, slice, device, &held))
                        continue;
                chips->offers = true;
                chips->offered += slice->whole;
                chips->held += held;
                if (held && device->group != 0)
                        hold_in_group(slice->text + device->group, ret);
        }
}

void claims_account(struct claims *c, const char *node, struct claims_account *ret)
{
        struct place *place = (struct place *) name_map_find(&c->places, node);

        *ret = (struct claims_account){ .judged = true };
        for (struct slice *s = place == NULL ? NULL : place->slices; s != NULL; s = s->next)
                for (uint32_t i = 0; i < s->device_count; i++)
                        s->devices[i].taken = s->devices[i].held = false;
        for (const struct claim *claim = place == NULL ? NULL : place->claims; claim != NULL;
             claim = claim->next)
                take_claim(c, place, claim, ret);
        for (const struct slice *s = place == NULL ? NULL : place->slices; s != NULL; s = s->next)
                if (s->counts)
                        add_slice(place, s, ret);
}
