/* nodeSelector, nodeAffinity and tolerations of a Pod, labels and taints of a Node, as lines. */
#include "scheduler-extender/wire/pod_node_match.h"

#include <string.h>

#include "base/cleanup.h"

/* A string that can be a word of a line; NULL = it is none. */
static const char *word_of(const json_t *value)
{
        const char *text = json_string_value(value);

        if (text == NULL)
                return NULL;
        for (const char *c = text; *c != '\0'; c++)
                if ((unsigned char) *c < ' ')
                        return NULL;
        return text;
}

static void put_selector(const json_t *selector, struct text *ret)
{
        const char *key;
        json_t *value;

        json_object_foreach((json_t *) selector, key, value)
        {
                if (word_of(value) != NULL)
                        text_printf(ret, "=\t%s\t%s\n", key, word_of(value));
        }
}

static char operator_of(const json_t *expression, bool field)
{
        static const struct {
                const char *name;
                char label, field;
        } operators[] = {
                { "In", 'i', 'I' },      { "NotIn", 'n', 'N' },
                { "Exists", 'e', '\0' }, { "DoesNotExist", 'a', '\0' },
                { "Gt", 'g', '\0' },     { "Lt", 'l', '\0' },
        };
        const char *name = json_string_value(json_object_get(expression, "operator"));

        for (size_t i = 0; name != NULL && i < ARRAY_SIZE(operators); i++)
                if (strcmp(operators[i].name, name) == 0)
                        return field ? operators[i].field : operators[i].label;
        return '\0';
}

static void put_expression(const json_t *expression, bool field, struct text *ret)
{
        const char *key = word_of(json_object_get(expression, "key"));
        char relation = operator_of(expression, field);
        const json_t *values = json_object_get(expression, "values"), *value;
        size_t i;

        if (key == NULL || relation == '\0' || (field && strcmp(key, "metadata.name") != 0))
                return;
        text_append_char(ret, relation);
        if (!field)
                text_printf(ret, "\t%s", key);
        json_array_foreach((json_t *) values, i, value)
        {
                if (word_of(value) != NULL)
                        text_printf(ret, "\t%s", word_of(value));
        }
        text_append_char(ret, '\n');
}

static void put_term(const json_t *term, struct text *ret)
{
        const json_t *labels = json_object_get(term, "matchExpressions"),
                     *fields = json_object_get(term, "matchFields"), *expression;
        size_t i;

        text_append(ret, "|\n");
        if (json_array_size(labels) + json_array_size(fields) == 0)
                text_append(ret, "x\n"); /* an empty term selects nothing */
        json_array_foreach((json_t *) labels, i, expression) put_expression(expression, false, ret);
        json_array_foreach((json_t *) fields, i, expression) put_expression(expression, true, ret);
}

static void put_affinity(const json_t *affinity, struct text *ret)
{
        const json_t *required = json_object_get(json_object_get(affinity, "nodeAffinity"),
                                                 "requiredDuringSchedulingIgnoredDuringExecution"),
                     *terms = json_object_get(required, "nodeSelectorTerms"), *term;
        size_t i;

        json_array_foreach((json_t *) terms, i, term) put_term(term, ret);
}

static void put_toleration(const json_t *toleration, struct text *ret)
{
        const json_t *key = json_object_get(toleration, "key"), *value = json_object_get(toleration, "value"),
                     *effect = json_object_get(toleration, "effect");
        const char *relation = json_string_value(json_object_get(toleration, "operator"));
        bool equal = relation == NULL || relation[0] == '\0' || strcmp(relation, "Equal") == 0;

        text_printf(ret, "t\t%s\t%s\t%s\t%s\n", word_of(key) != NULL ? word_of(key) : "", equal ? "=" : "e",
                    word_of(value) != NULL ? word_of(value) : "",
                    word_of(effect) != NULL ? word_of(effect) : "");
}

void pod_node_match(const json_t *pod, struct text *ret)
{
        const json_t *spec = json_object_get(pod, "spec"), *toleration;
        size_t i;

        put_selector(json_object_get(spec, "nodeSelector"), ret);
        put_affinity(json_object_get(spec, "affinity"), ret);
        json_array_foreach(json_object_get(spec, "tolerations"), i, toleration)
                put_toleration(toleration, ret);
}

#define UNSCHEDULABLE "!node.kubernetes.io/unschedulable=:NoSchedule\n"

static bool keeps_away(const char *effect)
{
        return effect != NULL && (strcmp(effect, "NoSchedule") == 0 || strcmp(effect, "NoExecute") == 0);
}

void node_trait_lines(const json_t *node, struct text *ret)
{
        const json_t *spec = json_object_get(node, "spec"), *taint;
        bool said = false;
        const char *key;
        json_t *value;
        size_t i;

        json_object_foreach(json_object_get(json_object_get(node, "metadata"), "labels"), key, value)
        {
                if (word_of(value) != NULL && key[0] != '!')
                        text_printf(ret, "%s=%s\n", key, word_of(value));
        }
        json_array_foreach(json_object_get(spec, "taints"), i, taint)
        {
                const char *effect = json_string_value(json_object_get(taint, "effect"));

                key = word_of(json_object_get(taint, "key"));
                value = json_object_get(taint, "value");
                if (key == NULL || !keeps_away(effect))
                        continue;
                said = said || strcmp(key, "node.kubernetes.io/unschedulable") == 0;
                text_printf(ret, "!%s=%s:%s\n", key, word_of(value) != NULL ? word_of(value) : "", effect);
        }
        if (json_is_true(json_object_get(spec, "unschedulable")) && !said)
                text_append(ret, UNSCHEDULABLE);
}
