/* nodeSelector, nodeAffinity and tolerations of a Pod, labels and taints of a Node, as lines. */
#include "scheduler-extender/wire/pod_node_match.h"

#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/wire/pod_words.h"

/* A line for each member whose value is a word; `form` takes both. A label of a node begins with no '!'. */
static void put_words(const struct json_field *object, const char *form, struct text *ret)
{
        const char *key;
        json_t *value;

        json_object_foreach((json_t *) object->value, key, value)
        {
                const char *word = pod_words_is_key(key) ? pod_words_of(object, key) : NULL;

                if (word != NULL && (key[0] != '!' || form[0] == '='))
                        text_printf(ret, form, key, word); /* NOLINT: the forms are below */
        }
}

static char operator_of(const struct json_field *expression, bool field)
{
        static const struct {
                const char *name;
                char sign[2]; /* of a label; of a field, '\0' = none */
        } operators[] = {
                { "In", { 'i', 'I' } },      { "NotIn", { 'n', 'N' } },
                { "Exists", { 'e', '\0' } }, { "DoesNotExist", { 'a', '\0' } },
                { "Gt", { 'g', '\0' } },     { "Lt", { 'l', '\0' } },
        };
        const char *name = pod_words_or_none(expression, "operator");

        for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
                if (strcmp(operators[i].name, name) == 0)
                        return operators[i].sign[field];
        return '\0';
}

static void put_expression(const struct json_field *expression, bool field, struct text *ret)
{
        const char *key = pod_words_of(expression, "key");
        char relation = operator_of(expression, field);
        struct json_field values = json_field_get(expression, "values");

        if (key == NULL || relation == '\0' || (field && strcmp(key, "metadata.name") != 0))
                return;
        text_append_char(ret, relation);
        if (!field)
                text_printf(ret, "\t%s", key);
        for (size_t i = 0; i < json_field_count(&values); i++) {
                struct json_field value = json_field_at(&values, i);

                if (pod_words_at(&value) != NULL)
                        text_printf(ret, "\t%s", pod_words_at(&value));
        }
        text_append_char(ret, '\n');
}

static void put_term(const struct json_field *term, struct text *ret)
{
        struct json_field labels = json_field_get(term, "matchExpressions"),
                          fields = json_field_get(term, "matchFields");
        size_t label_count = json_field_count(&labels), count = label_count + json_field_count(&fields);

        text_append(ret, count == 0 ? "|\nx\n" : "|\n"); /* an empty term selects nothing */
        for (size_t i = 0; i < count; i++) {
                bool field = i >= label_count;
                struct json_field expression =
                        field ? json_field_at(&fields, i - label_count) : json_field_at(&labels, i);

                put_expression(&expression, field, ret);
        }
}

static void put_affinity(const struct json_field *spec, struct text *ret)
{
        struct json_field affinity = json_field_get(spec, "affinity"),
                          node = json_field_get(&affinity, "nodeAffinity"),
                          required = json_field_get(&node, "requiredDuringSchedulingIgnoredDuringExecution"),
                          terms = json_field_get(&required, "nodeSelectorTerms");

        for (size_t i = 0; i < json_field_count(&terms); i++) {
                struct json_field term = json_field_at(&terms, i);

                put_term(&term, ret);
        }
}

void pod_node_match(const json_t *pod, struct text *ret)
{
        struct json_field root = json_field_root(pod), spec = json_field_get(&root, "spec"),
                          selector = json_field_get(&spec, "nodeSelector"),
                          tolerations = json_field_get(&spec, "tolerations");

        put_words(&selector, "=\t%s\t%s\n", ret);
        put_affinity(&spec, ret);
        for (size_t i = 0; i < json_field_count(&tolerations); i++) {
                struct json_field toleration = json_field_at(&tolerations, i);
                const char *relation = pod_words_or_none(&toleration, "operator");
                bool equal = relation[0] == '\0' || strcmp(relation, "Equal") == 0;

                text_printf(ret, "t\t%s\t%s\t%s\t%s\n", pod_words_or_none(&toleration, "key"),
                            equal ? "=" : "e", pod_words_or_none(&toleration, "value"),
                            pod_words_or_none(&toleration, "effect"));
        }
}

#define UNSCHEDULABLE "!node.kubernetes.io/unschedulable=:NoSchedule\n"

void pod_node_match_traits(const json_t *node, struct text *ret)
{
        struct json_field root = json_field_root(node), spec = json_field_get(&root, "spec"),
                          metadata = json_field_get(&root, "metadata"),
                          labels = json_field_get(&metadata, "labels"),
                          taints = json_field_get(&spec, "taints");
        bool unschedulable = false;

        put_words(&labels, "%s=%s\n", ret);
        (void) json_field_bool(&spec, "unschedulable", &unschedulable, NULL);
        for (size_t i = 0; i < json_field_count(&taints); i++) {
                struct json_field taint = json_field_at(&taints, i);
                const char *key = pod_words_of(&taint, "key"), *effect = pod_words_or_none(&taint, "effect");

                if (key == NULL || (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "NoExecute") != 0))
                        continue;
                unschedulable = unschedulable && strcmp(key, "node.kubernetes.io/unschedulable") != 0;
                text_printf(ret, "!%s=%s:%s\n", key, pod_words_or_none(&taint, "value"), effect);
        }
        if (unschedulable)
                text_append(ret, UNSCHEDULABLE);
}
