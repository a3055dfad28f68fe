/* Device asks: what a pod's claims ask for by device classes that say whose chips they are, turned into a
 * request for the chips of one node. So rules and scores judge it as they judge others: class, pool, room,
 * groups, holds and packing.
 *
 * A node's chips are of the vendor or of the runtime that a class names; where they are counted under several
 * resources, those of which most are open are meant. Of several choices (`firstAvailable`) it is the first
 * that has room there, as kube-scheduler takes it. Pure; O(asks x choices x groups). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

#define DEVICE_ASKS_MAX         8
#define DEVICE_ASKS_CHOICES_MAX 8

struct device_asks {
        size_t count;
        struct device_ask {
                struct device_choice {
                        uint32_t of; /* symbol of a vendor or a runtime; 0 = one that nobody has */
                        uint32_t devices;
                } choices[DEVICE_ASKS_CHOICES_MAX];
                size_t choice_count; /* >= 1 */
                bool one_group;
        } asks[DEVICE_ASKS_MAX];
        bool own; /* the claims are the pod's alone: made of templates */
};

/* device_asks_least() - chips in all, of each ask its smallest choice. */
uint64_t device_asks_least(const struct device_asks *asks);

/* device_asks_on() - the request `of` with the chips of `node` that the asks come to. A choice that nobody
 * there has is an item of resource 0. */
void device_asks_on(const struct device_asks *asks, const struct ledger_node *node, const struct request *of,
                    struct request *ret);

/* device_asks_anywhere() - the asks as items of the request, before those that it has, wherever it goes: of
 * several choices the first that the cluster has usable chips enough for; one that nobody has is an item of
 * resource 0. For plans of gangs, whose members ask for the same on every node. */
void device_asks_anywhere(const struct device_asks *asks, const struct ledger *ledger,
                          struct request *request);
