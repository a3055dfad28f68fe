/* Libraries first, then the file of rules, whose rows are the user's last word. */
#include "trainer/operators/own_operators.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "trainer/operators/conformance.h"
#include "trainer/operators/fusion_file.h"
#include "trainer/operators/operator_library.h"

static int add_row(const struct fusion_file_row *row, const struct backend *b, struct fusion_table *rules,
                   struct err *err)
{
        struct fusion_rule rule = { .part_count = row->part_count, .fused = OP_OWN };

        if (fusion_file_never(row)) {
                (void) fusion_drop(rules, row->parts, row->part_count); /* no rule had them: as it was */
                return 0;
        }
        for (size_t i = 0; i < row->part_count; i++)
                rule.parts[i] = row->parts[i];
        (void) text_copy(rule.name, sizeof(rule.name), row->fused);
        if (operator_library_fused(row->fused, row->library, b, &rule.own, err) < 0)
                return err->code;
        return fusion_put(rules, &rule) ? 0 : err_set(err, -EINVAL, "--fusion: too many rules");
}

static int add_file(const char *path, const struct backend *b, struct fusion_table *rules, struct err *err)
{
        CLEANUP(free_p) char *text = NULL;
        struct fusion_file file;
        size_t bytes;
        int r = read_file(path, FUSION_FILE_MAX_BYTES, &text, &bytes, err);

        if (r == 0)
                r = fusion_file_parse(path, text, bytes, &file, err);
        if (r < 0)
                return err_wrap(err, r, "--fusion");
        for (size_t i = 0; r == 0 && i < file.count; i++)
                r = add_row(&file.rows[i], b, rules, err);
        return r;
}

int own_operators_load(const struct train_options *o, struct backend *b, struct fusion_table *ret,
                       struct err *err)
{
        int r = 0;

        if (o->operator_library != NULL)
                r = operator_library_load(o->operator_library, b, err);
        if (r == 0 && o->activation != NULL)
                r = operator_library_activation(o->activation, b, err);
        *ret = fusion_built_in(b->bypass);
        if (r == 0 && o->fusion != NULL)
                r = add_file(o->fusion, b, ret, err);
        return r;
}

int own_operators_judge(const struct train_options *o, const struct backend *b,
                        const struct fusion_table *rules, struct err *err)
{
        bool any = o->operator_library != NULL || o->activation != NULL;

        for (size_t i = 0; i < rules->count; i++)
                any = any || rules->rules[i].fused == OP_OWN;
        if (any && conformance_judge(b, rules, err) < 0)
                return err_wrap(err, err->code, "an operator of a library is wrong");
        return 0;
}
