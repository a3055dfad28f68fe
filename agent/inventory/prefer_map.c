/* Prefer map: learning groups, switches and links from an inventory, and the weight of a pair. */
#include "agent/inventory/prefer_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LINK_UNITS_MAX 30
#define LINK_WEIGHT    500 /* of a unit: more than a switch and a NUMA node together */

/* Fabrics that are more than a way to the same processor or switch. */
static bool is_fabric(const char *fabric)
{
        static const char *const plain[] = { "", "none", "pcie-switch", "pcie", "numa", "core-groups" };

        for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
                if (strcmp(fabric, plain[i]) == 0)
                        return false;
        return true;
}

static size_t group_index(const struct inventory *inventory, const char *name)
{
        for (size_t i = 0; i < inventory->group_count; i++)
                if (strcmp(inventory->groups[i].name, name) == 0)
                        return i + 1;
        return 0;
}

/* Switches and ports are told apart by their address; the first device under one gives it its number. */
static uint16_t switch_number(const struct inventory *inventory, const size_t *members, size_t i)
{
        const char *own = inventory->devices[members[i]].pci_switch;

        for (size_t j = 0; j < i && own[0] != '\0'; j++)
                if (strcmp(inventory->devices[members[j]].pci_switch, own) == 0)
                        return (uint16_t) (j + 1);
        return own[0] == '\0' ? 0 : (uint16_t) (i + 1);
}

static uint16_t port_number(const struct inventory *inventory, const size_t *members, size_t i)
{
        const char *own = inventory->devices[members[i]].pci_port;

        for (size_t j = 0; j < i && own[0] != '\0'; j++)
                if (strcmp(inventory->devices[members[j]].pci_port, own) == 0)
                        return (uint16_t) (j + 1);
        return own[0] == '\0' ? 0 : (uint16_t) (i + 1);
}

/* What all pairs have in common with their kind; links come on top. */
static uint32_t kind_weight(const struct prefer_map_device *x, const struct prefer_map_device *y)
{
        uint32_t weight = 1;

        if (x->group != 0 && x->group == y->group)
                weight += x->fabric ? 1050 : 50;
        if (x->pci_switch != 0 && x->pci_switch == y->pci_switch)
                weight += 300;
        else if (x->pci_port != 0 && x->pci_port == y->pci_port)
                weight += 200;
        if (x->numa >= 0 && x->numa == y->numa)
                weight += 100;
        return weight;
}

/* The width that one device reports of its link to another, 0 = none. */
static uint32_t reported_width(const struct device *from, const struct device *to)
{
        uint32_t width = 0;

        for (size_t l = 0; to->pci[0] != '\0' && l < from->link_count && l < DEVICE_LINKS_MAX; l++)
                if (strcmp(from->links[l].peer, to->pci) == 0 && from->links[l].width > width)
                        width = from->links[l].width;
        return width < LINK_UNITS_MAX ? width : LINK_UNITS_MAX;
}

static void learn_weights(struct prefer_map *map, const struct inventory *inventory, const size_t *members)
{
        for (size_t a = 0; a < map->count; a++)
                for (size_t b = 0; b < a; b++) {
                        const struct device *x = &inventory->devices[members[a]],
                                            *y = &inventory->devices[members[b]];
                        uint32_t there = reported_width(x, y), back = reported_width(y, x);
                        /* asymmetric reports happen: the wider one is believed, both ways */
                        uint32_t weight = kind_weight(&map->devices[a], &map->devices[b]) +
                                          LINK_WEIGHT * (there > back ? there : back);

                        map->linked = map->linked || there > 0 || back > 0;
                        map->weights[a * map->count + b] = map->weights[b * map->count + a] = weight;
                }
}

int prefer_map_init(struct prefer_map *map, const struct inventory *inventory, const size_t *members,
                    size_t count, unsigned shares)
{
        *map = (struct prefer_map){ .count = count,
                                    .group_count = inventory->group_count + 1,
                                    .shares = shares > 1 ? shares : 1 };
        map->devices = calloc(count + 1, sizeof(*map->devices));
        map->group_sizes = calloc(map->group_count, sizeof(*map->group_sizes));
        if (map->devices == NULL || map->group_sizes == NULL) {
                prefer_map_free(map);
                return -ENOMEM;
        }
        for (size_t i = 0; i < count; i++) {
                const struct device *device = &inventory->devices[members[i]];
                size_t group = group_index(inventory, device->group);

                map->devices[i] = (struct prefer_map_device){
                        .group = (uint16_t) group,
                        .pci_switch = switch_number(inventory, members, i),
                        .pci_port = port_number(inventory, members, i),
                        .numa = (int16_t) (device->numa >= 0 && device->numa < INT16_MAX ? device->numa : -1),
                        .fabric = group > 0 && is_fabric(inventory->groups[group - 1].fabric),
                };
                map->group_sizes[group]++;
        }
        if (count > 0 && count <= PREFER_MAP_LINKS_MAX) {
                map->weights = calloc(count * count, sizeof(*map->weights));
                if (map->weights == NULL) {
                        prefer_map_free(map);
                        return -ENOMEM;
                }
                learn_weights(map, inventory, members);
        }
        return 0;
}

int prefer_map_order(const void *a, const void *b, void *inventory)
{
        const struct inventory *of = inventory;
        const struct device *x = &of->devices[*(const size_t *) a];
        const struct device *y = &of->devices[*(const size_t *) b];

        if (x->index != y->index)
                return x->index < y->index ? -1 : 1;
        return strcmp(x->id, y->id);
}

void prefer_map_free(struct prefer_map *map)
{
        free(TAKE(map->devices));
        free(TAKE(map->group_sizes));
        free(TAKE(map->weights));
        map->count = map->group_count = 0;
}

uint32_t prefer_map_weight(const struct prefer_map *map, size_t a, size_t b)
{
        return map->weights != NULL ? map->weights[a * map->count + b]
                                    : kind_weight(&map->devices[a], &map->devices[b]);
}
