/* Pod affinity, anti-affinity and topology spread of a Pod, and its labels, as lines. */
#include "scheduler-extender/wire/pod_neighbours.h"

#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/wire/pod_words.h"

#define NAMESPACE_NAME "kubernetes.io/metadata.name" /* the label that every Namespace has */

/* The pod whose demands are read. */
struct asker {
        const char *namespace_;
        struct json_field labels;
};

static struct asker asker_of(const struct json_field *root)
{
        struct json_field metadata = json_field_get(root, "metadata");
        const char *name = pod_words_of(&metadata, "namespace");

        return (struct asker){ .namespace_ = name != NULL ? name : "default",
                               .labels = json_field_get(&metadata, "labels") };
}

void pod_neighbours_labels(const json_t *pod, struct text *ret)
{
        struct json_field root = json_field_root(pod);
        struct asker asker = asker_of(&root);
        size_t bytes = strlen(asker.namespace_) + 1;
        const char *key;
        json_t *value;

        text_append(ret, asker.namespace_);
        text_append_char(ret, '\n');
        json_object_foreach((json_t *) asker.labels.value, key, value)
        {
                const char *word = pod_words_is_key(key) ? pod_words_of(&asker.labels, key) : NULL;

                bytes += strlen(key) + (word == NULL ? 0 : strlen(word)) + 2;
                if (word == NULL || bytes > POD_NEIGHBOURS_LABEL_BYTES)
                        continue;
                text_append(ret, key);
                text_append_char(ret, '=');
                text_append(ret, word);
                text_append_char(ret, '\n');
        }
}

static void put_word(struct text *ret, const char *word)
{
        text_append_char(ret, '\t');
        text_append(ret, word);
}

static void put_values(const struct json_field *values, struct text *ret)
{
        for (size_t i = 0; i < json_field_count(values); i++) {
                struct json_field value = json_field_at(values, i);

                if (pod_words_at(&value) != NULL)
                        put_word(ret, pod_words_at(&value));
        }
}

static char operator_of(const struct json_field *expression)
{
        static const struct {
                const char *name;
                char sign;
        } operators[] = { { "In", 'i' }, { "NotIn", 'n' }, { "Exists", 'e' }, { "DoesNotExist", 'a' } };
        const char *name = pod_words_or_none(expression, "operator");

        for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
                if (strcmp(operators[i].name, name) == 0)
                        return operators[i].sign;
        return '\0';
}

static bool put_expressions(const struct json_field *expressions, struct text *ret)
{
        for (size_t i = 0; i < json_field_count(expressions); i++) {
                struct json_field expression = json_field_at(expressions, i),
                                  values = json_field_get(&expression, "values");
                const char *key = pod_words_of(&expression, "key");
                char relation = operator_of(&expression);

                if (key == NULL || relation == '\0')
                        return false;
                text_append_char(ret, relation);
                put_word(ret, key);
                put_values(&values, ret);
                text_append_char(ret, '\n');
        }
        return true;
}

static void put_equal(char relation, const char *key, const char *value, struct text *ret)
{
        text_append_char(ret, relation);
        put_word(ret, key);
        put_word(ret, value);
        text_append_char(ret, '\n');
}

/* Labels of the asker's own that are to be alike, or unlike. */
static void put_own(const struct json_field *keys, const struct asker *asker, char relation, struct text *ret)
{
        for (size_t i = 0; i < json_field_count(keys); i++) {
                struct json_field at = json_field_at(keys, i);
                const char *key = pod_words_at(&at), *value = NULL;

                if (key != NULL)
                        value = pod_words_of(&asker->labels, key);
                if (value != NULL)
                        put_equal(relation, key, value, ret);
        }
}

/* The labels of the pods that a term speaks of. No selector selects nothing, an empty one everything. */
static bool put_selector(const struct json_field *term, const struct asker *asker, struct text *ret)
{
        struct json_field selector = json_field_get(term, "labelSelector"),
                          equal = json_field_get(&selector, "matchLabels"),
                          expressions = json_field_get(&selector, "matchExpressions"),
                          alike = json_field_get(term, "matchLabelKeys"),
                          unlike = json_field_get(term, "mismatchLabelKeys");
        const char *key;
        json_t *value;

        if (!json_is_object(selector.value)) {
                text_append(ret, "x\n");
                return true;
        }
        json_object_foreach((json_t *) equal.value, key, value)
        {
                const char *word = pod_words_is_key(key) ? pod_words_of(&equal, key) : NULL;

                if (word == NULL)
                        return false;
                put_equal('i', key, word, ret);
        }
        put_own(&alike, asker, 'i', ret);
        put_own(&unlike, asker, 'n', ret);
        return put_expressions(&expressions, ret);
}

/* Of all namespaces. */
static bool is_empty_selector(const struct json_field *selector)
{
        struct json_field equal = json_field_get(selector, "matchLabels"),
                          expressions = json_field_get(selector, "matchExpressions");

        return json_object_size(equal.value) + json_field_count(&expressions) == 0;
}

/* The names that a selector of Namespaces means. Return: false = that cannot be told. */
static bool put_selected_names(const struct json_field *selector, struct text *ret)
{
        struct json_field equal = json_field_get(selector, "matchLabels"),
                          expressions = json_field_get(selector, "matchExpressions"),
                          first = json_field_at(&expressions, 0), values = json_field_get(&first, "values");
        const char *name = pod_words_of(&equal, NAMESPACE_NAME);
        size_t equals = json_object_size(equal.value), count = json_field_count(&expressions);

        if (equals + count == 0) {
                put_word(ret, "*");
                return true;
        }
        if (equals == 1 && count == 0 && name != NULL) {
                put_word(ret, name);
                return true;
        }
        if (equals > 0 || count != 1 || operator_of(&first) != 'i' ||
            strcmp(pod_words_or_none(&first, "key"), NAMESPACE_NAME) != 0)
                return false;
        put_values(&values, ret);
        return true;
}

static bool put_namespaces(const struct json_field *term, const struct asker *asker, struct text *ret)
{
        struct json_field names = json_field_get(term, "namespaces"),
                          selector = json_field_get(term, "namespaceSelector");
        bool selects = json_is_object(selector.value), known = true;

        text_append_char(ret, '@');
        if (selects)
                known = put_selected_names(&selector, ret);
        if (!selects || !is_empty_selector(&selector))
                put_values(&names, ret);
        if (!selects && json_field_count(&names) == 0)
                put_word(ret, asker->namespace_);
        text_append_char(ret, '\n');
        return known;
}

/* Return: false = it cannot be judged, and nothing was appended of it. */
static bool put_term(const char *head, const struct json_field *term, const struct asker *asker,
                     struct text *ret)
{
        CLEANUP(text_free) struct text lines = { 0 };
        const char *key = pod_words_of(term, "topologyKey");

        if (key == NULL || key[0] == '\0')
                return false;
        text_printf(&lines, head, key); /* NOLINT: the forms are below */
        if (!put_namespaces(term, asker, &lines) || !put_selector(term, asker, &lines) || lines.failed)
                return false;
        text_append(ret, lines.data);
        return true;
}

static void put_affinity(const struct json_field *affinity, const char *kind, const char *head,
                         const struct asker *asker, struct text *ret)
{
        CLEANUP(text_free) struct text lines = { 0 };
        struct json_field of_kind = json_field_get(affinity, kind),
                          terms = json_field_get(&of_kind, "requiredDuringSchedulingIgnoredDuringExecution");
        bool all = true;

        for (size_t i = 0; i < json_field_count(&terms); i++) {
                struct json_field term = json_field_at(&terms, i);

                all = put_term(head, &term, asker, &lines) && all;
        }
        if (lines.data != NULL && !lines.failed && (all || head[0] == 'A'))
                text_append(ret, lines.data);
}

static void put_spread(const struct json_field *constraint, const struct asker *asker, struct text *ret)
{
        int64_t skew = 1, least = 0;
        char head[80];

        if (strcmp(pod_words_or_none(constraint, "whenUnsatisfiable"), "DoNotSchedule") != 0 ||
            json_field_int64(constraint, "maxSkew", 1, INT32_MAX, &skew, NULL) < 0 ||
            json_field_int64(constraint, "minDomains", 0, INT32_MAX, &least, NULL) < 0)
                return;
        /* It fits: two numbers of 32 bits. */
        (void) text_format(
                head, sizeof(head), "S\t%%s\t%lld\t%lld\t%s%s-\n", (long long) skew, (long long) least,
                strcmp(pod_words_or_none(constraint, "nodeAffinityPolicy"), "Ignore") == 0 ? "" : "m",
                strcmp(pod_words_or_none(constraint, "nodeTaintsPolicy"), "Honor") == 0 ? "t" : "");
        (void) put_term(head, constraint, asker, ret);
}

void pod_neighbours_demands(const json_t *pod, struct text *ret)
{
        struct json_field root = json_field_root(pod), spec = json_field_get(&root, "spec"),
                          affinity = json_field_get(&spec, "affinity"),
                          spreads = json_field_get(&spec, "topologySpreadConstraints");
        CLEANUP(text_free) struct text lines = { .max_bytes = POD_NEIGHBOURS_DEMAND_BYTES };
        struct asker asker = asker_of(&root);

        put_affinity(&affinity, "podAffinity", "N\t%s\n", &asker, &lines);
        put_affinity(&affinity, "podAntiAffinity", "A\t%s\n", &asker, &lines);
        for (size_t i = 0; i < json_field_count(&spreads); i++) {
                struct json_field constraint = json_field_at(&spreads, i);

                put_spread(&constraint, &asker, &lines);
        }
        if (lines.data != NULL && !lines.failed)
                text_append(ret, lines.data);
}
