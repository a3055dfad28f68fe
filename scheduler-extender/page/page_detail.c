/* A node as JSON, for whoever looks at one of its chips: health as in the fleet, and holders from the ledger.
 */
#include "scheduler-extender/page/page_detail.h"

#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static void write_holder(struct json_writer *w, const struct page_node_told *told,
                         const struct page_fleet_chip *chip)
{
        const struct page_holders_part *part = chip->held.part;

        if (part != NULL && part->pod != NULL)
                json_writer_string(w, "pod", part->pod->key);
        else if (chip->told != NULL && chip->told->holder != 0)
                json_writer_string(w, "pod", page_node_text(told, chip->told->holder));
        if (part != NULL && part->pod != NULL && part->pod->job != NULL)
                json_writer_string(w, "job", part->pod->job->key);
        else if (part != NULL && part->job != NULL)
                json_writer_string(w, "job", part->job->key);
}

static void write_chip(struct json_writer *w, const struct page_fleet_node *node,
                       const struct page_fleet_chip *chip, uint32_t shares)
{
        const struct page_holders_part *part = chip->held.part;

        json_writer_open(w, NULL, '{');
        if (chip->told != NULL)
                json_writer_string(w, "id", page_node_text(node->told, chip->told->id));
        json_writer_string(w, "state", page_fleet_state_word(chip->state));
        write_holder(w, node->told, chip);
        if (chip->told != NULL && chip->told->health != HEALTH_HEALTHY)
                page_fleet_write_health(w, node, chip->told);
        else if (part != NULL && part->pod != NULL)
                page_fleet_write_time(w, "since", part->pod->started_usec);
        else if (part != NULL && part->job != NULL)
                json_writer_string(w, "message", "leased to a gang that is not bound yet");
        if (shares > 1) {
                json_writer_open(w, "shares", '{');
                json_writer_uint64(w, "used", chip->held.used);
                json_writer_uint64(w, "of", shares);
                json_writer_close(w, '}');
        }
        json_writer_close(w, '}');
}

static int write_group(struct json_writer *w, const struct page_fleet_node *node,
                       const struct page_node_group *group, struct page_holders *holders, bool unknown)
{
        CLEANUP(page_fleet_chips_free) struct page_fleet_chips chips = { .chips = NULL };
        int r = page_fleet_chips(node, group, holders, unknown, &chips);

        if (r < 0)
                return r;
        json_writer_open(w, NULL, '{');
        page_fleet_write_group(w, node->told, group);
        if (chips.counted)
                json_writer_bool(w, "counted", true);
        json_writer_open(w, "chips", '[');
        for (size_t i = 0; i < chips.count; i++)
                write_chip(w, node, &chips.chips[i], group->shares);
        json_writer_close(w, ']');
        json_writer_close(w, '}');
        return 0;
}

int page_detail_write(struct json_writer *w, const char *key, const struct page_fleet_node *node)
{
        const struct ledger_node *of = ledger_nodes_find(node->ledger, node->name, strlen(node->name));
        CLEANUP(page_holders_free) struct page_holders holders = { .parts = NULL };
        char why[PAGE_FLEET_WHY_BYTES] = "";
        bool unknown = page_fleet_is_unknown(node->ledger, node->rules, of, why);
        int r = of == NULL ? 0 : page_holders_read(&holders, node->ledger, node->claims, of);

        json_writer_open(w, key, '{');
        json_writer_string(w, "node", node->name);
        if (unknown) {
                json_writer_bool(w, "stale", true);
                json_writer_word(w, "reason", why);
        }
        if (of != NULL) {
                json_writer_word(w, "pool", symbols_name(&node->ledger->symbols, of->pool));
                json_writer_string(w, "class", node_class_name((enum node_class) of->node_class));
        }
        page_fleet_write_time(w, "heard", node->heard_usec);
        json_writer_open(w, "groups", '[');
        for (size_t i = 0; r == 0 && i < node->told->group_count; i++)
                r = write_group(w, node, &node->told->groups[i], &holders, unknown);
        json_writer_close(w, ']');
        json_writer_close(w, '}');
        return r;
}
