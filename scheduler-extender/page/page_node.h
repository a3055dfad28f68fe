/* Page node: what an agent tells of its node's devices one by one, and of itself, which the ledger does not
 * keep: 32 bytes a device and its texts, in one block. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "base/name_map.h"

/* Texts are offsets in the node's; 0 is "". */
struct page_node_chip {
        uint32_t id, reason, message;
        uint32_t holder; /* the first pod that has it, "namespace/name": told of those that may not be used */
        uint16_t group;
        uint8_t health; /* enum device_health */
        bool usable;
        uint64_t since_usec; /* CLOCK_REALTIME; 0 = not known */
};

struct page_node_group {
        uint32_t name, vendor, model, runtime, resource, fabric;
        uint32_t total, healthy; /* devices, also those that are not told one by one; usable ones */
        uint32_t shares;         /* 0 or 1 = not shared */
        uint32_t first, count;   /* its chips */
};

/* Of the agent itself: agent_facts.h. */
struct page_node_library {
        uint32_t vendor, message;
        uint8_t state; /* enum agent_facts_state */
};

struct page_node_offer {
        uint32_t name;
        bool registered;
};

/* All zero = nothing was told. */
struct page_node_told {
        struct page_node_chip *chips; /* those of a group side by side, in the order of its agent; this and
                                         the next four: one block, which begins here */
        struct page_node_group *groups;
        struct page_node_library *libraries;
        struct page_node_offer *offers;
        char *text;
        size_t group_count, chip_count, library_count, offer_count, bytes;
        uint32_t version; /* of the agent; a text */
};

/* page_node_take() - of the inventory the groups that are no CPUs, their devices, and the agent. Return: 0;
 * -ENOMEM, and *ret is as it was. page_node_free() leaves nothing told. */
int page_node_take(struct page_node_told *ret, const struct inventory *inventory);
void page_node_free(struct page_node_told *told);

const char *page_node_text(const struct page_node_told *told, uint32_t text);

/* page_node_find() - the chip of this id; NULL = there is none. */
const struct page_node_chip *page_node_find(const struct page_node_told *told, const char *id);
