/* One table: each row stands for itself, so that a wrong one hides no other. */
#include "store/metadata.h"

#include "base/json/json_table.h"

struct metadata metadata_of(const json_t *object)
{
#define AT(member) JSON_TABLE_BORROWED, JSON_TABLE_AT(struct metadata, member)
        /* clang-format off */
        static const struct json_table_row rows[] = {
                { "kind",                       AT(kind) },
                { "apiVersion",                 AT(api_version) },
                { "metadata.name",              AT(name) },
                { "metadata.namespace",         AT(namespace_) },
                { "metadata.uid",               AT(uid) },
                { "metadata.resourceVersion",   AT(version) },
                { "metadata.deletionTimestamp", AT(deleted) },
                { "spec.nodeName",              AT(node) },
                { .name = NULL },
        };
        /* clang-format on */
        static const struct json_table table = { .rows = rows,
                                                 .size_bytes = sizeof(struct metadata),
                                                 .lenient = true };
        struct metadata metadata = { "", "", "", "", "", "", "", "" };

        (void) json_table_decode(&table, object, &metadata, NULL);
        return metadata;
}
