/* Nodes as JSON: a letter a chip, of what its agent says of its health and the ledger of who has it. */
#include "scheduler-extender/page/page_fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/timestamp.h"
#include "scheduler-extender/explain/why.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static const char *const state_words[PAGE_FLEET_STATES] = { "free", "held",        "borrowed", "degraded",
                                                            "sick", "quarantined", "unknown" };

const char *page_fleet_state_word(enum page_fleet_state state)
{
        return state_words[state];
}

void page_fleet_write_time(struct json_writer *w, const char *key, uint64_t usec)
{
        char text[TIMESTAMP_BYTES];

        (void) timestamp_format(usec / 1000000 * 1000000, text);
        json_writer_word(w, key, text);
}

bool page_fleet_is_unknown(const struct ledger *ledger, const struct rules *rules,
                           const struct ledger_node *node, char ret_why[PAGE_FLEET_WHY_BYTES])
{
        static const struct request nothing = { .item_count = 0 };
        const struct rules_context ctx = { .ledger = ledger, .rules = rules, .request = &nothing };

        if (node != NULL && node->has_inventory && node->trust.doubt == LEDGER_BELIEVED &&
            !liveness_silent(&ledger->liveness, ledger_seen_usec(ledger, node)))
                return false;
        if (ret_why != NULL)
                why_node(&ctx, node, node == NULL ? REASON_NODE_UNKNOWN : REASON_INVENTORY_STALE, ret_why,
                         PAGE_FLEET_WHY_BYTES);
        return true;
}

static enum page_fleet_state held_state(const struct page_holders_chip *held, uint32_t shares)
{
        if (held->part == NULL || held->used < shares)
                return PAGE_FLEET_FREE;
        return held->part->pod != NULL && ledger_pods_borrows(held->part->pod) ? PAGE_FLEET_BORROWED
                                                                               : PAGE_FLEET_HELD;
}

static enum page_fleet_state state_of(enum device_health health, const struct page_holders_chip *held,
                                      uint32_t shares)
{
        switch (health) {
        case HEALTH_DEGRADED:
                return PAGE_FLEET_DEGRADED;
        case HEALTH_UNHEALTHY:
                return PAGE_FLEET_SICK;
        case HEALTH_QUARANTINED:
                return PAGE_FLEET_QUARANTINED;
        case HEALTH_UNKNOWN:
                return PAGE_FLEET_UNKNOWN;
        default:
                return held_state(held, shares);
        }
}

/* The page of docs/runbooks about it: that of its reason, where there is one, else that of its health. */
static const char *runbook_of(enum device_health health, const char *reason)
{
        if (strcmp(reason, "UncorrectableErrors") == 0)
                return "RemudaUncorrectableErrors";
        switch (health) {
        case HEALTH_DEGRADED:
                return "RemudaDeviceDegraded";
        case HEALTH_UNHEALTHY:
                return "RemudaDeviceUnhealthy";
        case HEALTH_QUARANTINED:
                return "RemudaDeviceQuarantined";
        case HEALTH_UNKNOWN:
                return "RemudaDeviceUnknown";
        default:
                return "";
        }
}

void page_fleet_write_health(struct json_writer *w, const struct page_fleet_node *node,
                             const struct page_node_chip *chip)
{
        const char *reason = page_node_text(node->told, chip->reason),
                   *runbook = runbook_of((enum device_health) chip->health, reason);

        json_writer_word(w, "reason", reason);
        json_writer_word(w, "message", page_node_text(node->told, chip->message));
        page_fleet_write_time(w, "since", chip->since_usec);
        if (node->has_runbook != NULL && node->has_runbook(runbook))
                json_writer_string(w, "runbook", runbook);
}

void page_fleet_write_group(struct json_writer *w, const struct page_node_told *told,
                            const struct page_node_group *group)
{
        json_writer_string(w, "group", page_node_text(told, group->name));
        json_writer_string(w, "vendor", page_node_text(told, group->vendor));
        json_writer_word(w, "model", page_node_text(told, group->model));
        json_writer_string(w, "runtime", page_node_text(told, group->runtime));
        json_writer_string(w, "resource", page_node_text(told, group->resource));
        json_writer_word(w, "fabric", page_node_text(told, group->fabric));
}

void page_fleet_chips_free(struct page_fleet_chips *chips)
{
        free(chips->chips);
        *chips = (struct page_fleet_chips){ .chips = NULL };
}

int page_fleet_chips(const struct page_fleet_node *node, const struct page_node_group *group,
                     struct page_holders *holders, bool unknown, struct page_fleet_chips *ret)
{
        uint32_t count = group->total > group->count ? group->total : group->count,
                 shares = group->shares > 1 ? group->shares : 1, usable = 0;
        CLEANUP(free_p) struct page_holders_chip *held = calloc(count + 1u, sizeof(*held));
        struct page_fleet_chip *chips = calloc(count + 1u, sizeof(*chips));

        *ret = (struct page_fleet_chips){ .chips = chips, .count = count };
        if (held == NULL || chips == NULL)
                return -ENOMEM;
        page_holders_deal(holders, node->ledger, node->told, group, held, &ret->counted);
        for (uint32_t i = 0; i < count; i++) {
                const struct page_node_chip *told =
                        i < group->count ? &node->told->chips[group->first + i] : NULL;
                enum device_health health = HEALTH_HEALTHY;

                if (told != NULL)
                        health = (enum device_health) told->health;
                else if (usable >= group->healthy) /* that one is not usable is all that is known */
                        health = HEALTH_UNHEALTHY;
                usable += told == NULL || told->usable;
                chips[i] = (struct page_fleet_chip){ told, held[i],
                                                     unknown ? PAGE_FLEET_UNKNOWN
                                                             : state_of(health, &held[i], shares) };
        }
        return 0;
}

/* A writer of the column's elements. */
static struct json_writer *writer_of(struct page_fleet_column *column)
{
        if (column->writer.text == NULL) {
                column->writer = (struct json_writer){ .text = &column->text, .compact = true };
                json_writer_open(&column->writer, NULL, '[');
        }
        return &column->writer;
}

void page_fleet_columns_free(struct page_fleet_columns *columns)
{
        struct name_map_entry *e;

        while ((e = name_map_first(&columns->kind_map)) != NULL) {
                name_map_remove(&columns->kind_map, e);
                free(e);
        }
        name_map_free(&columns->kind_map);
        text_free(&columns->kinds.text);
        text_free(&columns->nodes.text);
        text_free(&columns->chips.text);
        text_free(&columns->ids.text);
        text_free(&columns->stale.text);
        text_free(&columns->ill.text);
}

struct kind {
        struct name_map_entry entry; /* first: name_map.h */
        size_t number;
};

/* The number of what the group is. Two are the same whose JSON is. */
static int kind_of(struct page_fleet_columns *columns, const struct page_node_told *told,
                   const struct page_node_group *group, size_t *ret)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct json_writer w = { .text = &text, .compact = true };
        size_t count = columns->kind_map.count;
        struct kind *kind;

        json_writer_open(&w, NULL, '{');
        page_fleet_write_group(&w, told, group);
        json_writer_close(&w, '}');
        kind = text.failed
                       ? NULL
                       : (struct kind *) name_map_make(&columns->kind_map, text.data, sizeof(struct kind));
        if (kind == NULL)
                return -ENOMEM;
        if (columns->kind_map.count > count) {
                struct json_writer *kinds = writer_of(&columns->kinds);

                kind->number = count;
                json_writer_open(kinds, NULL, '{');
                page_fleet_write_group(kinds, told, group);
                json_writer_close(kinds, '}');
        }
        *ret = kind->number;
        return 0;
}

/* Of one node: groups apart by a blank, "0hhhhffff 1hf"; ids apart by a blank, and those of groups by a
 * comma. */
struct texts {
        struct text chips, ids;
};

static void texts_free(struct texts *texts)
{
        text_free(&texts->chips);
        text_free(&texts->ids);
}

static void add_ids(struct text *ids, const struct page_node_told *told, const struct page_fleet_chips *chips)
{
        for (size_t i = 0; i < chips->count && chips->chips[i].told != NULL; i++) {
                text_append(ids, i > 0 ? " " : "");
                text_append_escaped(ids, page_node_text(told, chips->chips[i].told->id), ":/");
        }
}

static void add_ill(struct page_fleet_columns *columns, const struct page_fleet_node *node, size_t group,
                    size_t chip, const struct page_node_chip *told)
{
        struct json_writer *w = writer_of(&columns->ill);

        json_writer_open(w, NULL, '{');
        json_writer_string(w, "node", node->name);
        json_writer_uint64(w, "group", group);
        json_writer_uint64(w, "chip", chip);
        page_fleet_write_health(w, node, told);
        json_writer_close(w, '}');
}

static int add_group(struct page_fleet_columns *columns, const struct page_fleet_node *node, size_t number,
                     struct page_holders *holders, bool unknown, bool with_ids, struct texts *texts)
{
        const struct page_node_group *group = &node->told->groups[number];
        CLEANUP(page_fleet_chips_free) struct page_fleet_chips chips = { .chips = NULL };
        size_t kind = 0;
        int r = kind_of(columns, node->told, group, &kind);

        if (r == 0)
                r = page_fleet_chips(node, group, holders, unknown, &chips);
        if (r < 0)
                return r;
        text_printf(&texts->chips, "%s%zu", number > 0 ? " " : "", kind);
        text_append(&texts->ids, with_ids && number > 0 ? "," : "");
        if (with_ids)
                add_ids(&texts->ids, node->told, &chips);
        for (size_t i = 0; i < chips.count; i++) {
                const struct page_fleet_chip *chip = &chips.chips[i];

                text_append_char(&texts->chips, state_words[chip->state][0]);
                columns->totals.chips++;
                columns->totals.states[chip->state]++;
                if (chip->told != NULL && chip->told->health != HEALTH_HEALTHY)
                        add_ill(columns, node, number, i, chip->told);
        }
        return 0;
}

static void add_stale(struct page_fleet_columns *columns, const char *name, const char *why)
{
        struct json_writer *w = writer_of(&columns->stale);

        json_writer_open(w, NULL, '{');
        json_writer_string(w, "node", name);
        json_writer_word(w, "reason", why);
        json_writer_close(w, '}');
}

int page_fleet_add(struct page_fleet_columns *columns, const struct page_fleet_node *node, bool with_ids)
{
        const struct ledger_node *of = ledger_nodes_find(node->ledger, node->name, strlen(node->name));
        CLEANUP(page_holders_free) struct page_holders holders = { .parts = NULL };
        CLEANUP(texts_free) struct texts texts = { .chips = { 0 } };
        char why[PAGE_FLEET_WHY_BYTES] = "";
        bool unknown = page_fleet_is_unknown(node->ledger, node->rules, of, why);
        int r = of == NULL ? 0 : page_holders_read(&holders, node->ledger, node->claims, of);

        for (size_t i = 0; r == 0 && i < node->told->group_count; i++)
                r = add_group(columns, node, i, &holders, unknown, with_ids, &texts);
        json_writer_string(writer_of(&columns->nodes), NULL, node->name);
        json_writer_string(writer_of(&columns->chips), NULL,
                           texts.chips.data != NULL ? texts.chips.data : "");
        json_writer_string(writer_of(&columns->ids), NULL, texts.ids.data != NULL ? texts.ids.data : "");
        if (unknown)
                add_stale(columns, node->name, why);
        return r == 0 && (texts.chips.failed || texts.ids.failed) ? -ENOMEM : r;
}

/* Its elements are JSON already. */
static void write_column(struct json_writer *w, const char *key, struct page_fleet_column *column)
{
        (void) writer_of(column);
        json_writer_open(w, key, '[');
        if (column->text.failed)
                w->text->failed = true;
        else
                text_append(w->text, column->text.data + 1);
        json_writer_close(w, ']');
}

void page_fleet_write(struct json_writer *w, struct page_fleet_columns *columns)
{
        write_column(w, "kinds", &columns->kinds);
        write_column(w, "nodes", &columns->nodes);
        write_column(w, "chips", &columns->chips);
        write_column(w, "ids", &columns->ids);
        write_column(w, "stale", &columns->stale);
        write_column(w, "ill", &columns->ill);
}

void page_fleet_write_totals(struct json_writer *w, const struct page_fleet_totals *totals)
{
        json_writer_open(w, "totals", '{');
        json_writer_uint64(w, "chips", totals->chips);
        for (size_t i = 0; i < PAGE_FLEET_STATES; i++)
                json_writer_uint64(w, state_words[i], totals->states[i]);
        json_writer_close(w, '}');
}

void page_fleet_write_faults(struct json_writer *w, const struct page_faults *faults, uint64_t after,
                             uint64_t now_usec)
{
        json_writer_open(w, "faults", '[');
        for (size_t i = 0; i < faults->count; i++) {
                const struct page_faults_entry *entry = page_faults_at(faults, i);

                if (faults->total - faults->count + i < after || entry->usec + PAGE_FAULTS_USEC < now_usec)
                        continue;
                json_writer_open(w, NULL, '{');
                page_fleet_write_time(w, "at", entry->usec);
                json_writer_string(w, "node", entry->node);
                json_writer_word(w, "device", entry->device);
                json_writer_string(w, "to", entry->to);
                json_writer_word(w, "reason", entry->reason);
                json_writer_word(w, "message", entry->message);
                json_writer_close(w, '}');
        }
        json_writer_close(w, ']');
}
