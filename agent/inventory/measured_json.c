#include "agent/inventory/measured_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/text.h"
#include "base/timestamp.h"

#define VERSION    1
#define GFLOPS_MAX 1e9

json_t *measured_encode(const struct inventory *inventory)
{
        json_t *list = json_array();
        char time[TIMESTAMP_BYTES];

        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *g = &inventory->groups[i];

                if (g->measured_kernel[0] != '\0')
                        (void) json_array_append_new(
                                list, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s}", "group", g->name, "vendor",
                                                g->vendor, "model", g->model, "kernel", g->measured_kernel,
                                                "gflops", g->measured_gflops, "time",
                                                timestamp_format(g->measured_usec, time)));
        }
        return json_pack("{s:i, s:o}", "version", VERSION, "measured", list);
}

static int decode_group(const struct json_field *at, struct device_group *g, struct err *err)
{
        static const char *const known[] = { "group", "vendor", "model", "kernel", "gflops", "time", NULL };
        struct json_field time = json_field_get(at, "time");
        const char *text = "";
        int r;

        if ((r = json_field_is_object(at, err)) < 0 || (r = json_field_only(at, known, err)) < 0)
                return r;
        for (size_t i = 0; known[i] != NULL; i++)
                if ((r = json_field_require(at, known[i], err)) < 0)
                        return r;
        if ((r = json_field_text(at, "group", g->name, sizeof(g->name), err)) < 0 ||
            (r = json_field_text(at, "vendor", g->vendor, sizeof(g->vendor), err)) < 0 ||
            (r = json_field_text(at, "model", g->model, sizeof(g->model), err)) < 0 ||
            (r = json_field_text(at, "kernel", g->measured_kernel, sizeof(g->measured_kernel), err)) < 0 ||
            (r = json_field_double(at, "gflops", 0, GFLOPS_MAX, &g->measured_gflops, err)) < 0 ||
            (r = json_field_string(at, "time", &text, err)) < 0)
                return r;
        if (g->measured_kernel[0] == '\0' || g->measured_gflops <= 0)
                return json_field_error(at, err, "measured nothing");
        if (timestamp_parse(text, &g->measured_usec) < 0 || g->measured_usec == 0)
                return json_field_error(&time, err, "must be a time such as 2026-11-21T10:00:00Z");
        return 0;
}

int measured_decode(const json_t *value, struct measured_list *ret, struct err *err)
{
        static const char *const known[] = { "version", "measured", NULL };
        struct json_field root = json_field_root(value), list;
        struct measured_list all = { NULL, 0 };
        unsigned version = 0;
        int r;

        if ((r = json_field_is_object(&root, err)) < 0 || (r = json_field_only(&root, known, err)) < 0 ||
            (r = json_field_require(&root, "version", err)) < 0 ||
            (r = json_field_unsigned(&root, "version", VERSION, VERSION, &version, err)) < 0 ||
            (r = json_field_array(&root, "measured", GROUPS_MAX, &list, err)) < 0)
                return r;
        all.groups = calloc(json_field_count(&list) + 1, sizeof(*all.groups));
        if (all.groups == NULL)
                return err_set(err, -ENOMEM, "no memory for what was measured");
        for (; all.count < json_field_count(&list); all.count++) {
                struct json_field at = json_field_at(&list, all.count);

                r = decode_group(&at, &all.groups[all.count], err);
                if (r < 0) {
                        measured_free(&all);
                        return r;
                }
        }
        *ret = all;
        return 0;
}

void measured_free(struct measured_list *list)
{
        free(list->groups);
        *list = (struct measured_list){ NULL, 0 };
}

void measured_apply(const struct measured_list *list, struct inventory *inventory)
{
        for (size_t i = 0; i < list->count; i++) {
                const struct device_group *from = &list->groups[i];
                struct device_group *to = inventory_find_group(inventory, from->name);

                if (to == NULL || strcmp(to->vendor, from->vendor) != 0 ||
                    strcmp(to->model, from->model) != 0)
                        continue;
                (void) text_copy(to->measured_kernel, sizeof(to->measured_kernel), from->measured_kernel);
                to->measured_gflops = from->measured_gflops;
                to->measured_usec = from->measured_usec;
        }
}
