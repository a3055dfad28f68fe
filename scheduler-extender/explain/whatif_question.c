/* Questions as text. */
#include "scheduler-extender/explain/whatif_question.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/yaml/yaml_parse.h"

void whatif_question_add(const json_t *documents, json_t *list)
{
        json_t *document;
        size_t i;

        json_array_foreach(documents, i, document)
        {
                struct json_field root = json_field_root(document), items = json_field_get(&root, "items");

                if (json_is_array(items.value))
                        (void) json_array_extend(list, (json_t *) items.value);
                else if (json_is_object(document) && json_object_size(document) > 0)
                        (void) json_array_append(list, document);
        }
}

static int read_json(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        json_error_t where;

        *ret = json_loadb(bytes, size_bytes, JSON_REJECT_DUPLICATES, &where);
        return *ret != NULL ? 0
                            : err_set(err, -EBADMSG, "line %d, column %d: %s", where.line, where.column,
                                      where.text);
}

static int read_yaml(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        json_t *documents = NULL, *pods;
        int r = yaml_parse_all(bytes, size_bytes, &documents, err);

        if (r < 0)
                return r;
        if (json_array_size(documents) == 1) {
                *ret = json_incref(json_array_get(documents, 0));
        } else {
                pods = json_array();
                whatif_question_add(documents, pods);
                *ret = json_pack("{s:o}", "pods", pods);
        }
        json_decref(documents);
        return *ret != NULL ? 0 : err_set(err, -ENOMEM, "no memory");
}

/* What begins with a brace or a bracket is JSON, and nothing but that: so its mistakes are told as such. */
int whatif_question_read(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        size_t blank = strspn(bytes, " \t\r\n");
        json_t *question = NULL;
        int r = size_bytes == 0 || bytes[blank] == '{' || bytes[blank] == '['
                        ? read_json(bytes, size_bytes, &question, err)
                        : read_yaml(bytes, size_bytes, &question, err);

        if (r == 0 && !json_is_object(question)) {
                json_decref(question);
                r = err_set(err, -EBADMSG, "the question must be an object");
        }
        if (r == 0)
                *ret = question;
        return r;
}
