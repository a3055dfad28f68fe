/* Page fleet: what GET /v1/fleet says of a node and of all: the state of every chip, and why one is not well.
 *
 * A browser reads all of it before anything is seen, and what costs it time is objects, not bytes. So there
 * are columns of texts instead: a letter a chip, and what groups of many nodes have in common told once
 * (kinds); who has a chip is asked node by node (page_detail.h). Pure but for the heap: time is an argument.
 * docs/reference/page.md has the fields. */
#pragma once

#include "base/json/json_writer.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/page/page_faults.h"
#include "scheduler-extender/page/page_holders.h"
#include "scheduler-extender/page/page_node.h"

enum page_fleet_state {
        PAGE_FLEET_FREE,
        PAGE_FLEET_HELD,
        PAGE_FLEET_BORROWED, /* by a pod on reserved chips that is no emergency */
        PAGE_FLEET_DEGRADED,
        PAGE_FLEET_SICK,
        PAGE_FLEET_QUARANTINED,
        PAGE_FLEET_UNKNOWN, /* its agent is silent, or could not ask */
        PAGE_FLEET_STATES
};

const char *page_fleet_state_word(enum page_fleet_state state); /* of which the first letters differ */

/* All zero at first; chips = the sum of the states. */
struct page_fleet_totals {
        size_t chips, states[PAGE_FLEET_STATES];
};

/* A node to be written. Borrowed. */
struct page_fleet_node {
        const char *name;
        const struct page_node_told *told;
        const struct ledger *ledger;
        const struct claims *claims; /* may be NULL */
        const struct rules *rules;
        uint64_t heard_usec; /* CLOCK_REALTIME of its last sign of life; 0 = not known */
        bool (*has_runbook)(const char *name);
};

/* page_fleet_is_unknown() - is what its agent told not believed now, or is it too old? @ret_why: a sentence,
 * may be NULL */
#define PAGE_FLEET_WHY_BYTES 512
bool page_fleet_is_unknown(const struct ledger *ledger, const struct rules *rules,
                           const struct ledger_node *node, char ret_why[PAGE_FLEET_WHY_BYTES]);

/* The chips of a group, those first that are told one by one. */
struct page_fleet_chip {
        const struct page_node_chip *told; /* NULL = the group counts it, and does not list it */
        struct page_holders_chip held;
        enum page_fleet_state state;
};
struct page_fleet_chips {
        struct page_fleet_chip *chips;
        size_t count;
        bool counted; /* page_holders_deal() */
};

/* page_fleet_chips() - @holders: of the node, whose parts are dealt; @unknown: page_fleet_is_unknown().
 * Return: 0 or -ENOMEM. Release with page_fleet_chips_free() in any case. */
int page_fleet_chips(const struct page_fleet_node *node, const struct page_node_group *group,
                     struct page_holders *holders, bool unknown, struct page_fleet_chips *ret);
void page_fleet_chips_free(struct page_fleet_chips *chips);

/* The columns of an answer, an element a node; and what concerns few. Zero-initialised; stays where it is. */
struct page_fleet_column {
        struct text text;
        struct json_writer writer;
};
struct page_fleet_columns {
        struct name_map kind_map; /* of the JSON of each kind */
        struct page_fleet_column kinds, nodes, chips, ids, stale, ill;
        struct page_fleet_totals totals;
};
void page_fleet_columns_free(struct page_fleet_columns *columns);

/* page_fleet_add() - one more node. @with_ids: who reads it may not know its chips' ids yet. Return: 0 or
 * -ENOMEM; then what is there is not whole. */
int page_fleet_add(struct page_fleet_columns *columns, const struct page_fleet_node *node, bool with_ids);

/* page_fleet_write() - all of them as members of the outermost object. Once. */
void page_fleet_write(struct json_writer *w, struct page_fleet_columns *columns);

/* page_fleet_write_group() - members of the object of a group: what it is.
 * page_fleet_write_health() - of that of a chip: why it is not well, and what to do. */
void page_fleet_write_group(struct json_writer *w, const struct page_node_told *told,
                            const struct page_node_group *group);
void page_fleet_write_health(struct json_writer *w, const struct page_fleet_node *node,
                             const struct page_node_chip *chip);

/* page_fleet_write_totals(), page_fleet_write_faults() - a member of the outermost object. @after: those that
 * were noticed when faults->total was that already. page_fleet_write_time() - a member, to the second;
 * nothing for 0. */
void page_fleet_write_totals(struct json_writer *w, const struct page_fleet_totals *totals);
void page_fleet_write_faults(struct json_writer *w, const struct page_faults *faults, uint64_t after,
                             uint64_t now_usec);
void page_fleet_write_time(struct json_writer *w, const char *key, uint64_t usec);
