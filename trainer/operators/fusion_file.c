/* The rows by a table of fields; what no pass over a batch could do is refused with the row's place. */
#include "trainer/operators/fusion_file.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/json/json_table.h"

static bool has_weights(enum op op)
{
        return op == OP_MATMUL || op == OP_CONVOLUTION || op == OP_EMBEDDING;
}

bool fusion_file_never(const struct fusion_file_row *row)
{
        return strcmp(row->fused, "none") == 0;
}

static bool is_symbol(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

        return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

/* A layer begins with its weights, and a stage of a split with a layer; a pass has weights and a bias once.
 */
static int check_order(const struct json_field *at, const struct fusion_file_row *row, struct err *err)
{
        size_t biases = 0;

        for (size_t i = 0; i < row->part_count; i++) {
                enum op op = row->parts[i];

                if (i > 0 && has_weights(op))
                        return json_field_error(at, err,
                                                "operators: '%s' has weights, which a pass has once and "
                                                "first: it may only stand first",
                                                op_name(op));
                if (i > 0 && op == OP_ADD)
                        return json_field_error(at, err,
                                                "operators: 'add' reads two values, of which a pass goes "
                                                "on with one: it may only stand first");
                if (i + 1 < row->part_count && op == OP_CROSS_ENTROPY)
                        return json_field_error(at, err,
                                                "operators: 'cross-entropy' ends a model: it may only "
                                                "stand last");
                biases += op == OP_BIAS;
        }
        if (biases > 1)
                return json_field_error(at, err, "operators: one 'bias' at most, as a pass has it");
        return 0;
}

static int check_row(const struct json_field *at, void *object, struct err *err)
{
        const struct fusion_file_row *row = object;

        if (row->part_count < 2)
                return json_field_error(at, err, "operators: 2 to %d that follow each other are wanted",
                                        OP_PARTS_MAX);
        if (check_order(at, row, err) < 0)
                return err->code;
        if (fusion_file_never(row))
                return row->library[0] == '\0' ? 0
                                               : json_field_error(at, err,
                                                                  "library: nothing of it is called "
                                                                  "where fused is 'none': leave it out");
        if (!is_symbol(row->fused))
                return json_field_error(at, err,
                                        "fused: '%s' is no name of a function: letters, digits and _, "
                                        "or none",
                                        row->fused);
        if (row->library[0] == '\0')
                return json_field_error(at, err, "library: is missing: the file that has remuda_fused_%s",
                                        row->fused);
        return 0;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct fusion_file_row, member)
static const struct json_table_row operator_row = { "", JSON_TABLE_CHOICE, .size_bytes = sizeof(enum op), .names = op_single_names };
static const struct json_table_row row_rows[] = {
        { "operators", JSON_TABLE_ARRAY, AT(parts), .element = &operator_row, .count = offsetof(struct fusion_file_row, part_count),
          .required = true },
        { "fused",     JSON_TABLE_CHARS, AT(fused), .required = true },
        { "library",   JSON_TABLE_CHARS, AT(library) },
        { .name = NULL },
};
static const struct json_table row_table = { .rows = row_rows, .size_bytes = sizeof(struct fusion_file_row), .strict = true, .check = check_row };
#undef AT

#define AT(member) JSON_TABLE_AT(struct fusion_file, member)
static const struct json_table_row file_rows[] = {
        { "rules", JSON_TABLE_ARRAY, AT(rows), .table = &row_table, .count = offsetof(struct fusion_file, count), .required = true },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct fusion_file), .strict = true };
#undef AT
/* clang-format on */

int fusion_file_parse(const char *name, const char *bytes, size_t size_bytes, struct fusion_file *ret,
                      struct err *err)
{
        json_t *root = json_read(bytes, size_bytes, JSON_REJECT_DUPLICATES, err);
        int r = root == NULL ? err->code : 0;

        *ret = (struct fusion_file){ 0 };
        if (r == 0)
                r = json_table_decode(&file_table, root, ret, err);
        json_decref(root);
        if (r == 0)
                return 0;
        return err_wrap(err, r == -ENOMEM ? r : -EINVAL, "%s", name);
}
