/* DRA state: which claims this node has prepared, and with which devices. */
#include "plugin/dra/account/dra_state.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/device_ids.h"
#include "base/json/json_read.h"
#include "base/json/json_table.h"

#define STATE_VERSION 2 /* 1 had no journal */

bool dra_state_uid_valid(const char *uid)
{
        size_t n = 0;

        for (; uid[n] != '\0'; n++)
                if (n + 1 == DRA_STATE_UID_BYTES || !isascii(uid[n]) ||
                    (!isalnum((unsigned char) uid[n]) && uid[n] != '-'))
                        return false;
        return n > 0;
}

static int check_claim(const struct json_field *at, void *object, struct err *err)
{
        const struct dra_state_claim *claim = object;
        struct json_field uid = json_field_get(at, "uid");

        return dra_state_uid_valid(claim->uid) ? 0 : json_field_error(&uid, err, "is no uid");
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct dra_state_device, member)
static const struct json_table_row device_rows[] = {
        { "request",   JSON_TABLE_CHARS, AT(request), .required = true },
        { "name",      JSON_TABLE_CHARS, AT(name), .required = true },
        { "id",        JSON_TABLE_CHARS, AT(id), .required = true },
        { "admin",     JSON_TABLE_BOOL,  AT(admin), .omit = true },
        { "share",     JSON_TABLE_CHARS, AT(share), .omit = true },
        { "memoryBytes", JSON_TABLE_UINT, AT(memory_bytes), .omit = true },
        { "shares",    JSON_TABLE_UINT,  AT(shares), .omit = true },
        { .name = NULL },
};
static const struct json_table device_table = { .rows = device_rows, .size_bytes = sizeof(struct dra_state_device) };
#undef AT
#define AT(member) JSON_TABLE_AT(struct dra_state_claim, member)
static const struct json_table_row claim_rows[] = {
        { "uid",       JSON_TABLE_CHARS, AT(uid), .required = true },
        { "namespace", JSON_TABLE_CHARS, AT(namespace_), .required = true },
        { "name",      JSON_TABLE_CHARS, AT(name), .required = true },
        { "pod",       JSON_TABLE_CHARS, AT(pod), .omit = true },
        { "boot",      JSON_TABLE_CHARS, AT(boot), .omit = true },
        { "devices",   JSON_TABLE_LIST,  AT(devices), .table = &device_table,
          .count = offsetof(struct dra_state_claim, device_count), .max = DRA_STATE_DEVICES_MAX },
        { .name = NULL },
};
static const struct json_table claim_table = { .rows = claim_rows, .size_bytes = sizeof(struct dra_state_claim),
                                               .check = check_claim };
#undef AT
#define AT(member) JSON_TABLE_AT(struct grants_entry, member)
static const struct json_table_row grant_rows[] = {
        { "id",        JSON_TABLE_CHARS, AT(id), .required = true },
        { "givenUsec", JSON_TABLE_UINT,  AT(given_usec), .required = true },
        { .name = NULL },
};
static const struct json_table grant_table = { .rows = grant_rows, .size_bytes = sizeof(struct grants_entry) };
#undef AT
#define AT(member) JSON_TABLE_AT(struct dra_state, member)
static const struct json_table_row state_rows[] = {
        { "version",   JSON_TABLE_UINT,  AT(version), .min = 1, .max = STATE_VERSION, .required = true },
        { "sequence",  JSON_TABLE_UINT,  AT(sequence), .omit = true },
        { "claims",    JSON_TABLE_LIST,  AT(claims), .table = &claim_table,
          .count = offsetof(struct dra_state, count), .max = DRA_STATE_CLAIMS_MAX },
        { "grants",    JSON_TABLE_LIST,  AT(grants.entries), .table = &grant_table,
          .count = offsetof(struct dra_state, grants.count), .max = GRANTS_MAX, .omit = true },
        { .name = NULL },
};
#undef AT
#define AT(member) JSON_TABLE_AT(struct dra_state_change, member)
static const struct json_table_row uid_row = { "", JSON_TABLE_CHARS, .size_bytes = DRA_STATE_UID_BYTES };
static const struct json_table_row change_rows[] = {
        { "drop",      JSON_TABLE_LIST,  AT(dropped), .element = &uid_row,
          .count = offsetof(struct dra_state_change, dropped_count), .max = DRA_STATE_CLAIMS_MAX, .omit = true },
        { "add",       JSON_TABLE_LIST,  AT(added), .table = &claim_table,
          .count = offsetof(struct dra_state_change, added_count), .max = DRA_STATE_CLAIMS_MAX, .omit = true },
        { "grants",    JSON_TABLE_LIST,  AT(grants.entries), .table = &grant_table,
          .count = offsetof(struct dra_state_change, grants.count), .max = GRANTS_MAX, .omit = true },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table change_table = { .rows = change_rows,
                                                .size_bytes = sizeof(struct dra_state_change) };
static const struct json_table state_table = { .rows = state_rows, .size_bytes = sizeof(struct dra_state) };

void dra_state_claim_free(struct dra_state_claim *claim)
{
        free(claim->devices);
        claim->devices = NULL;
        claim->device_count = 0;
}

void dra_state_free(struct dra_state *state)
{
        if (state == NULL)
                return;
        for (size_t i = 0; i < state->count; i++)
                dra_state_claim_free(&state->claims[i]);
        free(state->claims);
        grants_free(&state->grants);
        *state = (struct dra_state){ .count = 0 };
}

static void *copy_of(const void *list, size_t count, size_t size_bytes)
{
        void *copy = calloc(count + 1, size_bytes);

        if (copy != NULL && count > 0)
                memcpy(copy, list, count * size_bytes);
        return copy;
}

int dra_state_copy(const struct dra_state *state, struct dra_state *ret)
{
        struct dra_state copy = { .version = state->version, .sequence = state->sequence };
        bool whole;

        *ret = (struct dra_state){ .count = 0 };
        copy.claims = copy_of(state->claims, state->count, sizeof(*copy.claims));
        copy.grants.entries =
                copy_of(state->grants.entries, state->grants.count, sizeof(*copy.grants.entries));
        whole = copy.claims != NULL && copy.grants.entries != NULL;
        if (whole)
                copy.grants.count = copy.grants.capacity = state->grants.count;
        for (size_t i = 0; whole && i < state->count; i++) {
                const struct dra_state_claim *claim = &state->claims[i];

                copy.claims[i].devices =
                        copy_of(claim->devices, claim->device_count, sizeof(*claim->devices));
                whole = copy.claims[i].devices != NULL;
                copy.count = i + 1;
        }
        if (!whole)
                dra_state_free(&copy);
        *ret = copy;
        return whole ? 0 : -ENOMEM;
}

/* What is left of a device. */
struct left {
        uint64_t memory_bytes, shares;
        bool memory_known;
};

/* Return: false where it is more than is left; nothing is taken then. */
static bool take_share(struct left *left, const struct dra_state_device *share)
{
        uint64_t shares = share->shares > 0 ? share->shares : 1;

        if (shares > left->shares || (left->memory_known && share->memory_bytes > left->memory_bytes))
                return false;
        left->shares -= shares;
        left->memory_bytes -= left->memory_known ? share->memory_bytes : 0;
        return true;
}

/* Is somebody's `other` in the way of `wanted`? A share that there is place for is taken out of *left; where
 * that is NULL nobody knows how much there is, and shares are in nobody's way. */
static bool is_in_the_way(const struct dra_state_device *other, const struct dra_state_device *wanted,
                          struct left *left)
{
        if (other->admin || !device_ids_overlap(other->id, wanted->id))
                return false;
        if (other->share[0] == '\0' || wanted->share[0] == '\0')
                return true;
        return left != NULL && !take_share(left, other);
}

/* What the state has of the claim itself, as of an earlier boot, is in nobody's way: it goes as the claim
 * comes.
 */
static const struct dra_state_claim *other_holder(const struct dra_state *state,
                                                  const struct dra_state_claim *claim, size_t index,
                                                  struct left *left)
{
        for (size_t i = 0; i < state->count; i++) {
                const struct dra_state_claim *other = &state->claims[i];

                if (other == claim || strcmp(other->uid, claim->uid) == 0)
                        continue;
                for (size_t j = 0; j < other->device_count; j++)
                        if (is_in_the_way(&other->devices[j], &claim->devices[index], left))
                                return other;
        }
        return NULL;
}

static bool is_twice(const struct dra_state *state, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (strcmp(state->claims[i].uid, state->claims[index].uid) == 0)
                        return true;
        return false;
}

int dra_state_check(const struct dra_state *state, struct err *err)
{
        for (size_t i = 0; i < state->count; i++) {
                if (is_twice(state, i))
                        return err_set(err, -EBADMSG, "claim %s is there twice", state->claims[i].uid);
                for (size_t j = 0; j < state->claims[i].device_count; j++) {
                        const struct dra_state_device *device = &state->claims[i].devices[j];
                        const struct dra_state_claim *holder =
                                other_holder(state, &state->claims[i], j, NULL);

                        if (!device->admin && holder != NULL)
                                return err_set(err, -EBADMSG, "two claims hold device %s", device->id);
                }
        }
        return 0;
}

int dra_state_decode(const char *bytes, size_t size_bytes, struct dra_state *ret, struct err *err)
{
        json_t *object = json_read(bytes, size_bytes, JSON_REJECT_DUPLICATES, err);
        struct dra_state state = { .count = 0 };
        int r;

        *ret = state;
        if (object == NULL)
                return -EBADMSG;
        r = json_table_decode(&state_table, object, &state, err);
        json_decref(object);
        if (r < 0)
                return r; /* what was decoded is gone */
        state.grants.capacity = state.grants.count;
        r = dra_state_check(&state, err);
        if (r < 0)
                dra_state_free(&state);
        *ret = state;
        return r;
}

char *dra_state_encode(const struct dra_state *state)
{
        struct dra_state told = *state;
        json_t *object;
        char *text;

        told.version = STATE_VERSION;
        object = json_table_encode(&state_table, &told);
        text = object != NULL ? json_dumps(object, JSON_INDENT(1)) : NULL;
        json_decref(object);
        return text;
}

/* A claim that is added again is another one now. */
static int take(struct dra_state *state, struct dra_state_change *change, struct err *err)
{
        int r = 0;

        for (size_t i = 0; i < change->dropped_count; i++)
                dra_state_remove(state, change->dropped[i]);
        for (size_t i = 0; r == 0 && i < change->added_count; i++) {
                dra_state_remove(state, change->added[i].uid);
                r = dra_state_add(state, &change->added[i]);
        }
        if (r == 0 && change->grants.count > 0) {
                grants_free(&state->grants);
                state->grants = change->grants;
                state->grants.capacity = change->grants.count;
                change->grants = (struct grants){ .count = 0 };
        }
        return r == 0 ? 0 : err_set(err, r, "no room for another claim");
}

int dra_state_apply(struct dra_state *state, const char *line, size_t size_bytes, struct err *err)
{
        json_t *object = json_read(line, size_bytes, JSON_REJECT_DUPLICATES, err);
        struct dra_state_change change = { .dropped_count = 0 };
        int r;

        if (object == NULL)
                return -EBADMSG;
        r = json_table_decode(&change_table, object, &change, err);
        json_decref(object);
        if (r < 0)
                return r; /* what was decoded is gone */
        r = take(state, &change, err);
        json_table_free(&change_table, &change);
        return r;
}

char *dra_state_encode_change(const struct dra_state_change *change)
{
        json_t *object = json_table_encode(&change_table, change);
        char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

        json_decref(object);
        return text;
}

const struct dra_state_claim *dra_state_find(const struct dra_state *state, const char *uid)
{
        for (size_t i = 0; i < state->count; i++)
                if (strcmp(state->claims[i].uid, uid) == 0)
                        return &state->claims[i];
        return NULL;
}

bool dra_state_is_earlier(const struct dra_state_claim *claim, const char *boot)
{
        return claim->boot[0] != '\0' && boot[0] != '\0' && strcmp(claim->boot, boot) != 0;
}

int dra_state_add(struct dra_state *state, struct dra_state_claim *claim)
{
        struct dra_state_claim *claims;

        if (state->count >= DRA_STATE_CLAIMS_MAX)
                return -E2BIG;
        claims = realloc(state->claims, (state->count + 1) * sizeof(*claims));
        if (claims == NULL)
                return -ENOMEM;
        state->claims = claims;
        claims[state->count++] = *claim;
        *claim = (struct dra_state_claim){ .device_count = 0 };
        return 0;
}

void dra_state_remove(struct dra_state *state, const char *uid)
{
        for (size_t i = 0; i < state->count; i++) {
                if (strcmp(state->claims[i].uid, uid) != 0)
                        continue;
                dra_state_claim_free(&state->claims[i]);
                state->claims[i] = state->claims[--state->count];
                return;
        }
}

bool dra_state_has(const struct dra_state_claim *claim, const char *id)
{
        for (size_t i = 0; i < claim->device_count; i++)
                if (!claim->devices[i].admin && device_ids_overlap(claim->devices[i].id, id))
                        return true;
        return false;
}

const struct dra_state_claim *dra_state_holder(const struct dra_state *state, const char *id)
{
        for (size_t i = 0; i < state->count; i++)
                if (dra_state_has(&state->claims[i], id))
                        return &state->claims[i];
        return NULL;
}

const struct dra_state_claim *dra_state_rival(const struct dra_state *state,
                                              const struct dra_state_claim *claim, size_t index,
                                              const struct dra_share_room *room)
{
        const struct dra_state_device *wanted = &claim->devices[index];
        struct left all = { .shares = 0 }, *left = room != NULL ? &all : NULL;

        if (room != NULL)
                all = (struct left){ .memory_bytes = room->memory_bytes,
                                     .shares = room->shares,
                                     .memory_known = room->memory_bytes != 0 };
        if (wanted->share[0] != '\0' && left != NULL && !take_share(left, wanted))
                return claim;
        for (size_t j = 0; j < index; j++)
                if (is_in_the_way(&claim->devices[j], wanted, left))
                        return claim;
        return other_holder(state, claim, index, left);
}
