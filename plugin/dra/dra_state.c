/* DRA state: which claims this node has prepared, and with which devices. */
#include "plugin/dra/dra_state.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/json/json_table.h"

#define STATE_VERSION 1

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
        { "devices",   JSON_TABLE_LIST,  AT(devices), .table = &device_table,
          .count = offsetof(struct dra_state_claim, device_count), .max = DRA_STATE_RESULTS_MAX },
        { .name = NULL },
};
static const struct json_table claim_table = { .rows = claim_rows, .size_bytes = sizeof(struct dra_state_claim),
                                               .check = check_claim };
#undef AT
#define AT(member) JSON_TABLE_AT(struct dra_state, member)
static const struct json_table_row state_rows[] = {
        { "version",   JSON_TABLE_UINT,  AT(version), .min = STATE_VERSION, .max = STATE_VERSION, .required = true },
        { "claims",    JSON_TABLE_LIST,  AT(claims), .table = &claim_table,
          .count = offsetof(struct dra_state, count), .max = DRA_STATE_CLAIMS_MAX },
        { .name = NULL },
};
/* clang-format on */
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
        *state = (struct dra_state){ .count = 0 };
}

/* A device that two claims hold is what nobody ever wrote. */
static int check_holders(const struct dra_state *state, struct err *err)
{
        for (size_t i = 0; i < state->count; i++)
                for (size_t j = 0; j < state->claims[i].device_count; j++) {
                        const struct dra_state_device *device = &state->claims[i].devices[j];
                        const struct dra_state_claim *holder = dra_state_holder(state, device->id);

                        if (!device->admin && holder != &state->claims[i])
                                return err_set(err, -EBADMSG, "two claims hold device %s", device->id);
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
        r = check_holders(&state, err);
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

const struct dra_state_claim *dra_state_find(const struct dra_state *state, const char *uid)
{
        for (size_t i = 0; i < state->count; i++)
                if (strcmp(state->claims[i].uid, uid) == 0)
                        return &state->claims[i];
        return NULL;
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

const struct dra_state_claim *dra_state_holder(const struct dra_state *state, const char *id)
{
        for (size_t i = 0; i < state->count; i++)
                for (size_t j = 0; j < state->claims[i].device_count; j++)
                        if (!state->claims[i].devices[j].admin &&
                            strcmp(state->claims[i].devices[j].id, id) == 0)
                                return &state->claims[i];
        return NULL;
}
