/* Claim answer: the devices of a prepared claim, as the kubelet is told them. */
#include "plugin/dra/claim_answer.h"

#include <string.h>

#include "plugin/dra/claim_cdi.h"

/* Is it one result with the one before: devices of one bundle? */
static bool goes_on(const struct dra_state_claim *claim, size_t index)
{
        const struct dra_state_device *device = &claim->devices[index];

        return index > 0 && strcmp(device->name, device[-1].name) == 0 &&
               strcmp(device->request, device[-1].request) == 0 &&
               strcmp(device->share, device[-1].share) == 0;
}

static void add_device(const struct dra_state_claim *claim, size_t index, const char *pool,
                       struct pb_arena *arena, Dra__Prepared *prepared)
{
        Dra__Device *device = pb_arena_take(arena, sizeof(*device));
        char **lists = pb_arena_take(arena, 3 * sizeof(*lists)), name[CLAIM_CDI_NAME_BYTES];

        if (device == NULL || lists == NULL || goes_on(claim, index))
                return;
        dra__device__init(device);
        lists[0] = pb_arena_copy(arena, claim->devices[index].request);
        device->requests = lists;
        device->n_requests = 1;
        device->pool = (char *) pool;
        device->device = pb_arena_copy(arena, claim->devices[index].name);
        device->share_id = pb_arena_copy(arena, claim->devices[index].share);
        device->cdi_ids = lists + 1;
        claim_cdi_device_name(claim, index, name);
        device->cdi_ids[device->n_cdi_ids++] = pb_arena_copy(arena, name);
        if (claim_cdi_is_first(claim, index)) {
                claim_cdi_request_name(claim, index, name);
                device->cdi_ids[device->n_cdi_ids++] = pb_arena_copy(arena, name);
        }
        prepared->devices[prepared->n_devices++] = device;
}

void claim_answer_fill(const struct dra_state_claim *claim, const char *pool, struct pb_arena *arena,
                       Dra__Prepared *ret)
{
        ret->devices = pb_arena_take(arena, (claim->device_count + 1) * sizeof(*ret->devices));
        for (size_t i = 0; ret->devices != NULL && i < claim->device_count; i++)
                add_device(claim, i, pool, arena, ret);
}
