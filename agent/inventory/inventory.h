/* Inventory: what a node has. It is what discovery fills, health judges, the agent publishes, the plugin
 * serves and the extender reads. It owns its arrays; strings are fixed fields, so that an inventory copies
 * and compares cheaply. Pure data; no I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/agent_facts.h"
#include "agent/inventory/device.h"
#include "agent/inventory/hardware.h"
#include "agent/inventory/node_class.h"
#include "base/err.h"

#define PROGRAMS_MAX 32

struct inventory_program {
        char runtime[16];
        char sha256[65];     /* lower case hex; "" = not given */
        char speed_name[65]; /* with its arguments, as the SpeedTable knows it; "" = sha256 */
};

/* A pod that holds a device which may not be used any more: whoever runs it has to move it. */
struct inventory_loss {
        char device_id[DEVICE_ID_BYTES];
        char pod[320]; /* "namespace/name" */
};

#define LOSSES_MAX 4096 /* shared devices have several holders */

struct inventory {
        char node[254];
        uint64_t generation; /* grows with every change that is reported */
        char boot_id[40];
        enum node_class node_class;
        char pool[64]; /* "regular" unless configured */
        bool planned;  /* no API of the kubelet's offers its devices: planned claims alone have them */
        struct hardware hardware;
        struct inventory_program programs[PROGRAMS_MAX];
        size_t program_count;
        struct device_group *groups;
        size_t group_count;
        struct device *devices;
        size_t device_count;
        struct inventory_loss
                *losses; /* in the order of the devices; as far as the agent knows who holds what */
        size_t loss_count;
        struct agent_facts agent; /* of the agent that tells it */
};

/* inventory_init() - the empty inventory: class any, pool regular. */
void inventory_init(struct inventory *inventory);
void inventory_free(struct inventory *inventory); /* accepts NULL; leaves it as after inventory_init() */

/* inventory_copy() - a deep copy into an uninitialised or freed *ret. Return: 0 or -ENOMEM. */
int inventory_copy(const struct inventory *inventory, struct inventory *ret);

/* inventory_add_device(), inventory_add_group() - append a zeroed entry.
 * Return: the entry, valid until the next add; NULL when out of memory or past DEVICES_MAX / GROUPS_MAX. */
struct device *inventory_add_device(struct inventory *inventory);
struct device_group *inventory_add_group(struct inventory *inventory);

/* inventory_add_loss() - @pod: "namespace/name". 0; -ENOMEM; -E2BIG past LOSSES_MAX. */
int inventory_add_loss(struct inventory *inventory, const char *device_id, const char *pod);

struct device *inventory_find_device(const struct inventory *inventory, const char *id);        /* or NULL */
struct device_group *inventory_find_group(const struct inventory *inventory, const char *name); /* or NULL */

/* inventory_count() - recompute every group's total and healthy from the devices; free = healthy. */
void inventory_count(struct inventory *inventory);

/* inventory_same() - is everything that is published equal, but `generation`, and what the agent says of
 * itself (agent_facts_same())? */
bool inventory_same(const struct inventory *a, const struct inventory *b);

/* inventory_wired_same() - are links and switches equal, device by device? They are not published, and decide
 * what is preferred. */
bool inventory_wired_same(const struct inventory *a, const struct inventory *b);
