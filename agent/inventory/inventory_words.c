/* Two words in the object of an inventory. */
#include "agent/inventory/inventory_words.h"

#include <string.h>

#include "agent/inventory/summary.h"
#include "base/json/json_field.h"
#include "base/json/json_read.h"

const char *inventory_words_owner(const json_t *object)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          owners = json_field_get(&metadata, "ownerReferences");

        for (size_t i = 0; i < json_field_count(&owners); i++) {
                struct json_field owner = json_field_at(&owners, i);
                const char *kind = "", *uid = "";

                if (json_field_string(&owner, "kind", &kind, NULL) == 0 && strcmp(kind, "Node") == 0 &&
                    json_field_string(&owner, "uid", &uid, NULL) == 0)
                        return uid;
        }
        return "";
}

bool inventory_words_leaves(const json_t *object)
{
        const json_t *conditions = json_object_get(json_object_get(object, "status"), "conditions"),
                     *condition;
        size_t i;

        json_array_foreach(conditions, i, condition)
        {
                if (strcmp(json_read_word(condition, "type"), "Ready") == 0)
                        return strcmp(json_read_word(condition, "reason"), SUMMARY_LEAVES) == 0;
        }
        return false;
}
