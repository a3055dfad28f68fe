/* The table of the file of measurements, and what of it is taken over into an inventory. */
#include "agent/inventory/measured_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json_table.h"
#include "base/text.h"

#define VERSION    1
#define GFLOPS_MAX 1e9

static int measured_something(const struct json_field *at, void *object, struct err *err)
{
        struct device_group *g = object;

        device_group_complete(g);
        if (g->measured_kernel[0] == '\0' || g->measured_gflops <= 0 || g->measured_usec == 0)
                return json_field_error(at, err, "measured nothing");
        return 0;
}

static bool is_precision(const char *text)
{
        return strcmp(text, "bf16") == 0 || strcmp(text, "fp16") == 0 || strcmp(text, "fp32") == 0;
}

static const struct json_table_rule precision = { is_precision, "is no precision; bf16, fp16 or fp32" };

struct file {
        unsigned version;
        struct measured_json_list list;
};

#define GROUP(member) JSON_TABLE_AT(struct device_group, member), .required = true
#define AT(member)    JSON_TABLE_AT(struct file, member)

/* clang-format off */
static const struct json_table_row group_rows[] = {
        { "group",    JSON_TABLE_CHARS,  GROUP(name) },
        { "vendor",   JSON_TABLE_CHARS,  GROUP(vendor) },
        { "model",    JSON_TABLE_CHARS,  GROUP(model) },
        { "kernel",   JSON_TABLE_CHARS,  GROUP(measured_kernel) },
        { "precision", JSON_TABLE_CHARS, JSON_TABLE_AT(struct device_group, measured_precision), .rule = &precision },
        { "gflops",   JSON_TABLE_DOUBLE, GROUP(measured_gflops), .most = GFLOPS_MAX },
        { "time",     JSON_TABLE_TIME,   GROUP(measured_usec) },
        { .name = NULL },
};
static const struct json_table group_table = { .rows = group_rows, .size_bytes = sizeof(struct device_group),
                                               .strict = true, .check = measured_something };
static const struct json_table_row file_rows[] = {
        { "version",  JSON_TABLE_UINT, AT(version), .min = VERSION, .max = VERSION, .required = true },
        { "measured", JSON_TABLE_LIST, AT(list.groups), .table = &group_table,
          .count = offsetof(struct file, list.count), .max = GROUPS_MAX },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true };
/* clang-format on */

json_t *measured_json_encode(const struct inventory *inventory)
{
        struct file file = { .version = VERSION };
        json_t *ret = NULL;

        file.list.groups = calloc(inventory->group_count + 1, sizeof(*file.list.groups));
        if (file.list.groups == NULL)
                return NULL;
        for (size_t i = 0; i < inventory->group_count; i++)
                if (inventory->groups[i].measured_kernel[0] != '\0')
                        file.list.groups[file.list.count++] = inventory->groups[i];
        ret = json_table_encode(&file_table, &file);
        measured_json_free(&file.list);
        return ret;
}

int measured_json_decode(const json_t *value, struct measured_json_list *ret, struct err *err)
{
        struct file file = { 0 };
        int r = json_table_decode(&file_table, value, &file, err);

        if (r == 0)
                *ret = file.list;
        return r;
}

void measured_json_free(struct measured_json_list *list)
{
        free(list->groups);
        *list = (struct measured_json_list){ NULL, 0 };
}

void measured_json_apply(const struct measured_json_list *list, struct inventory *inventory)
{
        for (size_t i = 0; i < list->count; i++) {
                const struct device_group *from = &list->groups[i];
                struct device_group *to = inventory_find_group(inventory, from->name);

                if (to == NULL || strcmp(to->vendor, from->vendor) != 0 ||
                    strcmp(to->model, from->model) != 0)
                        continue;
                (void) text_copy(to->measured_kernel, sizeof(to->measured_kernel), from->measured_kernel);
                (void) text_copy(to->measured_precision, sizeof(to->measured_precision),
                                 from->measured_precision);
                to->measured_gflops = from->measured_gflops;
                to->measured_usec = from->measured_usec;
        }
}
