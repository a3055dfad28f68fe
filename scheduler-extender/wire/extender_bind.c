/* The table of an ExtenderBindingArgs. */
#include "scheduler-extender/wire/extender_bind.h"

#include <errno.h>

#include "base/json/json_table.h"

#define AT(member) JSON_TABLE_AT(struct extender_bind, member), .required = true, .min = 1

/* clang-format off */
static const struct json_table_row rows[] = {
        { "PodName",      JSON_TABLE_BORROWED, AT(pod_name) },
        { "PodNamespace", JSON_TABLE_BORROWED, AT(pod_namespace) },
        { "PodUID",       JSON_TABLE_BORROWED, AT(pod_uid) },
        { "Node",         JSON_TABLE_BORROWED, AT(node) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table table = { .rows = rows, .size_bytes = sizeof(struct extender_bind) };

int extender_bind_decode(const char *body, size_t body_bytes, struct extender_bind *ret, struct err *err)
{
        json_error_t where;

        *ret = (struct extender_bind){ 0 };
        ret->json = json_loadb(body, body_bytes, JSON_REJECT_DUPLICATES, &where);
        if (ret->json == NULL)
                return err_set(err, -EBADMSG, "line %d, column %d: %s", where.line, where.column, where.text);
        return json_table_decode(&table, ret->json, ret, err);
}

void extender_bind_free(struct extender_bind *args)
{
        json_decref(args->json);
        *args = (struct extender_bind){ 0 };
}
