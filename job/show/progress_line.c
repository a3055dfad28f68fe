/* The table of a progress line. */
#include "job/show/progress_line.h"

#include <math.h>

#include "base/json/json_table.h"

#define AT(member) JSON_TABLE_AT(struct progress_line, member)

/* clang-format off */
static const struct json_table_row rows[] = {
        { "step",           JSON_TABLE_COUNT,  AT(step) },
        { "epoch",          JSON_TABLE_COUNT,  AT(epoch) },
        { "seconds",        JSON_TABLE_DOUBLE, AT(seconds) },
        { "samples",        JSON_TABLE_COUNT,  AT(samples) },
        { "loss",           JSON_TABLE_DOUBLE, AT(loss) },
        { "accuracy",       JSON_TABLE_DOUBLE, AT(accuracy) },
        { "begins_seconds", JSON_TABLE_DOUBLE, AT(begins_seconds) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table table = { .rows = rows,
                                         .size_bytes = sizeof(struct progress_line),
                                         .lenient = true };

bool progress_line_read(const char *line, struct progress_line *ret)
{
        json_t *value = json_loads(line, 0, NULL);
        bool good = json_is_object(value);

        *ret = (struct progress_line){ NAN, NAN, NAN, NAN, NAN, NAN, NAN };
        (void) json_table_decode(&table, value, ret, NULL);
        json_decref(value);
        return good;
}
