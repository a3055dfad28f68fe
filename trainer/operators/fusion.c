/* Patterns are followed from reader to reader; a value with two of them ends each pattern but the one it is
 * the result of. */
#include "trainer/operators/fusion.h"

#include <string.h>

#include "base/text.h"

struct fusion_table fusion_built_in(uint32_t bypass)
{
        struct fusion_table t = { 0 };

        for (enum op op = OP_SINGLES; op < OP_COUNT; op++) {
                struct fusion_rule *rule = &t.rules[t.count];

                if ((bypass & OP_BIT(op)) != 0)
                        continue;
                rule->fused = op;
                rule->part_count = op_parts(op, rule->parts);
                (void) text_copy(rule->name, sizeof(rule->name), op_name(op));
                t.count++;
        }
        return t;
}

static struct fusion_rule *find(struct fusion_table *t, const enum op *parts, size_t count)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->rules[i].part_count == count &&
                    memcmp(t->rules[i].parts, parts, count * sizeof(*parts)) == 0)
                        return &t->rules[i];
        return NULL;
}

bool fusion_put(struct fusion_table *t, const struct fusion_rule *rule)
{
        struct fusion_rule *place = find(t, rule->parts, rule->part_count);

        if (place == NULL && t->count == FUSION_RULES_MAX)
                return false;
        if (place == NULL)
                place = &t->rules[t->count++];
        *place = *rule;
        return true;
}

bool fusion_drop(struct fusion_table *t, const enum op *parts, size_t count)
{
        struct fusion_rule *place = find(t, parts, count);

        if (place == NULL)
                return false;
        *place = t->rules[--t->count];
        return true;
}

static bool reads(const struct fusion_graph *g, size_t node, size_t value)
{
        for (size_t i = 0; i < g->nodes[node].input_count; i++)
                if (g->nodes[node].inputs[i] == value)
                        return true;
        return false;
}

/* Nodes that read what comes out of `node`. *ret: the first that does nothing but `wanted` to it; g->count =
 * none. */
static size_t readers(const struct fusion_graph *g, size_t node, enum op wanted, size_t *ret)
{
        size_t count = 0;

        *ret = g->count;
        for (size_t i = node + 1; i < g->count; i++) {
                if (!reads(g, i, node))
                        continue;
                count++;
                if (*ret == g->count && g->nodes[i].op == wanted && g->nodes[i].input_count == 1)
                        *ret = i;
        }
        return count;
}

/* Follows the pattern. Return: does it hold? *ret_shared: if it does but for a value that others read, whose;
 * otherwise g->count. */
static bool follow(const struct fusion_graph *g, const struct fusion_rule *rule, size_t node, size_t *members,
                   size_t *ret_shared)
{
        *ret_shared = g->count;
        if (g->nodes[node].op != rule->parts[0])
                return false;
        members[0] = node;
        for (size_t i = 1; i < rule->part_count; i++) {
                size_t before = members[i - 1];

                if (readers(g, before, rule->parts[i], &members[i]) > 1 && *ret_shared == g->count)
                        *ret_shared = before;
                if (members[i] == g->count) {
                        *ret_shared = g->count;
                        return false;
                }
        }
        return *ret_shared == g->count;
}

struct fusion_match fusion_match(const struct fusion_graph *g, const struct fusion_table *t, size_t node)
{
        struct fusion_match best = { 0 };
        size_t longest = 1, longest_refused = 1;

        for (size_t i = 0; i < t->count; i++) {
                const struct fusion_rule *rule = &t->rules[i];
                size_t members[OP_PARTS_MAX], shared;

                if (follow(g, rule, node, members, &shared) && rule->part_count > longest) {
                        longest = rule->part_count;
                        best.rule = rule;
                        memcpy(best.members, members, rule->part_count * sizeof(*members));
                } else if (shared < g->count && rule->part_count > longest_refused) {
                        longest_refused = rule->part_count;
                        best.refused = rule;
                        best.read_elsewhere = shared;
                }
        }
        if (longest_refused <= longest)
                best.refused = NULL;
        return best;
}
