/* Slices: the devices of a node as the ResourceSlices of one pool. */
#include "plugin/dra/slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/dra_name.h"
#include "agent/inventory/prefer_map.h"
#include "base/cleanup.h"
#include "plugin/dra/slices_device.h"

/* One device on its way into a slice. */
struct offer {
        const struct inventory *inventory;
        const struct device_group *group;
        size_t index; /* in the inventory */
        size_t free;  /* devices of its group that are usable and held by nobody */
        bool whole;   /* all of them are */
};

/* What the slices are made of. */
struct offers {
        struct offer *items;
        size_t count;
        const struct bundle **whole; /* that are offered */
        size_t whole_count;
        size_t *sets; /* the first devices of counter sets */
        size_t set_count;
        struct dra_name *names;
        struct slices_fact *facts;
        struct bundles bundles;
};

static void offers_free(struct offers *offers)
{
        free(offers->items);
        free(offers->whole);
        free(offers->sets);
        free(offers->names);
        free(offers->facts);
        bundles_free(&offers->bundles);
}

static void count_group(const struct inventory *inventory, const struct slices_fact *facts,
                        struct offer *offer)
{
        size_t total = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].group, offer->group->name) == 0) {
                        total++;
                        offer->free += inventory->devices[i].usable && !facts[i].held;
                }
        offer->whole = offer->free == total;
}

/* Broken groups first, of these the one with the fewest left; then as the node counts its devices. */
static int compare(const void *a, const void *b)
{
        const struct offer *x = a, *y = b;

        if (x->whole != y->whole)
                return x->whole ? 1 : -1;
        if (!x->whole && x->free != y->free)
                return x->free < y->free ? -1 : 1;
        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        return prefer_map_order(&x->index, &y->index, (void *) x->inventory);
}

static int reserve(const struct inventory *inventory, struct offers *ret)
{
        size_t count = inventory->device_count + 1;

        ret->items = calloc(count, sizeof(*ret->items));
        ret->whole = calloc(count, sizeof(*ret->whole));
        ret->sets = calloc(count, sizeof(*ret->sets));
        ret->names = calloc(count, sizeof(*ret->names));
        ret->facts = calloc(count, sizeof(*ret->facts));
        return ret->items == NULL || ret->whole == NULL || ret->sets == NULL || ret->names == NULL ||
                               ret->facts == NULL
                       ? -ENOMEM
                       : 0;
}

static void collect_devices(const struct inventory *inventory, const struct slices_options *options,
                            struct offers *ret)
{
        for (size_t i = 0; i < inventory->device_count; i++) {
                struct offer offer = { .inventory = inventory, .index = i };

                if (!bundles_offers(inventory, i) || ret->names[i].label[0] == '\0' || ret->facts[i].hidden ||
                    (!inventory->devices[i].usable && (options->features & SLICES_TAINTS) == 0))
                        continue;
                offer.group = inventory_find_group(inventory, inventory->devices[i].group);
                count_group(inventory, ret->facts, &offer);
                ret->items[ret->count++] = offer;
        }
        if (ret->count > 0)
                qsort(ret->items, ret->count, sizeof(*ret->items), compare);
}

static bool is_hidden(const struct bundle *bundle, const struct slices_fact *facts)
{
        for (size_t i = 0; i < bundle->device_count; i++)
                if (facts[bundle->devices[i]].hidden)
                        return true;
        return false;
}

static void collect_bundles(const struct inventory *inventory, const struct slices_options *options,
                            struct offers *ret)
{
        for (size_t i = 0; i < ret->bundles.count; i++) {
                const struct bundle *bundle = &ret->bundles.items[i];

                if (options->bundles && !is_hidden(bundle, ret->facts) &&
                    ((options->features & SLICES_TAINTS) != 0 || bundles_sick(bundle, inventory) == NULL))
                        ret->whole[ret->whole_count++] = bundle;
        }
}

static int collect(const struct inventory *inventory, const struct slices_options *options,
                   struct offers *ret)
{
        int r = reserve(inventory, ret);

        if (r < 0)
                return r;
        if (options->facts != NULL)
                memcpy(ret->facts, options->facts, inventory->device_count * sizeof(*ret->facts));
        dra_name_all(inventory, ret->names);
        r = bundles_find(inventory, ret->names, &ret->bundles);
        if (r < 0)
                return r;
        collect_devices(inventory, options, ret);
        if ((options->features & SLICES_COUNTERS) == 0)
                return 0;
        collect_bundles(inventory, options, ret);
        for (size_t i = 0; i < inventory->device_count; i++)
                if (ret->bundles.sets[i] == i)
                        ret->sets[ret->set_count++] = i;
        return 0;
}

/* The parts of a pool: slices of devices, and then those of counters: the API has no slice with both. */
struct pool {
        const struct slices_options *options;
        const struct offers *offers;
        struct slices_device_of of;
        size_t most, device_slices, counter_slices;
};

static int add(json_t *list, json_t *item)
{
        return item == NULL ? -1 : json_array_append_new(list, item);
}

static json_t *devices_of(const struct pool *pool, size_t at)
{
        const struct offers *offers = pool->offers;
        json_t *list = json_array();
        int r = 0;

        for (size_t i = at * pool->most;
             r == 0 && i < offers->count + offers->whole_count && i < (at + 1) * pool->most; i++)
                r = add(list, i < offers->count
                                      ? slices_device_json(&pool->of, offers->items[i].index)
                                      : slices_device_bundle(&pool->of, offers->whole[i - offers->count]));
        if (r == 0)
                return list;
        json_decref(list);
        return NULL;
}

static json_t *counters_of(const struct pool *pool, size_t at)
{
        json_t *list = json_array();
        int r = 0;

        for (size_t i = at * SLICES_COUNTER_SETS_MAX;
             r == 0 && i < pool->offers->set_count && i < (at + 1) * SLICES_COUNTER_SETS_MAX; i++)
                r = add(list, slices_device_counters(&pool->of, pool->offers->sets[i]));
        if (r == 0)
                return list;
        json_decref(list);
        return NULL;
}

static json_t *slice_of(const struct pool *pool, size_t at)
{
        bool counters = at >= pool->device_slices;
        size_t count = pool->device_slices + pool->counter_slices;
        const char *node = pool->options->node;
        char name[OBJECT_NAME_DNS_BYTES];
        json_t *list;

        if (counters)
                dra_name_counters(node, at - pool->device_slices, name);
        else
                dra_name_slice(node, at, name);
        list = counters ? counters_of(pool, at - pool->device_slices) : devices_of(pool, at);
        return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:{s:s, s:I, s:I}, s:o}}", "apiVersion",
                         SLICES_API_VERSION, "kind", SLICES_KIND, "metadata", "name", name, "spec", "driver",
                         DRA_NAME_DRIVER, "nodeName", node, "pool", "name", node, "generation",
                         (json_int_t) pool->options->generation, "resourceSliceCount", (json_int_t) count,
                         counters ? "sharedCounters" : "devices", list);
}

static size_t parts_of(size_t count, size_t most)
{
        return (count + most - 1) / most;
}

static int build(const struct inventory *inventory, const struct slices_options *options,
                 const struct offers *offers, json_t *slices)
{
        bool advanced = (options->features & SLICES_TAINTS) != 0 || offers->set_count > 0;
        size_t devices = offers->count + offers->whole_count;
        struct pool pool = { .options = options,
                             .offers = offers,
                             .of = { .inventory = inventory,
                                     .names = offers->names,
                                     .bundles = &offers->bundles,
                                     .facts = offers->facts,
                                     .features = options->features,
                                     .config = options->config },
                             .most = advanced ? SLICES_TAINTED_DEVICES_MAX : SLICES_DEVICES_MAX,
                             .counter_slices = parts_of(offers->set_count, SLICES_COUNTER_SETS_MAX) };
        int r = 0;

        pool.device_slices = devices == 0 ? 1 : parts_of(devices, pool.most);
        for (size_t i = 0; r == 0 && i < pool.device_slices + pool.counter_slices; i++)
                r = add(slices, slice_of(&pool, i)) < 0 ? -ENOMEM : 0;
        return r;
}

bool slices_has_resource(const struct device_group *group)
{
        return strlen(group->resource) < SLICES_TEXT_BYTES;
}

int slices_build(const struct inventory *inventory, const struct slices_options *options, json_t **ret,
                 struct err *err)
{
        CLEANUP(offers_free) struct offers offers = { 0 };
        json_t *slices = json_array();
        int r = collect(inventory, options, &offers);

        if (r == 0)
                r = build(inventory, options, &offers, slices);
        if (r < 0) {
                json_decref(slices);
                return err_set(err, r, "no memory for the slices of %zu devices", inventory->device_count);
        }
        *ret = slices;
        return 0;
}
