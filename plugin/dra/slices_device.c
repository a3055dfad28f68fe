/* Slices device: one device of a ResourceSlice, and a counter set, as resource.k8s.io/v1 has them. */
#include "plugin/dra/slices_device.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/vendor/vendor_selectors.h"
#include "base/hash.h"
#include "base/text.h"

#define STANDARD           "resource.kubernetes.io/"
#define TYPE_CHIP          "chip"
#define TYPE_PARTITION     "partition"
#define TFLOPS_MAX         1e15                /* of which a double holds every whole number */
#define SHARE_MEMORY_BYTES (UINT64_C(1) << 20) /* what a share asks for at least */

/* What the attributes of a device follow from, of a bundle those of all its devices. */
struct described {
        const struct device *device; /* the first */
        const struct device_group *group;
        const struct slices_fact *fact;
        const char *type, *id, *pci, *pcie_root, *partition;
        size_t count; /* devices of the inventory */
        int numa;
        uint64_t memory_bytes;
};

static json_t *text_value(const char *text)
{
        char field[SLICES_TEXT_BYTES];

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

static void set_version(json_t *attributes, const char *name, const char *version)
{
        (void) json_object_set_new(
                attributes, name,
                json_pack("{s:s}", "version", version[0] != '\0' ? version : DRA_VERSION_UNKNOWN));
}

static json_int_t whole_tflops(double tflops, size_t count)
{
        double all = tflops * (double) count;

        return all > 0 && all < TFLOPS_MAX ? (json_int_t) llround(all) : -1;
}

/* A root that is not known is another one than any device's, or `matchAttribute` would take two devices of
 * which nothing is known as neighbours. Example: on a machine of NPUs without PCI, "unknown-8f3c..." each. */
static void set_root(json_t *attributes, const char *root, const char *id)
{
        char unknown[SLICES_TEXT_BYTES];

        (void) text_format(unknown, sizeof(unknown), "unknown-%016" PRIx64, hash_text(id, 0));
        set_text(attributes, STANDARD "pcieRoot", root[0] != '\0' ? root : unknown);
}

static const char *said(const struct described *what, const struct vendor *vendor,
                        enum vendor_selectors_says says)
{
        const struct vendor_selectors_generation *generation =
                vendor_selectors_generation_of(vendor, what->group->model);
        bool whole = strcmp(what->type, TYPE_CHIP) == 0, part = strcmp(what->type, TYPE_PARTITION) == 0;

        switch (says) {
        case VENDOR_SELECTORS_TYPE:
                return whole ? vendor->claimed[0][1] : part ? vendor->selectors->part : what->type;
        case VENDOR_SELECTORS_ID:
                return what->id;
        case VENDOR_SELECTORS_PRODUCT:
                return what->fact->product;
        case VENDOR_SELECTORS_PROFILE:
                return what->partition;
        case VENDOR_SELECTORS_ARCHITECTURE:
                return generation != NULL ? generation->architecture : "";
        case VENDOR_SELECTORS_CAPABILITY:
                return generation != NULL ? generation->capability : "";
        case VENDOR_SELECTORS_DRIVER_VERSION:
                return what->fact->driver_version;
        case VENDOR_SELECTORS_NOTHING:
                break;
        }
        return "";
}

/* What selectors for a vendor's own driver ask about; of other vendors' devices it is not known, and there
 * all the same: `device.attributes["gpu.example.com"].type` is an error where there is none. Return: how
 * many. */
static size_t set_selectors(json_t *attributes, const struct described *what, const struct vendor *vendor)
{
        bool own = strcmp(what->group->vendor, vendor->name) == 0;
        size_t count = 0;

        for (; count < VENDOR_SELECTORS_MAX; count++) {
                const struct vendor_selectors_attribute *attribute = &vendor->selectors->attributes[count];
                const char *text = own ? said(what, vendor, attribute->what) : "";
                char name[128];

                if (attribute->what == VENDOR_SELECTORS_NOTHING)
                        break;
                (void) text_format(name, sizeof(name), "%s/%s", vendor->claimed[0][0], attribute->name);
                if (attribute->what < VENDOR_SELECTORS_CAPABILITY)
                        set_text(attributes, name, text);
                else
                        set_version(attributes, name, text);
        }
        return count;
}

#define ATTRIBUTE_COUNT 19 /* a value that was not made is missing */
#define CAPACITY_COUNT  2  /* memory, shares */
_Static_assert(ATTRIBUTE_COUNT + CAPACITY_COUNT + PLUGIN_CONFIG_SELECTORS_ATTRIBUTES_MAX <= 32,
               "the API has so many attributes and capacities of a device");

static json_t *attributes_of(const struct slices_device_of *of, const struct described *what)
{
        const struct device_group *group = what->group;
        json_t *all = json_object();
        size_t count = ATTRIBUTE_COUNT;

        set_text(all, "id", what->id);
        set_text(all, "type", what->type);
        set_text(all, "vendor", group->vendor);
        set_text(all, "runtime", group->runtime);
        set_text(all, "resource", slices_has_resource(group) ? group->resource : "");
        set_text(all, "model", what->device->model[0] != '\0' ? what->device->model : group->model);
        set_text(all, "partition", what->partition);
        set_text(all, "group", group->name);
        set_text(all, "fabric", group->fabric);
        set_text(all, "nodeClass", node_class_name(of->inventory->node_class));
        set_text(all, "pool", of->inventory->pool);
        set_int(all, "devices", (json_int_t) what->count);
        set_int(all, "numaNode", what->numa);
        set_int(all, "tflopsBf16", whole_tflops(group->tflops_bf16, what->count));
        set_int(all, "tflopsFp16", whole_tflops(group->tflops_fp16, what->count));
        set_version(all, "driverVersion", what->fact->driver_version);
        set_text(all, STANDARD "pciBusID", what->pci);
        set_root(all, what->pcie_root, what->id);
        set_int(all, STANDARD "numaNode", what->numa);
        for (size_t i = 0; of->config != NULL && i < of->config->selector_count; i++)
                count += set_selectors(all, what, vendor_selectors_of(of->config->selectors[i]));
        if (json_object_size(all) == count)
                return all;
        json_decref(all);
        return NULL;
}

static json_t *number(uint64_t value)
{
        return json_sprintf("%" PRIu64, value);
}

static json_t *memory_of(uint64_t memory_bytes, unsigned shares)
{
        const struct dra_share_room room = { .memory_bytes = memory_bytes, .shares = shares };
        uint64_t part = dra_share_memory(&room),
                 least = part < SHARE_MEMORY_BYTES ? part : SHARE_MEMORY_BYTES;

        if (shares == 1 || memory_bytes == 0)
                return json_pack("{s:o}", "value", number(memory_bytes));
        return json_pack("{s:o, s:{s:o, s:{s:o, s:o}}}", "value", number(memory_bytes), "requestPolicy",
                         "default", number(part), "validRange", "min", number(least), "max",
                         number(memory_bytes));
}

static json_t *shares_of(unsigned shares)
{
        if (shares == 1)
                return json_pack("{s:s}", "value", "1");
        return json_pack("{s:o, s:{s:s, s:{s:s, s:o, s:s}}}", "value", number(shares), "requestPolicy",
                         "default", "1", "validRange", "min", "1", "max", number(shares), "step", "1");
}

const char *slices_device_taint(const struct device *device)
{
        return device->reason[0] != '\0' ? device->reason : device_health_name(device->health);
}

static json_t *taints_of(const struct device *device)
{
        return json_pack("[{s:s, s:s, s:s}]", "key", SLICES_HEALTH_TAINT, "value",
                         slices_device_taint(device), "effect", "NoSchedule");
}

static int set_or_fail(json_t *object, const char *name, json_t *value)
{
        return value == NULL ? -1 : json_object_set_new(object, name, value);
}

/* The memory under another driver's name, too, for selectors to compare: whoever asks for a part of it asks
 * by ours, so that of this one nothing is ever taken. Return: 0 or -1. */
static int set_selector_memory(json_t *capacities, const struct described *what, const char *driver, bool own,
                               unsigned shares)
{
        json_t *capacity = json_pack("{s:o}", "value", number(own ? what->memory_bytes : 0));
        char name[128];

        if (shares > 1 &&
            json_object_set_new(capacity, "requestPolicy",
                                json_pack("{s:s, s:[s]}", "default", "0", "validValues", "0")) < 0) {
                json_decref(capacity);
                return -1;
        }
        (void) text_format(name, sizeof(name), "%s/memory", driver);
        return set_or_fail(capacities, name, capacity);
}

static int set_selector_capacities(json_t *capacities, const struct slices_device_of *of,
                                   const struct described *what, unsigned shares)
{
        int r = 0;

        for (size_t i = 0; of->config != NULL && r == 0 && i < of->config->selector_count; i++) {
                const struct vendor *vendor = vendor_selectors_of(of->config->selectors[i]);

                if (vendor->selectors->memory)
                        r = set_selector_memory(capacities, what, vendor->claimed[0][0],
                                                strcmp(what->group->vendor, vendor->name) == 0, shares);
        }
        return r;
}

/* Devices of one set, of which each draws on its own counter. */
static json_t *draws_on(const struct slices_device_of *of, const size_t *devices, size_t count)
{
        json_t *counters = json_object();

        for (size_t i = 0; i < count; i++)
                (void) json_object_set_new(counters, of->names[devices[i]].label,
                                           json_pack("{s:s}", "value", "1"));
        return json_pack("[{s:s, s:o}]", "counterSet", of->names[of->bundles->sets[devices[0]]].label,
                         "counters", counters);
}

static json_t *make(const struct slices_device_of *of, const struct described *what, const char *name,
                    const size_t *devices, const struct device *sick)
{
        unsigned shares = (of->features & SLICES_SHARES) != 0 ? bundles_shares(what->group) : 1;
        json_t *object = json_pack("{s:s, s:o, s:{s:o, s:o}}", "name", name, "attributes",
                                   attributes_of(of, what), "capacity", "memory",
                                   memory_of(what->memory_bytes, shares), "shares", shares_of(shares));
        bool draws = (of->features & SLICES_COUNTERS) != 0 && of->bundles->sets[devices[0]] != BUNDLES_NO_SET;
        int r = object == NULL
                        ? -1
                        : set_selector_capacities(json_object_get(object, "capacity"), of, what, shares);

        if (r == 0 && shares > 1)
                r = set_or_fail(object, "allowMultipleAllocations", json_true());
        if (r == 0 && draws)
                r = set_or_fail(object, "consumesCounters", draws_on(of, devices, what->count));
        if (r == 0 && sick != NULL)
                r = set_or_fail(object, "taints", taints_of(sick));
        if (r == 0)
                return object;
        json_decref(object);
        return NULL;
}

json_t *slices_device_json(const struct slices_device_of *of, size_t index)
{
        const struct device *device = &of->inventory->devices[index];
        const struct device_group *group = inventory_find_group(of->inventory, device->group);
        const struct described what = { .device = device,
                                        .group = group,
                                        .fact = &of->facts[index],
                                        .type = device->partition[0] != '\0' ? TYPE_PARTITION : TYPE_CHIP,
                                        .id = device->id,
                                        .pci = device->pci,
                                        .pcie_root = of->facts[index].pcie_root,
                                        .partition = device->partition,
                                        .count = 1,
                                        .numa = device->numa,
                                        .memory_bytes = bundles_room(of->inventory, device).memory_bytes };

        return make(of, &what, of->names[index].label, &index, device->usable ? NULL : device);
}

json_t *slices_device_bundle(const struct slices_device_of *of, const struct bundle *bundle)
{
        bool is_group = bundle->kind == BUNDLE_GROUP;
        size_t first = bundle->devices[0];
        const struct device *device = &of->inventory->devices[first];
        const struct device_group *group = inventory_find_group(of->inventory, device->group);
        struct described what = { .device = device,
                                  .group = group,
                                  .fact = &of->facts[first],
                                  .type = is_group ? "group" : "partitioned",
                                  .id = is_group ? group->name : device->pci,
                                  .pci = is_group ? "" : device->pci,
                                  .pcie_root = is_group ? "" : of->facts[first].pcie_root,
                                  .partition = "",
                                  .count = bundle->device_count,
                                  .numa = device->numa };

        for (size_t i = 0; i < bundle->device_count; i++) {
                const struct device *other = &of->inventory->devices[bundle->devices[i]];

                what.numa = other->numa == what.numa ? what.numa : -1;
                what.memory_bytes += bundles_room(of->inventory, other).memory_bytes;
        }
        return make(of, &what, bundle->name.label, bundle->devices, bundles_sick(bundle, of->inventory));
}

json_t *slices_device_counters(const struct slices_device_of *of, size_t first)
{
        json_t *counters = json_object();

        for (size_t i = first; i < of->inventory->device_count; i++)
                if (of->bundles->sets[i] == first)
                        (void) json_object_set_new(counters, of->names[i].label,
                                                   json_pack("{s:s}", "value", "1"));
        return json_pack("{s:s, s:o}", "name", of->names[first].label, "counters", counters);
}
