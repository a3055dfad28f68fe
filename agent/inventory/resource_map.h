/* Resource map: under which resource name each device group is offered, and shared how many times. Pure.
 *
 * A group belongs to exactly one resource, a resource to one vendor: a device is never offered under two
 * names, and one name never means unlike things to the program that gets it. */
#pragma once

#include <stddef.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"

#define RESOURCE_RULES_MAX 64
#define REPLICAS_MAX       256

enum resource_map_by { RESOURCE_BY_VENDOR, RESOURCE_BY_MODEL, RESOURCE_BY_GROUP, RESOURCE_BY_COUNT };

struct resource_map_rule {
        char group[DEVICE_GROUP_BYTES]; /* shell patterns of '*' and '?'; "" matches all */
        char vendor[24];
        char model[DEVICE_MODEL_BYTES];
        char resource[DEVICE_RESOURCE_BYTES]; /* "" = as `by` says */
        unsigned replicas;                    /* ids per device; 0 = not shared */
};

struct resource_map {
        enum resource_map_by by;
        struct resource_map_rule rules[RESOURCE_RULES_MAX];
        size_t rule_count;
};

/* resource_map_check_name() - is it a name that the kubelet accepts for an extended resource?
 * Return: 0, or -EINVAL and *err says what is wrong. */
int resource_map_check_name(const char *name, struct err *err);

/* resource_map_apply() - set `resource` and `shares` of every group of the inventory. With `by: vendor` and
 * no rule a group keeps the resource that discovery gave it; `model` and `group` put the model's or the
 * group's name in place of the part behind the slash. Return: 0, or -EINVAL when one resource would be of two
 * vendors or shared in two ways (*err names them); the inventory is then unchanged. */
int resource_map_apply(const struct resource_map *map, struct inventory *inventory, struct err *err);
