/* Shapes of nodes in a hash table: a node is compared field by field with the shapes of its hash. */
#include "scheduler-extender/decide/node_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "scheduler-extender/ledger/ledger.h"

#define KINDS_MIN 1024 /* fewer are never dropped */

static void free_shape(struct ledger_node *shape)
{
        free(shape->groups);
        free(shape->programs);
        free(shape);
}

static void drop_shapes(struct node_kinds *kinds)
{
        for (uint32_t i = 0; i < kinds->count; i++)
                free_shape(kinds->shapes[i]);
        kinds->count = 0;
        if (kinds->slot_count > 0)
                memset(kinds->slots, 0, kinds->slot_count * sizeof(*kinds->slots));
}

void node_kinds_free(struct node_kinds *kinds)
{
        drop_shapes(kinds);
        free(kinds->shapes);
        free(kinds->slots);
        *kinds = (struct node_kinds){ 0 };
}

/* What the rules and scores read of a group, apart from its name. */
static bool same_group(const struct ledger_group *a, const struct ledger_group *b)
{
        return a->held == b->held && a->leased == b->leased && a->usable == b->usable &&
               a->total == b->total && a->resource == b->resource && a->model == b->model &&
               a->runtime == b->runtime && chip_speed_same_figures(&a->figures, &b->figures);
}

static bool same_kind(const struct ledger_node *a, const struct ledger_node *b)
{
        if (ledger_node_known(a) != ledger_node_known(b) || a->node_class != b->node_class ||
            a->reserved != b->reserved || a->trust.doubt != b->trust.doubt ||
            a->group_count != b->group_count || a->program_count != b->program_count)
                return false;
        for (uint32_t i = 0; i < a->group_count; i++)
                if (!same_group(&a->groups[i], &b->groups[i]))
                        return false;
        for (uint32_t i = 0; i < a->program_count; i++)
                if (a->programs[i].runtime != b->programs[i].runtime ||
                    strcmp(a->programs[i].sha256, b->programs[i].sha256) != 0 ||
                    strcmp(a->programs[i].speed_name, b->programs[i].speed_name) != 0)
                        return false;
        return true;
}

static uint64_t kind_hash(const struct ledger_node *node)
{
        uint64_t hash = (uint64_t) node->trust.doubt << 8 | (uint64_t) node->node_class << 2 |
                        (uint64_t) node->reserved << 1 | ledger_node_known(node);

        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];
                const uint64_t parts[] = { hash, (uint64_t) g->held << 32 | g->leased,
                                           (uint64_t) g->usable << 32 | g->total,
                                           (uint64_t) g->resource << 32 | g->model, g->runtime };

                hash = hash_bytes(parts, sizeof(parts), 0);
        }
        return hash;
}

static struct ledger_node *make_shape(const struct ledger_node *node)
{
        struct ledger_node *shape = calloc(1, sizeof(*shape) + 1);

        if (shape == NULL)
                return NULL;
        shape->has_inventory = node->has_inventory;
        shape->has_object = node->has_object;
        shape->node_class = node->node_class;
        shape->reserved = node->reserved;
        shape->trust.doubt = node->trust.doubt;
        shape->index = ROSTER_NONE;
        shape->groups = calloc(node->group_count + 1u, sizeof(*shape->groups));
        shape->programs = calloc(node->program_count + 1u, sizeof(*shape->programs));
        if (shape->groups == NULL || shape->programs == NULL) {
                free_shape(shape);
                return NULL;
        }
        if (node->group_count > 0)
                memcpy(shape->groups, node->groups, node->group_count * sizeof(*shape->groups));
        if (node->program_count > 0)
                memcpy(shape->programs, node->programs, node->program_count * sizeof(*shape->programs));
        shape->group_count = node->group_count;
        shape->program_count = node->program_count;
        return shape;
}

static bool grow(struct node_kinds *kinds)
{
        uint32_t capacity = kinds->capacity == 0 ? 64 : kinds->capacity * 2;
        struct ledger_node **shapes = realloc(kinds->shapes, capacity * sizeof(struct ledger_node *));
        uint32_t *slots;

        if (shapes == NULL)
                return false;
        kinds->shapes = shapes;
        slots = calloc((size_t) capacity * 2, sizeof(*slots));
        if (slots == NULL)
                return false;
        for (uint32_t i = 0; i < kinds->count; i++) {
                uint32_t mask = capacity * 2 - 1, at = (uint32_t) kind_hash(shapes[i]) & mask;

                while (slots[at] != 0)
                        at = (at + 1) & mask;
                slots[at] = i + 1;
        }
        free(kinds->slots);
        kinds->slots = slots;
        kinds->slot_count = capacity * 2;
        kinds->capacity = capacity;
        return true;
}

static uint32_t kind_of(struct node_kinds *kinds, const struct ledger_node *node)
{
        struct ledger_node *shape;
        uint32_t mask, at;

        if (node->slots != NULL || node->backfills != NULL)
                return NODE_KIND_ALONE;
        if (kinds->count == kinds->capacity && !grow(kinds))
                return NODE_KIND_ALONE;
        mask = kinds->slot_count - 1;
        for (at = (uint32_t) kind_hash(node) & mask; kinds->slots[at] != 0; at = (at + 1) & mask)
                if (same_kind(kinds->shapes[kinds->slots[at] - 1], node))
                        return NODE_KIND_FIRST + kinds->slots[at] - 1;
        shape = make_shape(node);
        if (shape == NULL)
                return NODE_KIND_ALONE;
        kinds->shapes[kinds->count++] = shape;
        kinds->slots[at] = kinds->count;
        return NODE_KIND_FIRST + kinds->count - 1;
}

static void begin_anew(struct ledger *ledger)
{
        drop_shapes(&ledger->kinds);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                ledger->roster.seats[i].kind = NODE_KIND_UNKNOWN;
}

void node_kinds_update(struct ledger *ledger)
{
        if (!ledger->kinds_stale)
                return;
        if (ledger->kinds.count > KINDS_MIN && ledger->kinds.count > 2 * (uint64_t) ledger->node_count)
                begin_anew(ledger);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (ledger->roster.seats[i].kind == NODE_KIND_UNKNOWN)
                        ledger->roster.seats[i].kind = kind_of(&ledger->kinds, ledger->nodes[i]);
        ledger->kinds_stale = false;
}

const struct ledger_node *node_kinds_shape(const struct ledger *ledger, uint32_t kind)
{
        return ledger->kinds.shapes[kind - NODE_KIND_FIRST];
}
