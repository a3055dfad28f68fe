/* Slices: the devices of a node as the ResourceSlices of one pool. */
#include "plugin/dra/slices.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/prefer_map.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/dra/dra_name.h"

#define STANDARD        "resource.kubernetes.io/"
#define TFLOPS_MAX      1e15 /* of which a double holds every whole number */
#define ATTRIBUTE_BYTES 65

/* One device on its way into a slice. */
struct offer {
        const struct inventory *inventory;
        const struct device_group *group;
        size_t index; /* in the inventory */
        size_t free;  /* devices of its group that are usable and held by nobody */
        bool whole;   /* all of them are */
};

struct offers {
        struct offer *items;
        size_t count;
        struct dra_name *names;
};

static void offers_free(struct offers *offers)
{
        free(offers->items);
        free(offers->names);
}

static const struct slices_fact *fact_of(const struct slices_options *options, size_t index)
{
        static const struct slices_fact nothing = { .held = false };

        return options->facts == NULL ? &nothing : &options->facts[index];
}

static bool is_free(const struct inventory *inventory, const struct slices_options *options, size_t index)
{
        return inventory->devices[index].usable && !fact_of(options, index)->held;
}

static void count_group(const struct inventory *inventory, const struct slices_options *options,
                        struct offer *offer)
{
        size_t total = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].group, offer->group->name) == 0) {
                        total++;
                        offer->free += is_free(inventory, options, i);
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

static const struct device_group *group_of(const struct inventory *inventory, size_t index)
{
        const char *name = inventory->devices[index].group;
        const struct device_group *group = name[0] == '\0' ? NULL : inventory_find_group(inventory, name);

        return group != NULL && group->resource[0] != '\0' ? group : NULL;
}

bool slices_offers(const struct inventory *inventory, size_t index)
{
        return group_of(inventory, index) != NULL;
}

static int collect(const struct inventory *inventory, const struct slices_options *options,
                   struct offers *ret)
{
        ret->items = calloc(inventory->device_count + 1, sizeof(*ret->items));
        ret->names = calloc(inventory->device_count + 1, sizeof(*ret->names));
        if (ret->items == NULL || ret->names == NULL)
                return -ENOMEM;
        dra_name_all(inventory, ret->names);
        for (size_t i = 0; i < inventory->device_count; i++) {
                struct offer offer = { .inventory = inventory, .index = i };

                offer.group = group_of(inventory, i);
                if (offer.group == NULL || ret->names[i].label[0] == '\0' || fact_of(options, i)->hidden ||
                    (!inventory->devices[i].usable && !options->taints))
                        continue;
                count_group(inventory, options, &offer);
                ret->items[ret->count++] = offer;
        }
        if (ret->count > 0)
                qsort(ret->items, ret->count, sizeof(*ret->items), compare);
        return 0;
}

static json_t *text_value(const char *text)
{
        char field[ATTRIBUTE_BYTES];

        (void) text_copy(field, sizeof(field), text);
        text_harmless(field, 0);
        return json_pack("{s:s}", "string", field);
}

static void set_text(json_t *attributes, const char *name, const char *text)
{
        (void) json_object_set_new(attributes, name, text_value(text));
}

static void set_int(json_t *attributes, const char *name, json_int_t value)
{
        (void) json_object_set_new(attributes, name, json_pack("{s:I}", "int", value));
}

static json_int_t whole_tflops(double tflops)
{
        return tflops > 0 && tflops < TFLOPS_MAX ? (json_int_t) llround(tflops) : -1;
}

#define ATTRIBUTE_COUNT 15 /* a value that was not made is missing */

static json_t *attributes_of(const struct offer *offer, const struct slices_fact *fact)
{
        const struct device_group *group = offer->group;
        const struct device *device = &offer->inventory->devices[offer->index];
        json_t *all = json_object();

        set_text(all, "id", device->id);
        set_text(all, "vendor", group->vendor);
        set_text(all, "runtime", group->runtime);
        set_text(all, "model", device->model[0] != '\0' ? device->model : group->model);
        set_text(all, "group", group->name);
        set_text(all, "fabric", group->fabric);
        set_text(all, "nodeClass", node_class_name(offer->inventory->node_class));
        set_text(all, "pool", offer->inventory->pool);
        set_int(all, "numaNode", device->numa);
        set_int(all, "tflopsBf16", whole_tflops(group->tflops_bf16));
        set_int(all, "tflopsFp16", whole_tflops(group->tflops_fp16));
        (void) json_object_set_new(
                all, "driverVersion",
                json_pack("{s:s}", "version",
                          fact->driver_version[0] != '\0' ? fact->driver_version : DRA_VERSION_UNKNOWN));
        set_text(all, STANDARD "pciBusID", device->pci);
        set_text(all, STANDARD "pcieRoot", fact->pcie_root);
        set_int(all, STANDARD "numaNode", device->numa);
        if (json_object_size(all) == ATTRIBUTE_COUNT)
                return all;
        json_decref(all);
        return NULL;
}

static json_t *taints_of(const struct device *device)
{
        const char *reason = device->reason[0] != '\0' ? device->reason : device_health_name(device->health);

        return json_pack("[{s:s, s:s, s:s}]", "key", SLICES_HEALTH_TAINT, "value", reason, "effect",
                         "NoSchedule");
}

static json_t *device_of(const struct offer *offer, const struct dra_name *name,
                         const struct slices_options *options)
{
        const struct device *device = &offer->inventory->devices[offer->index];
        uint64_t memory = device->memory_bytes > 0 ? device->memory_bytes : offer->group->memory_bytes;
        json_t *object = json_pack("{s:s, s:o, s:{s:{s:o}}}", "name", name->label, "attributes",
                                   attributes_of(offer, fact_of(options, offer->index)), "capacity", "memory",
                                   "value", json_sprintf("%" PRIu64, memory));

        if (object == NULL || device->usable || json_object_set_new(object, "taints", taints_of(device)) == 0)
                return object;
        json_decref(object);
        return NULL;
}

static json_t *slice_of(const struct offers *offers, size_t at, size_t most, size_t count,
                        const struct slices_options *options)
{
        json_t *devices = json_array();
        char name[OBJECT_NAME_DNS_BYTES];

        dra_name_slice(options->node, at, name);
        for (size_t i = at * most; i < offers->count && i < (at + 1) * most; i++)
                if (json_array_append_new(devices,
                                          device_of(&offers->items[i], &offers->names[offers->items[i].index],
                                                    options)) < 0) {
                        json_decref(devices);
                        return NULL;
                }
        return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:{s:s, s:I, s:I}, s:o}}", "apiVersion",
                         SLICES_API_VERSION, "kind", SLICES_KIND, "metadata", "name", name, "spec", "driver",
                         DRA_NAME_DRIVER, "nodeName", options->node, "pool", "name", options->node,
                         "generation", (json_int_t) options->generation, "resourceSliceCount",
                         (json_int_t) count, "devices", devices);
}

int slices_build(const struct inventory *inventory, const struct slices_options *options, json_t **ret,
                 struct err *err)
{
        CLEANUP(offers_free) struct offers offers = { 0 };
        size_t most = options->taints ? SLICES_TAINTED_DEVICES_MAX : SLICES_DEVICES_MAX, count;
        json_t *slices = json_array();
        int r = collect(inventory, options, &offers);

        count = offers.count == 0 ? 1 : (offers.count + most - 1) / most;
        for (size_t i = 0; r == 0 && i < count; i++)
                if (json_array_append_new(slices, slice_of(&offers, i, most, count, options)) < 0)
                        r = -ENOMEM;
        if (r < 0) {
                json_decref(slices);
                return err_set(err, r, "no memory for the slices of %zu devices", inventory->device_count);
        }
        *ret = slices;
        return 0;
}
