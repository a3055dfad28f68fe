/* Sighting: the helpers that fill a device in, from its vendor's row and from sysfs. */
#include "agent/discovery/sighting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/vendor/speeds.h"
#include "base/cleanup.h"
#include "base/text.h"

const struct discovery_options_model *sighting_find_model(const struct scan *scan,
                                                          const struct vendor *vendor, uint16_t pci_vendor,
                                                          uint16_t pci_device)
{
        const struct discovery_options *options = scan->options;

        for (size_t i = 0; i < options->model_count; i++)
                if (strcmp(options->models[i].vendor, vendor->name) == 0 &&
                    options->models[i].pci_vendor == pci_vendor &&
                    options->models[i].pci_device == pci_device)
                        return &options->models[i];
        return NULL;
}

static const struct vendor_model *find_model(const struct vendor *vendor, uint16_t device)
{
        for (const struct vendor_model *m = vendor->models; m != NULL && m->name != NULL; m++)
                if (m->device == device)
                        return m;
        return NULL;
}

static unsigned severity(enum device_health health)
{
        static const unsigned severities[] = { [HEALTH_HEALTHY] = 0,
                                               [HEALTH_DEGRADED] = 1,
                                               [HEALTH_UNKNOWN] = 2,
                                               [HEALTH_QUARANTINED] = 3,
                                               [HEALTH_UNHEALTHY] = 4 };

        return severities[health];
}

void sighting_judge(struct sighting *sighting, enum device_health health, const char *reason,
                    const char *rule, const char *fmt, ...)
{
        struct device *device = &sighting->device;
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

void sighting_judge_state(struct sighting *sighting)
{
        const struct pci_state *state = &sighting->state;

        if (state->lost)
                sighting_judge(sighting, HEALTH_UNHEALTHY, "FallenOffBus", "pci-config",
                               "its configuration space reads all ones: it has fallen off the bus");
        else if (state->has_width &&
                 (state->width == 255 || (state->width == 0 && state->promised_width != 0)))
                sighting_judge(sighting, HEALTH_UNHEALTHY, "LinkDown", "pci-link", "its PCIe link is down");
        if (state->driver[0] == '\0')
                sighting_judge(sighting, HEALTH_UNHEALTHY, "DriverMissing", "pci-driver",
                               "no driver is bound to it");
        else if (named(sighting->vendor->foreign_drivers, ARRAY_SIZE(sighting->vendor->foreign_drivers),
                       state->driver))
                sighting_judge(sighting, HEALTH_UNHEALTHY, "WrongDriver", "pci-driver",
                               "it is bound to %s, which its runtime cannot use", state->driver);
        if (state->has_width && state->width > 0 && state->width < state->promised_width)
                sighting_judge(sighting, HEALTH_DEGRADED, "LinkDegraded", "pci-link-width",
                               "its PCIe link runs on %u of %u lanes", state->width, state->promised_width);
}

bool sighting_is_passed_through(const struct sighting *sighting)
{
        const char *driver = sighting->state.driver;

        return strstr(driver, "vfio") != NULL || strcmp(driver, "pci-stub") == 0 ||
               strcmp(driver, "pciback") == 0 || strcmp(driver, "xen-pciback") == 0 ||
               strcmp(driver, "uio_pci_generic") == 0;
}

bool sighting_assign(struct sighting *sighting)
{
        if (!sighting_is_passed_through(sighting))
                return false;
        sighting->placement.grouped = false;
        sighting_judge(sighting, HEALTH_UNKNOWN, "Assigned", "pci-driver",
                       "it is bound to %s: passed through to a virtual machine", sighting->state.driver);
        return true;
}

static void copy_speeds(struct scan_placement *placement, double bf16, double fp16, double fp32)
{
        placement->tflops_bf16 = bf16;
        placement->tflops_fp16 = fp16;
        placement->tflops_fp32 = fp32;
}

void sighting_set_model_name(struct sighting *sighting, const char *name)
{
        const struct speed *speed = speed_find(sighting->vendor->name, name);

        (void) text_copy(sighting->device.model, sizeof(sighting->device.model), name);
        if (speed == NULL)
                return;
        copy_speeds(&sighting->placement, speed->bf16, speed->fp16, speed->fp32);
        if (sighting->device.memory_bytes == 0)
                sighting->device.memory_bytes = (uint64_t) speed->gib << 30;
}

void sighting_set_model(const struct scan *scan, struct sighting *sighting, uint16_t pci_vendor,
                        uint16_t pci_device)
{
        const struct discovery_options_model *given =
                sighting_find_model(scan, sighting->vendor, pci_vendor, pci_device);
        const struct vendor_model *model = find_model(sighting->vendor, pci_device);
        const struct vendor_kind *kind;
        char ids[16];

        if (model != NULL) {
                sighting->device.memory_bytes = (uint64_t) model->gib << 30;
                sighting->kind = model->kind != NULL ? model->kind : "";
        }
        kind = vendor_kind_of(sighting->vendor, sighting->kind);
        if (kind != NULL && kind->resource != NULL)
                (void) text_copy(sighting->placement.resource, sizeof(sighting->placement.resource),
                                 kind->resource);
        if (given != NULL && given->memory_bytes != 0)
                sighting->device.memory_bytes = given->memory_bytes;
        (void) text_format(ids, sizeof(ids), "%04x:%04x", pci_vendor, pci_device);
        sighting_set_model_name(sighting, given != NULL ? given->name : model != NULL ? model->name : ids);
        if (given != NULL && given->tflops_bf16 + given->tflops_fp16 + given->tflops_fp32 > 0)
                copy_speeds(&sighting->placement, given->tflops_bf16, given->tflops_fp16, given->tflops_fp32);
}

void sighting_add_node(const struct scan *scan, struct sighting *sighting, bool required, const char *fmt,
                       ...)
{
        struct device *device = &sighting->device;
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
                sighting_judge(sighting, HEALTH_UNHEALTHY, "NodeMissing", "device-node",
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

void sighting_set_number(struct sighting *sighting, unsigned number)
{
        sighting->number = number;
        sighting->number_known = true;
        if (sighting->vendor->index_is_number)
                sighting->device.index = number;
}

ssize_t sighting_read(const struct scan *scan, const struct sighting *sighting, const char *name, char *text,
                      size_t text_bytes)
{
        char path[TREE_PATH_BYTES];

        text[0] = '\0';
        if (sighting->function == NULL ||
            !text_format(path, sizeof(path), "%s/%s", pci_path(&scan->pci, sighting->function), name))
                return -ENOENT;
        return tree_read_text(scan->tree, path, text, text_bytes);
}

void sighting_set_serial(struct sighting *sighting, const char *serial)
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

/* Without a driver there is no node, and the number that would name it is a guess. */
static bool has_nodes(const struct sighting *sighting)
{
        return sighting->function == NULL || sighting->number_known || sighting->state.driver[0] != '\0';
}

static void add_drm_nodes(struct scan *scan, struct sighting *sighting)
{
        bool required = sighting->vendor->drm == VENDOR_DRM_REQUIRED;
        unsigned number;

        if (scan_class_number(scan, sighting->function, "drm", "renderD", &number))
                sighting_add_node(scan, sighting, required, "/dev/dri/renderD%u", number);
        if (scan_class_number(scan, sighting->function, "drm", "card", &number))
                sighting_add_node(scan, sighting, false, "/dev/dri/card%u", number);
}

static void add_nodes(struct scan *scan, struct sighting *sighting)
{
        const struct vendor *vendor = sighting->vendor;
        char node[DEVICE_NODE_BYTES];

        for (size_t i = 0; vendor->nodes[i].path != NULL; i++) {
                expand_node(vendor->nodes[i].path, sighting->number, node, sizeof(node));
                sighting_add_node(scan, sighting, !vendor->nodes[i].optional, "%s", node);
        }
        if (vendor->drm != VENDOR_NO_DRM && sighting->function != NULL)
                add_drm_nodes(scan, sighting);
}

/* The fabric that follows from the device's form. With rings of 4, the chips N = 4 to 7 are ring 1. */
static void place_by_form(const struct vendor_kind *kind, struct sighting *sighting)
{
        unsigned group;

        if (kind->fabric == NULL || sighting->placement.fabric[0] != '\0')
                return;
        if (kind->fabric_chips == 0) {
                scan_set_fabric(&sighting->placement, kind->fabric, "rule", -1, "%s", "node");
                sighting->placement.needs_company = true;
                return;
        }
        group = sighting->number / kind->fabric_chips;
        scan_set_fabric(&sighting->placement, kind->fabric, "rule", (int) group, "%u", group);
}

int sighting_add(struct scan *scan, struct sighting *sighting)
{
        const struct vendor_kind *kind = vendor_kind_of(sighting->vendor, sighting->kind);

        if (sighting->device.node_count == 0 && has_nodes(sighting) && (kind == NULL || !kind->no_node))
                add_nodes(scan, sighting);
        if (kind != NULL)
                place_by_form(kind, sighting);
        return scan_add(scan, &sighting->device, &sighting->placement);
}

void sighting_begin(const struct vendor *vendor, struct sighting *ret)
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

void sighting_begin_function(const struct scan *scan, const struct vendor *vendor,
                             struct pci_function *function, unsigned rank, struct sighting *ret)
{
        sighting_begin(vendor, ret);
        ret->function = function;
        ret->placement.pci_ids = (uint32_t) function->vendor << 16 | function->device;
        ret->rank = ret->number = rank;
        ret->device.index = scan_next_index(scan, vendor->name);
        pci_read_state(scan->tree, &scan->pci, function, &ret->state);
        ret->placement.bound = ret->state.driver[0] != '\0';
        (void) text_copy(ret->device.id, sizeof(ret->device.id), function->address);
        (void) text_copy(ret->device.pci, sizeof(ret->device.pci), function->address);
        (void) text_copy(ret->placement.bridges, sizeof(ret->placement.bridges), ret->state.bridges);
        ret->device.numa = ret->state.numa;
        sighting_set_model(scan, ret, function->vendor, function->device);
        if (vendor->other_driver.driver != NULL &&
            strcmp(ret->state.driver, vendor->other_driver.driver) == 0)
                (void) text_copy(ret->placement.resource, sizeof(ret->placement.resource),
                                 vendor->other_driver.resource);
}
