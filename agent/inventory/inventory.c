/* Inventory: made, copied, counted and compared. */
#include "agent/inventory/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

void inventory_init(struct inventory *inventory)
{
        memset(inventory, 0, sizeof(*inventory));
        (void) text_copy(inventory->pool, sizeof(inventory->pool), "regular");
}

void inventory_free(struct inventory *inventory)
{
        if (inventory == NULL)
                return;
        free(inventory->groups);
        free(inventory->devices);
        free(inventory->losses);
        inventory_init(inventory);
}

int inventory_copy(const struct inventory *inventory, struct inventory *ret)
{
        struct inventory copy = *inventory;

        copy.groups = calloc(inventory->group_count + 1, sizeof(*copy.groups));
        copy.devices = calloc(inventory->device_count + 1, sizeof(*copy.devices));
        copy.losses = calloc(inventory->loss_count + 1, sizeof(*copy.losses));
        if (copy.groups == NULL || copy.devices == NULL || copy.losses == NULL) {
                free(copy.groups);
                free(copy.devices);
                free(copy.losses);
                return -ENOMEM;
        }
        if (inventory->group_count > 0)
                memcpy(copy.groups, inventory->groups, inventory->group_count * sizeof(*copy.groups));
        if (inventory->device_count > 0)
                memcpy(copy.devices, inventory->devices, inventory->device_count * sizeof(*copy.devices));
        if (inventory->loss_count > 0)
                memcpy(copy.losses, inventory->losses, inventory->loss_count * sizeof(*copy.losses));
        *ret = copy;
        return 0;
}

struct device *inventory_add_device(struct inventory *inventory)
{
        struct device *added = NULL;

        if (inventory->device_count < DEVICES_MAX)
                added = array_add(&inventory->devices, &inventory->device_count, NULL, sizeof(*added));
        if (added != NULL)
                added->numa = -1;
        return added;
}

struct device_group *inventory_add_group(struct inventory *inventory)
{
        if (inventory->group_count >= GROUPS_MAX)
                return NULL;
        return array_add(&inventory->groups, &inventory->group_count, NULL, sizeof(*inventory->groups));
}

int inventory_add_loss(struct inventory *inventory, const char *device_id, const char *pod)
{
        struct inventory_loss *loss;

        if (inventory->loss_count >= LOSSES_MAX)
                return -E2BIG;
        loss = array_add(&inventory->losses, &inventory->loss_count, NULL, sizeof(*loss));
        if (loss == NULL)
                return -ENOMEM;
        (void) text_copy(loss->device_id, sizeof(loss->device_id), device_id);
        (void) text_copy(loss->pod, sizeof(loss->pod), pod);
        return 0;
}

struct device *inventory_find_device(const struct inventory *inventory, const char *id)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].id, id) == 0)
                        return &inventory->devices[i];
        return NULL;
}

struct device_group *inventory_find_group(const struct inventory *inventory, const char *name)
{
        for (size_t i = 0; i < inventory->group_count; i++)
                if (strcmp(inventory->groups[i].name, name) == 0)
                        return &inventory->groups[i];
        return NULL;
}

void inventory_count(struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->group_count; i++)
                inventory->groups[i].total = inventory->groups[i].healthy = inventory->groups[i].free = 0;

        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group;

                if (device->group[0] == '\0')
                        continue;
                group = inventory_find_group(inventory, device->group);
                if (group == NULL)
                        continue;
                group->total++;
                if (device->usable) {
                        group->healthy++;
                        group->free++;
                }
        }
}

/* Field by field: what lies behind the NUL of a text, and between members, says nothing. */
static bool same(const char *a, const char *b)
{
        return strcmp(a, b) == 0;
}

static bool device_same(const struct device *a, const struct device *b)
{
        for (size_t i = 0; i < a->node_count && i < b->node_count; i++)
                if (!same(a->nodes[i], b->nodes[i]))
                        return false;
        return same(a->id, b->id) && same(a->group, b->group) && same(a->vendor, b->vendor) &&
               same(a->model, b->model) && a->index == b->index && a->ordinal == b->ordinal &&
               same(a->pci, b->pci) && same(a->partition, b->partition) && a->numa == b->numa &&
               a->node_count == b->node_count && a->memory_bytes == b->memory_bytes &&
               a->health == b->health && a->usable == b->usable && same(a->reason, b->reason) &&
               same(a->message, b->message) && same(a->rule, b->rule) && a->since_usec == b->since_usec;
}

/* Rates come from tables and files, never from arithmetic on changing values: equal means equal,
 * also for what is not known (NAN). */
static bool rate_same(double a, double b)
{
        uint64_t bits_a, bits_b;

        memcpy(&bits_a, &a, sizeof(a));
        memcpy(&bits_b, &b, sizeof(b));
        return bits_a == bits_b;
}

static bool group_same(const struct device_group *a, const struct device_group *b)
{
        return same(a->name, b->name) && same(a->vendor, b->vendor) && same(a->runtime, b->runtime) &&
               same(a->model, b->model) && same(a->resource, b->resource) && same(a->fabric, b->fabric) &&
               same(a->fabric_source, b->fabric_source) && a->total == b->total && a->healthy == b->healthy &&
               a->free == b->free && a->shares == b->shares && rate_same(a->tflops_bf16, b->tflops_bf16) &&
               rate_same(a->tflops_fp16, b->tflops_fp16) && rate_same(a->tflops_fp32, b->tflops_fp32) &&
               a->tflops_estimated == b->tflops_estimated && a->memory_bytes == b->memory_bytes &&
               same(a->measured_kernel, b->measured_kernel) &&
               same(a->measured_precision, b->measured_precision) &&
               rate_same(a->measured_gflops, b->measured_gflops) && a->measured_usec == b->measured_usec;
}

static bool hardware_same(const struct hardware *a, const struct hardware *b)
{
        for (size_t i = 0; i < a->network_count && i < b->network_count; i++)
                if (!same(a->networks[i].name, b->networks[i].name) ||
                    !same(a->networks[i].kind, b->networks[i].kind) ||
                    a->networks[i].mbps != b->networks[i].mbps)
                        return false;
        return same(a->cpu_model, b->cpu_model) && a->cores == b->cores && a->max_mhz == b->max_mhz &&
               a->memory_bytes == b->memory_bytes && same(a->memory_type, b->memory_type) &&
               a->network_count == b->network_count;
}

bool inventory_same(const struct inventory *a, const struct inventory *b)
{
        if (!same(a->node, b->node) || !same(a->boot_id, b->boot_id) || a->node_class != b->node_class ||
            !same(a->pool, b->pool) || a->planned != b->planned ||
            !hardware_same(&a->hardware, &b->hardware) || a->program_count != b->program_count ||
            a->group_count != b->group_count || a->device_count != b->device_count ||
            a->loss_count != b->loss_count)
                return false;
        for (size_t i = 0; i < a->loss_count; i++)
                if (!same(a->losses[i].device_id, b->losses[i].device_id) ||
                    !same(a->losses[i].pod, b->losses[i].pod))
                        return false;
        for (size_t i = 0; i < a->program_count; i++)
                if (!same(a->programs[i].runtime, b->programs[i].runtime) ||
                    !same(a->programs[i].sha256, b->programs[i].sha256) ||
                    !same(a->programs[i].speed_name, b->programs[i].speed_name))
                        return false;
        for (size_t i = 0; i < a->group_count; i++)
                if (!group_same(&a->groups[i], &b->groups[i]))
                        return false;
        for (size_t i = 0; i < a->device_count; i++)
                if (!device_same(&a->devices[i], &b->devices[i]))
                        return false;
        return true;
}

static bool links_same(const struct device *a, const struct device *b)
{
        if (a->link_count != b->link_count || !same(a->pci_switch, b->pci_switch) ||
            !same(a->pci_port, b->pci_port))
                return false;
        for (size_t i = 0; i < a->link_count && i < DEVICE_LINKS_MAX; i++)
                if (!same(a->links[i].peer, b->links[i].peer) || a->links[i].width != b->links[i].width)
                        return false;
        return true;
}

bool inventory_wired_same(const struct inventory *a, const struct inventory *b)
{
        for (size_t i = 0; i < a->device_count && i < b->device_count; i++)
                if (!links_same(&a->devices[i], &b->devices[i]))
                        return false;
        return a->device_count == b->device_count;
}
