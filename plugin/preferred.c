/* GetPreferredAllocation: a hint that must never be an error, because an error fails the pod and can leak its
 * devices. What cannot be understood is answered with what can be. */
#include "plugin/preferred.h"

#include <stdlib.h>
#include <string.h>

#include "agent/inventory/prefer.h"
#include "base/cleanup.h"
#include "plugin/device_plugin.pb-c.h"
#include "plugin/plugin_internal.h"
#include "plugin/resource.h"

/* An id that may be taken. */
struct choice {
        char *id;
        ssize_t device; /* of the resource; -1 = not ours or doubled */
        bool is_must, used;
};

/* What is to be had: ids in the kubelet's order, and how many of each device. */
struct pool {
        const struct resource *resource;
        uint16_t *available, *must, *taken; /* per device of the resource */
        struct choice *choices;
        size_t count;
};

static const struct device *member(const struct resource *resource, size_t position)
{
        return &resource->plugin->inventory.devices[resource->members[position]];
}

/* The kubelet's lists are sets, but nobody promises it: an id counts once. */
static int compare_ids(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static bool listed(char **sorted, size_t count, char *id)
{
        return count > 0 && bsearch(&id, sorted, count, sizeof(*sorted), compare_ids) != NULL;
}

static void add(struct pool *pool, char *id, bool is_must)
{
        pool->choices[pool->count++] =
                (struct choice){ .id = id, .device = resource_find(pool->resource, id), .is_must = is_must };
}

static bool fill_pool(struct pool *pool, struct pb_arena *arena,
                      const DevicePlugin__ContainerPreferredRequest *request)
{
        size_t members = pool->resource->member_count + 1,
               most = request->n_available + request->n_must_include + 1;

        pool->available = pb_arena_take(arena, 3 * members * sizeof(*pool->available));
        pool->choices = pb_arena_take(arena, most * sizeof(*pool->choices));
        if (pool->available == NULL || pool->choices == NULL)
                return false;
        pool->must = pool->available + members;
        pool->taken = pool->must + members;
        if (request->n_must_include > 0)
                qsort(request->must_include, request->n_must_include, sizeof(char *), compare_ids);
        if (request->n_available > 0)
                qsort(request->available, request->n_available, sizeof(char *), compare_ids);
        for (size_t i = 0; i < request->n_must_include; i++)
                if (i == 0 || strcmp(request->must_include[i], request->must_include[i - 1]) != 0)
                        add(pool, request->must_include[i], true);
        for (size_t i = 0; i < request->n_available; i++)
                if ((i == 0 || strcmp(request->available[i], request->available[i - 1]) != 0) &&
                    !listed(request->must_include, request->n_must_include, request->available[i]))
                        add(pool, request->available[i], false);
        return true;
}

/* Devices that the snapshot calls unusable are left out as long as there are others. */
static void count_pool(struct pool *pool)
{
        for (const struct choice *c = pool->choices; c < pool->choices + pool->count; c++) {
                if (c->device < 0 || (!c->is_must && !member(pool->resource, (size_t) c->device)->usable))
                        continue;
                pool->available[c->device]++;
                if (c->is_must)
                        pool->must[c->device]++;
        }
}

/* Was its device chosen, and not yet taken as often as that? */
static bool take_device(struct pool *pool, const struct choice *c)
{
        if (c->device < 0 || pool->taken[c->device] == 0)
                return false;
        pool->taken[c->device]--;
        return true;
}

static size_t take_ids(struct pool *pool, size_t want, char **out)
{
        struct choice *end = pool->choices + pool->count;
        size_t n = 0;

        for (struct choice *c = pool->choices; c < end; c++) /* must_include, ours or not */
                if (c->is_must) {
                        (void) take_device(pool, c);
                        c->used = true;
                        out[n++] = c->id;
                }
        for (struct choice *c = pool->choices; c < end && n < want; c++)
                if (!c->used && take_device(pool, c)) {
                        c->used = true;
                        out[n++] = c->id;
                }
        for (struct choice *c = pool->choices; c < end && n < want; c++)
                if (!c->used) /* anything valid is better than too few */
                        out[n++] = c->id;
        return n;
}

static bool choose(const struct resource *resource, struct pb_arena *arena,
                   const DevicePlugin__ContainerPreferredRequest *request,
                   DevicePlugin__ContainerPreferredResponse *response)
{
        struct pool pool = { .resource = resource };
        size_t want = request->size > 0 ? (size_t) request->size : 0, strangers = 0;
        struct prefer_request wanted;
        struct prefer_answer answer = { 0 };

        if (!fill_pool(&pool, arena, request))
                return false;
        count_pool(&pool);
        for (size_t i = 0; i < pool.count; i++)
                strangers += pool.choices[i].is_must && pool.choices[i].device < 0;
        wanted = (struct prefer_request){ .available = pool.available,
                                          .must = pool.must,
                                          .size = want > strangers ? want - strangers : 0 };
        answer.taken = pool.taken;
        (void) prefer_choose(&resource->prefer, &wanted, &answer);
        response->ids = pb_arena_take(arena, (pool.count + 1) * sizeof(char *));
        if (response->ids == NULL)
                return false;
        response->n_ids = take_ids(&pool, want, response->ids);
        return true;
}

void preferred_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        struct resource *resource = userdata;
        DevicePlugin__PreferredResponse response = DEVICE_PLUGIN__PREFERRED_RESPONSE__INIT;
        DevicePlugin__PreferredRequest *request;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct pb_arena arena;
        size_t size = 0;

        pb_arena_init(&arena, RESOURCE_ARENA_BYTES);
        request = pb_unpack(&arena, &device_plugin__preferred_request__descriptor, message, size_bytes);
        if (request != NULL)
                response.containers =
                        pb_arena_take(&arena, (request->n_containers + 1) * sizeof(*response.containers));
        for (size_t i = 0; response.containers != NULL && i < request->n_containers; i++) {
                response.containers[i] = pb_arena_take(&arena, sizeof(*response.containers[i]));
                if (response.containers[i] == NULL)
                        break;
                device_plugin__container_preferred_response__init(response.containers[i]);
                response.n_containers = i + 1;
                if (!choose(resource, &arena, request->containers[i], response.containers[i]))
                        break;
        }
        bytes = pb_pack(&response, &size);
        grpc_call_reply(call, bytes, bytes == NULL ? 0 : size);
        pb_arena_free(&arena);
}
