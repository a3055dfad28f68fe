/* Accelerators: PCI functions -> vendor rows -> devices with identity, nodes and what sysfs says of their
 * health.
 *
 * Rows are asked in the order of the table; a function that one has claimed is nobody else's. What none
 * claims and is a processing accelerator is told as vendor `unknown` (vendor/unknown.c), never hidden. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/speeds.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

#define CLASS_ACCELERATOR 0x12

/* --- which functions count --- */

/* Storage, network, audio, bridges, USB and their like are never an accelerator, whatever their id. */
static bool is_other_class(uint32_t class_code)
{
        unsigned base = class_code >> 16 & 0xff, sub = class_code >> 8 & 0xff;

        switch (base) {
        case 0x01: /* storage */
        case 0x02: /* network */
        case 0x06: /* bridge */
        case 0x07: /* communication */
        case 0x09: /* input */
        case 0x0c: /* serial bus */
                return true;
        case 0x04: /* audio; "other multimedia" is used by accelerators */
                return sub == 0x01 || sub == 0x03;
        default:
                return false;
        }
}

static bool listed(const uint16_t *list, size_t max, uint16_t value)
{
        for (size_t i = 0; i < max && list[i] != 0; i++)
                if (list[i] == value)
                        return true;
        return false;
}

static const struct vendor_model *find_model(const struct vendor *vendor, uint16_t device)
{
        for (const struct vendor_model *model = vendor->models; model->name != NULL; model++)
                if (model->device == device)
                        return model;
        return NULL;
}

static const struct discovery_model *find_operator_model(const struct scan *scan, const struct vendor *vendor,
                                                         uint16_t pci_vendor, uint16_t pci_device)
{
        const struct discovery_options *options = scan->options;

        for (size_t i = 0; i < options->model_count; i++)
                if (strcmp(options->models[i].vendor, vendor->name) == 0 &&
                    options->models[i].pci_vendor == pci_vendor &&
                    options->models[i].pci_device == pci_device)
                        return &options->models[i];
        return NULL;
}

static bool counts(const struct scan *scan, const struct vendor *vendor, struct pci_function *function)
{
        if (is_other_class(function->class_code))
                return false;
        if (find_operator_model(scan, vendor, function->vendor, function->device) != NULL)
                return true;
        if (!listed(vendor->pci_vendors, ARRAY_SIZE(vendor->pci_vendors), function->vendor))
                return false;
        if (listed(vendor->never, ARRAY_SIZE(vendor->never), function->device)) {
                function->claimed = true; /* known, and no device: not `unknown` either */
                return false;
        }
        return find_model(vendor, function->device) != NULL ||
               listed(vendor->classes, ARRAY_SIZE(vendor->classes), (uint16_t) (function->class_code >> 8));
}

/* A virtual function whose physical one is there is a part of it. */
static bool is_part_of_other(const struct scan *scan, const struct pci_function *function)
{
        char physical[PCI_ADDRESS_BYTES];

        pci_physical(scan->tree, &scan->pci, function, physical, sizeof(physical));
        return physical[0] != '\0' && pci_find(&scan->pci, physical) != NULL;
}

bool is_passed_through(const char *driver)
{
        return strstr(driver, "vfio") != NULL || strcmp(driver, "pci-stub") == 0 ||
               strcmp(driver, "pciback") == 0 || strcmp(driver, "xen-pciback") == 0 ||
               strcmp(driver, "uio_pci_generic") == 0;
}

/* --- verdicts --- */

static unsigned severity(enum device_health health)
{
        static const unsigned severities[] = { [HEALTH_HEALTHY] = 0,
                                               [HEALTH_DEGRADED] = 1,
                                               [HEALTH_UNKNOWN] = 2,
                                               [HEALTH_QUARANTINED] = 3,
                                               [HEALTH_UNHEALTHY] = 4 };

        return severities[health];
}

void device_judge(struct device *device, enum device_health health, const char *reason, const char *rule,
                  const char *fmt, ...)
{
        char message[sizeof(device->message)];
        va_list ap;

        if (severity(health) <= severity(device->health))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        device->health = health;
        device->usable = health == HEALTH_HEALTHY || health == HEALTH_DEGRADED;
        (void) text_copy(device->reason, sizeof(device->reason), reason);
        (void) text_copy(device->rule, sizeof(device->rule), rule);
        (void) text_copy(device->message, sizeof(device->message), message);
}

static bool named(const char *const *list, size_t max, const char *name)
{
        for (size_t i = 0; i < max && list[i] != NULL; i++)
                if (strcmp(list[i], name) == 0)
                        return true;
        return false;
}

static void judge_state(struct sighting *sighting)
{
        const struct pci_state *state = &sighting->state;
        struct device *device = &sighting->device;

        if (state->lost)
                device_judge(device, HEALTH_UNHEALTHY, "FallenOffBus", "pci-config",
                             "its configuration space reads all ones: it has fallen off the bus");
        else if (state->has_width &&
                 (state->width == 255 || (state->width == 0 && state->promised_width != 0)))
                device_judge(device, HEALTH_UNHEALTHY, "LinkDown", "pci-link", "its PCIe link is down");
        if (state->driver[0] == '\0')
                device_judge(device, HEALTH_UNHEALTHY, "DriverMissing", "pci-driver",
                             "no driver is bound to it");
        else if (named(sighting->vendor->foreign_drivers, ARRAY_SIZE(sighting->vendor->foreign_drivers),
                       state->driver))
                device_judge(device, HEALTH_UNHEALTHY, "WrongDriver", "pci-driver",
                             "it is bound to %s, which its runtime cannot use", state->driver);
        if (state->has_width && state->width > 0 && state->width < state->promised_width)
                device_judge(device, HEALTH_DEGRADED, "LinkDegraded", "pci-link-width",
                             "its PCIe link runs on %u of %u lanes", state->width, state->promised_width);
}

/* --- what rows and this file tell about a device --- */

static void copy_speeds(struct placement *placement, double bf16, double fp16, double fp32)
{
        placement->tflops_bf16 = bf16;
        placement->tflops_fp16 = fp16;
        placement->tflops_fp32 = fp32;
}

void vendor_set_model_name(struct sighting *sighting, const char *name)
{
        const struct speed *speed = speed_find(sighting->vendor->name, name);

        (void) text_copy(sighting->device.model, sizeof(sighting->device.model), name);
        if (speed == NULL)
                return;
        copy_speeds(&sighting->placement, speed->bf16, speed->fp16, speed->fp32);
        if (sighting->device.memory_bytes == 0)
                sighting->device.memory_bytes = (uint64_t) speed->gib << 30;
}

void vendor_set_model(const struct scan *scan, struct sighting *sighting, uint16_t pci_vendor,
                      uint16_t pci_device)
{
        const struct discovery_model *given =
                find_operator_model(scan, sighting->vendor, pci_vendor, pci_device);
        const struct vendor_model *model = find_model(sighting->vendor, pci_device);
        char ids[16];

        if (model != NULL) {
                sighting->device.memory_bytes = (uint64_t) model->gib << 30;
                sighting->kind = model->kind != NULL ? model->kind : "";
        }
        if (given != NULL && given->memory_bytes != 0)
                sighting->device.memory_bytes = given->memory_bytes;
        (void) text_format(ids, sizeof(ids), "%04x:%04x", pci_vendor, pci_device);
        vendor_set_model_name(sighting, given != NULL ? given->name : model != NULL ? model->name : ids);
        if (given != NULL && given->tflops_bf16 + given->tflops_fp16 + given->tflops_fp32 > 0)
                copy_speeds(&sighting->placement, given->tflops_bf16, given->tflops_fp16, given->tflops_fp32);
}

void vendor_add_node(const struct scan *scan, struct device *device, bool required, const char *fmt, ...)
{
        char node[DEVICE_NODE_BYTES];
        enum tree_kind kind;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(node, sizeof(node), fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= sizeof(node) || device->node_count >= DEVICE_NODES_MAX)
                return;
        kind = scan->has_dev ? tree_kind(scan->tree, node) : TREE_CHARACTER;
        if (kind != TREE_CHARACTER && kind != TREE_FILE && kind != TREE_BLOCK) {
                if (!required)
                        return;
                device_judge(device, HEALTH_UNHEALTHY, "NodeMissing", "device-node",
                             "its device node %s is not there", node);
        }
        (void) text_copy(device->nodes[device->node_count++], DEVICE_NODE_BYTES, node);
}

/* Replaces the "{n}" of a pattern. */
static void expand_node(const char *pattern, unsigned number, char *ret, size_t ret_bytes)
{
        const char *at = strstr(pattern, "{n}");

        if (at == NULL)
                (void) text_copy(ret, ret_bytes, pattern);
        else
                (void) text_format(ret, ret_bytes, "%.*s%u%s", (int) (at - pattern), pattern, number, at + 3);
}

void vendor_set_number(struct sighting *sighting, unsigned number)
{
        sighting->number = number;
        sighting->number_known = true;
        if (sighting->vendor->index_is_number)
                sighting->device.index = number;
}

void vendor_set_fabric(struct placement *placement, const char *fabric, const char *source, int order,
                       const char *key_fmt, ...)
{
        va_list ap;

        (void) text_copy(placement->fabric, sizeof(placement->fabric), fabric);
        (void) text_copy(placement->source, sizeof(placement->source), source);
        placement->order = order;
        va_start(ap, key_fmt);
        (void) vsnprintf(placement->key, sizeof(placement->key), key_fmt, ap);
        va_end(ap);
}

ssize_t vendor_read(const struct scan *scan, const struct sighting *sighting, const char *name, char *text,
                    size_t text_bytes)
{
        char path[TREE_PATH_BYTES];

        text[0] = '\0';
        if (sighting->function == NULL ||
            !text_format(path, sizeof(path), "%s/%s", pci_path(&scan->pci, sighting->function), name))
                return -ENOENT;
        return tree_read_text(scan->tree, path, text, text_bytes);
}

void vendor_set_serial(struct sighting *sighting, const char *serial)
{
        char clean[DEVICE_ID_BYTES];
        size_t length = 0;

        for (const char *c = serial; *c != '\0' && length + 1 < sizeof(clean); c++)
                if ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    *c == '-' || *c == '_' || *c == '.')
                        clean[length++] = *c;
        clean[length] = '\0';
        if (length < 4 || strspn(clean, "0-") == length || strspn(clean, "fF-") == length ||
            strcasecmp(clean, "unknown") == 0 || strcasecmp(clean, "none") == 0)
                return;
        (void) text_format(sighting->device.id, sizeof(sighting->device.id), "%s-%s", sighting->vendor->name,
                           clean);
}

/* "accel3" with the prefix "accel" is 3. */
static bool number_after(const char *name, const char *prefix, unsigned *ret)
{
        uint64_t number;

        if (!text_starts_with(name, prefix) || text_parse_uint64(name + strlen(prefix), &number) < 0 ||
            number > 1000000)
                return false;
        *ret = (unsigned) number;
        return true;
}

static bool number_in_function(const struct scan *scan, const char *directory, const char *prefix,
                               unsigned *ret)
{
        struct tree_names names;
        bool found = false;

        if (tree_list(scan->tree, directory, &names) < 0)
                return false;
        for (size_t i = 0; !found && i < names.count; i++)
                found = number_after(names.names[i], prefix, ret);
        tree_names_free(&names);
        return found;
}

static bool number_in_class(struct scan *scan, const struct pci_function *function, const char *class_name,
                            const char *prefix, unsigned *ret)
{
        const struct class_index *index = scan_class(scan, class_name);

        for (size_t i = 0; index != NULL && i < index->count; i++)
                if (index->devices[i].order == function->order &&
                    number_after(index->devices[i].name, prefix, ret))
                        return true;
        return false;
}

bool vendor_class_number(struct scan *scan, const struct pci_function *function, const char *class_name,
                         const char *prefix, unsigned *ret)
{
        char path[TREE_PATH_BYTES];

        return (text_format(path, sizeof(path), "%s/%s", pci_path(&scan->pci, function), class_name) &&
                number_in_function(scan, path, prefix, ret)) ||
               number_in_class(scan, function, class_name, prefix, ret);
}

/* --- from function to device --- */

static unsigned count_devices(const struct scan *scan, const char *vendor)
{
        unsigned count = 0;

        for (size_t i = 0; i < scan->inventory->device_count; i++)
                count += strcmp(scan->inventory->devices[i].vendor, vendor) == 0;
        return count;
}

/* The order within the vendor: parts of one function that share a number (MIG) are one. */
static unsigned next_index(const struct scan *scan, const char *vendor)
{
        const struct device *last = NULL;
        unsigned count = 0;

        for (size_t i = 0; i < scan->inventory->device_count; i++) {
                const struct device *d = &scan->inventory->devices[i];

                if (strcmp(d->vendor, vendor) != 0)
                        continue;
                count += last == NULL || last->index != d->index || strcmp(last->pci, d->pci) != 0;
                last = d;
        }
        return count;
}

bool vendor_has_devices(const struct scan *scan, const struct vendor *vendor)
{
        return count_devices(scan, vendor->name) > 0;
}

static int add_by_node(struct scan *scan, const struct vendor *vendor, const char *path, const char *name,
                       unsigned number)
{
        struct sighting sighting;

        vendor_sight(vendor, &sighting);
        sighting.device.index = next_index(scan, vendor->name);
        sighting.device.numa = 0;
        vendor_set_number(&sighting, number);
        (void) text_format(sighting.device.id, sizeof(sighting.device.id), "%s-%s", vendor->name, name);
        if (text_starts_with(path, "dev/"))
                vendor_add_node(scan, &sighting.device, true, "/%s", path);
        return vendor_add_one(scan, &sighting);
}

int vendor_add_by_nodes(struct scan *scan, const struct vendor *vendor, const char *directory,
                        const char *prefix)
{
        char path[TREE_PATH_BYTES];
        struct tree_names names;
        int r = 0;

        if (vendor_has_devices(scan, vendor) || tree_list(scan->tree, directory, &names) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                unsigned number;
                enum tree_kind kind;

                if (!number_after(names.names[i], prefix, &number) ||
                    !text_format(path, sizeof(path), "%s/%s", directory, names.names[i]))
                        continue;
                kind = tree_kind(scan->tree, path);
                if (kind == TREE_CHARACTER || kind == TREE_FILE ||
                    (kind == TREE_DIRECTORY && text_starts_with(path, "sys/")))
                        r = add_by_node(scan, vendor, path, names.names[i], number);
        }
        tree_names_free(&names);
        return r;
}

/* Without a driver there is no node, and the number that would name it is a guess. */
static bool has_nodes(const struct sighting *sighting)
{
        return sighting->function == NULL || sighting->number_known || sighting->state.driver[0] != '\0';
}

int vendor_add_one(struct scan *scan, struct sighting *sighting)
{
        char node[DEVICE_NODE_BYTES];

        if (sighting->vendor->node != NULL && sighting->device.node_count == 0 && has_nodes(sighting)) {
                expand_node(sighting->vendor->node, sighting->number, node, sizeof(node));
                vendor_add_node(scan, &sighting->device, true, "%s", node);
        }
        return scan_add(scan, &sighting->device, &sighting->placement);
}

int vendor_add_none(struct scan *scan, const struct vendor *vendor)
{
        (void) scan;
        (void) vendor;
        return 0;
}

void vendor_sight(const struct vendor *vendor, struct sighting *ret)
{
        *ret = (struct sighting){ .vendor = vendor, .kind = "", .device.numa = -1 };
        ret->device.health = HEALTH_HEALTHY;
        ret->device.usable = true;
        ret->placement.grouped = true;
        ret->placement.order = -1;
        (void) text_copy(ret->device.vendor, sizeof(ret->device.vendor), vendor->name);
        (void) text_copy(ret->placement.runtime, sizeof(ret->placement.runtime), vendor->runtime);
        (void) text_copy(ret->placement.resource, sizeof(ret->placement.resource), vendor->resource);
}

static void sight_function(const struct scan *scan, const struct vendor *vendor,
                           struct pci_function *function, unsigned rank, struct sighting *ret)
{
        vendor_sight(vendor, ret);
        ret->function = function;
        ret->placement.pci_ids = (uint32_t) function->vendor << 16 | function->device;
        ret->rank = ret->number = rank;
        ret->device.index = next_index(scan, vendor->name);
        pci_read_state(scan->tree, &scan->pci, function, &ret->state);
        ret->placement.bound = ret->state.driver[0] != '\0';
        (void) text_copy(ret->device.id, sizeof(ret->device.id), function->address);
        (void) text_copy(ret->device.pci, sizeof(ret->device.pci), function->address);
        (void) text_copy(ret->placement.bridges, sizeof(ret->placement.bridges), ret->state.bridges);
        ret->device.numa = ret->state.numa;
        vendor_set_model(scan, ret, function->vendor, function->device);
}

/* Listed for people, in no group, for a virtual machine has it. */
static int add_assigned(struct scan *scan, struct sighting *sighting)
{
        sighting->placement.grouped = false;
        device_judge(&sighting->device, HEALTH_UNKNOWN, "Assigned", "pci-driver",
                     "it is bound to %s: passed through to a virtual machine", sighting->state.driver);
        return scan_add(scan, &sighting->device, &sighting->placement);
}

int vendor_add_function(struct scan *scan, const struct vendor *vendor, struct pci_function *function,
                        unsigned rank)
{
        struct sighting sighting;
        unsigned number;

        function->claimed = true;
        sight_function(scan, vendor, function, rank, &sighting);
        if (!vendor->vfio_is_own && is_passed_through(sighting.state.driver))
                return add_assigned(scan, &sighting);
        judge_state(&sighting);
        if (vendor->class_name != NULL &&
            vendor_class_number(scan, function, vendor->class_name, vendor->class_prefix, &number))
                vendor_set_number(&sighting, number);
        return vendor->add(scan, &sighting);
}

static int add_vendor(struct scan *scan, const struct vendor *vendor)
{
        unsigned rank = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < scan->pci.count; i++) {
                struct pci_function *function = &scan->pci.functions[i];

                if (function->claimed || !counts(scan, vendor, function))
                        continue;
                function->claimed = true;
                if (!is_part_of_other(scan, function))
                        r = vendor_add_function(scan, vendor, function, rank++);
        }
        return r == 0 ? vendor->add_others(scan, vendor) : r;
}

/* The operator's vendor as a row. What it points to lives as long as the options. */
static int add_operator_vendor(struct scan *scan, const struct discovery_vendor *given)
{
        static const struct vendor_model no_models[] = { { 0 } };
        char resource[DEVICE_RESOURCE_BYTES];
        struct vendor vendor = {
                .name = given->name,
                .runtime = given->runtime[0] != '\0' ? given->runtime : given->name,
                .resource = given->resource,
                .unsure = "",
                .pci_vendors = { given->pci_vendor },
                .classes = { CLASS_ACCELERATOR << 8 },
                .models = no_models,
                .node = given->node[0] != '\0' ? given->node : NULL,
                .add = vendor_add_one,
                .add_others = vendor_add_none,
        };

        if (given->classes[0] != 0)
                memcpy(vendor.classes, given->classes, sizeof(given->classes));
        if (given->resource[0] == '\0') {
                (void) text_format(resource, sizeof(resource), "remuda.dev/%s", given->name);
                vendor.resource = resource;
        }
        return add_vendor(scan, &vendor);
}

const struct vendor *vendor_find(const char *name)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (strcmp(vendors[i]->name, name) == 0)
                        return vendors[i];
        return NULL;
}

/* Before anything is read of any of them: a machine with thousands of devices is none. */
static bool too_many(const struct scan *scan)
{
        size_t count = 0;

        for (size_t i = 0; i < scan->pci.count; i++)
                for (size_t j = 0; vendors[j] != NULL; j++)
                        if (counts(scan, vendors[j], &scan->pci.functions[i])) {
                                count++;
                                break;
                        }
        return count > DEVICES_MAX;
}

int scan_accelerators(struct scan *scan, struct err *err)
{
        int r = pci_scan(scan->tree, &scan->pci);

        if (r < 0)
                return err_set(err, r, "'%s' has more than %d PCI functions, or they cannot be read",
                               tree_root(scan->tree), PCI_FUNCTIONS_MAX);
        if (too_many(scan))
                return err_set(err, -E2BIG, "'%s' has more than %d accelerators", tree_root(scan->tree),
                               DEVICES_MAX);
        kfd_scan(scan->tree, scan->pci.count == 0, &scan->kfd);
        /* The operator's word goes first: it may name what a row would call by another name. */
        for (size_t i = 0; r == 0 && i < scan->options->vendor_count; i++)
                r = add_operator_vendor(scan, &scan->options->vendors[i]);
        for (size_t i = 0; r == 0 && vendors[i] != NULL; i++)
                r = add_vendor(scan, vendors[i]);
        return r < 0 ? err_set(err, r, "no memory for the devices, or more than %d", DEVICES_MAX) : 0;
}
