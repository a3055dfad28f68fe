/* Selectors of budgets, and what is left of each. */
#include "store/budgets.h"

#include <string.h>

#include "base/text.h"
#include "store/metadata.h"
#include "store/store_internal.h"

static bool has_value(const json_t *values, const char *value)
{
        for (size_t i = 0; value != NULL && i < json_array_size(values); i++) {
                const char *one = json_string_value(json_array_get(values, i));

                if (one != NULL && strcmp(one, value) == 0)
                        return true;
        }
        return false;
}

static bool expression_matches(const json_t *expression, const json_t *labels)
{
        const char *key = json_string_value(json_object_get(expression, "key")),
                   *operator= json_string_value(json_object_get(expression, "operator")),
                   *value = key == NULL ? NULL : json_string_value(json_object_get(labels, key));
        const json_t *values = json_object_get(expression, "values");

        if (operator== NULL)
                return false;
        return strcmp(operator, "In") == 0             ? has_value(values, value)
               : strcmp(operator, "NotIn") == 0        ? !has_value(values, value)
               : strcmp(operator, "Exists") == 0       ? value != NULL
               : strcmp(operator, "DoesNotExist") == 0 ? value == NULL
                                                       : false;
}

/* An empty selector is everybody's, none is nobody's. */
static bool matches(const json_t *budget, const json_t *pod)
{
        const json_t *selector = json_object_get(json_object_get(budget, "spec"), "selector"),
                     *labels = json_object_get(json_object_get(pod, "metadata"), "labels"),
                     *expressions = json_object_get(selector, "matchExpressions"), *wanted;
        const char *key;

        if (!json_is_object(selector))
                return false;
        json_object_foreach(json_object_get(selector, "matchLabels"), key,
                            wanted) if (!json_equal(json_object_get(labels, key), wanted)) return false;
        for (size_t i = 0; i < json_array_size(expressions); i++)
                if (!expression_matches(json_array_get(expressions, i), labels))
                        return false;
        return true;
}

static json_int_t left_of(const json_t *budget)
{
        return json_integer_value(json_object_get(json_object_get(budget, "status"), "disruptionsAllowed"));
}

/* Others are not counted by any budget. */
static bool is_healthy(const json_t *pod)
{
        const json_t *conditions = json_object_get(json_object_get(pod, "status"), "conditions");

        for (size_t i = 0; i < json_array_size(conditions); i++) {
                const json_t *condition = json_array_get(conditions, i);
                const char *type = json_string_value(json_object_get(condition, "type")),
                           *status = json_string_value(json_object_get(condition, "status"));

                if (type != NULL && status != NULL && strcmp(type, "Ready") == 0)
                        return strcmp(status, "True") == 0;
        }
        return false;
}

void budgets_begin(json_t *budgets)
{
        for (size_t i = json_array_size(budgets); i-- > 0;)
                if (left_of(json_array_get(budgets, i)) < 1)
                        (void) json_array_remove(budgets, i);
}

bool budgets_take(json_t *budgets, const json_t *pod, char *why, size_t bytes)
{
        if (!is_healthy(pod))
                return true;
        for (size_t i = 0; i < json_array_size(budgets); i++) {
                const json_t *budget = json_array_get(budgets, i);

                if (left_of(budget) > 0 || !matches(budget, pod))
                        continue;
                (void) text_format(why, bytes, "the disruption budget %s has no room left beside the others",
                                   metadata_of(budget).name);
                return false;
        }
        for (size_t i = 0; i < json_array_size(budgets); i++) {
                const json_t *budget = json_array_get(budgets, i);

                if (matches(budget, pod))
                        (void) json_object_set_new(json_object_get(budget, "status"), "disruptionsAllowed",
                                                   json_integer(left_of(budget) - 1));
        }
        return true;
}

void budgets_judge(struct store *store, const char *namespace_, const char *const *names, size_t count,
                   budgets_refuse refuse, store_answer answer, void *userdata)
{
        if (store->backend->judge_evictions == NULL)
                store_answer_later(store, answer, userdata, 0, "%s", "");
        else
                store->backend->judge_evictions(store, namespace_, names, count, refuse, answer, userdata);
}
