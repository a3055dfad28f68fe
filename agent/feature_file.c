/* Feature file: the lines, and the rename that makes them one file. */
#include "agent/feature_file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "io/whole_file.h"

/* A label's name takes letters, digits, '-', '_' and '.'. */
static void append_word(struct text *out, const char *word)
{
        for (; *word != '\0'; word++)
                text_append_char(out, isalnum((unsigned char) *word) || strchr("-_.", *word) != NULL ? *word
                                                                                                     : '-');
}

static unsigned total_of(const struct inventory *inventory, const char *vendor, const char *model)
{
        unsigned total = 0;

        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *g = &inventory->groups[i];

                if (strcmp(g->vendor, vendor) == 0 && (model == NULL || strcmp(g->model, model) == 0))
                        total += g->total;
        }
        return total;
}

/* Is this the first group of its vendor (and model)? */
static bool is_first(const struct inventory *inventory, size_t at, bool by_model)
{
        const struct device_group *g = &inventory->groups[at];

        for (size_t i = 0; i < at; i++)
                if (strcmp(inventory->groups[i].vendor, g->vendor) == 0 &&
                    (!by_model || strcmp(inventory->groups[i].model, g->model) == 0))
                        return false;
        return true;
}

/* The lines, in the order of the inventory's groups. */
static void write_lines(const struct inventory *inventory, struct text *out)
{
        text_printf(out, "remuda.dev/node-class=%s\nremuda.dev/pool=%s\n",
                    node_class_name(inventory->node_class), inventory->pool);
        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *g = &inventory->groups[i];

                if (is_first(inventory, i, false))
                        text_printf(out, "remuda.dev/%s.count=%u\n", g->vendor,
                                    total_of(inventory, g->vendor, NULL));
                if (g->model[0] != '\0' && is_first(inventory, i, true)) {
                        text_printf(out, "remuda.dev/%s.", g->vendor);
                        append_word(out, g->model);
                        text_printf(out, ".count=%u\n", total_of(inventory, g->vendor, g->model));
                }
                text_printf(out, "remuda.dev/group.%s=%u\n", g->name, g->total);
        }
}

int feature_file_write(const char *path, const struct inventory *inventory, struct err *err)
{
        struct text text = { 0 };
        int r;

        write_lines(inventory, &text);
        r = text.failed ? err_set(err, -ENOMEM, "no memory for '%s'", path)
                        : whole_file_write(path, text.data, text.size_bytes, 0644, 0, err);
        text_free(&text);
        return r;
}
