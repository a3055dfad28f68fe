/* Fusion: the longest rule that takes no value from another reader; the rows that a user may add. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/model.h"
#include "trainer/operators/fusion.h"
#include "trainer/operators/fusion_file.h"

/* Node i reads i - 1. */
static struct fusion_graph chain(const enum op *ops, size_t count)
{
        struct fusion_graph g = { .count = count };

        for (size_t i = 0; i < count; i++) {
                g.nodes[i].op = ops[i];
                g.nodes[i].input_count = i > 0;
                g.nodes[i].inputs[0] = i > 0 ? i - 1 : 0;
        }
        return g;
}

static void assert_rule(const struct fusion_match *m, const char *name)
{
        if (name == NULL)
                assert_null(m->rule);
        else
                assert_string_equal(m->rule != NULL ? m->rule->name : "none", name);
}

static void the_longest_rule_counts(void **state)
{
        static const enum op ops[] = { OP_CONVOLUTION, OP_BIAS, OP_RELU,   OP_POOL,
                                       OP_MATMUL,      OP_BIAS, OP_SOFTMAX };
        struct fusion_graph g = chain(ops, 7);
        struct fusion_table t = fusion_built_in(0);
        struct fusion_match m = fusion_match(&g, &t, 0);

        (void) state;
        assert_rule(&m, "convolution+bias+ramp+pool");
        assert_int_equal(m.members[3], 3);
        m = fusion_match(&g, &t, 4);
        assert_rule(&m, "matmul+bias");
        m = fusion_match(&g, &t, 6);
        assert_rule(&m, NULL);
        t = fusion_built_in(OP_BIT(OP_CONVOLUTION_BIAS_RELU_POOL));
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "convolution+bias+ramp");
}

/* 0 matmul -> 1 bias -> 2 ramp -> 3 matmul, and 4 softmax reads the bias too. */
static void a_value_with_two_readers_is_not_fused_away(void **state)
{
        static const enum op ops[] = { OP_MATMUL, OP_BIAS, OP_RELU, OP_MATMUL, OP_SOFTMAX };
        struct fusion_graph g = chain(ops, 5);
        struct fusion_table t = fusion_built_in(0);
        struct fusion_match m;

        (void) state;
        g.nodes[4].inputs[0] = 1;
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "matmul+bias"); /* whose result both read */
        assert_non_null(m.refused);
        assert_string_equal(m.refused->name, "matmul+bias+ramp");
        assert_int_equal(m.read_elsewhere, 1);
        assert_true(fusion_drop(&t, (const enum op[]){ OP_MATMUL, OP_BIAS }, 2));
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, NULL);
        assert_non_null(m.refused);
        g.nodes[4].inputs[0] = 3; /* a chain again */
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "matmul+bias+ramp");
        assert_null(m.refused);
}

/* A residual: 3 adds what 0 and 2 give. */
static void a_residual_is_not_fused_around(void **state)
{
        static const enum op ops[] = { OP_MATMUL, OP_BIAS, OP_RELU, OP_ADD };
        struct fusion_graph g = chain(ops, 4);
        struct fusion_table t = fusion_built_in(0);
        struct fusion_match m;

        (void) state;
        g.nodes[3].input_count = 2;
        g.nodes[3].inputs[1] = 0;
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, NULL); /* node 3 reads the product: neither of the two rules holds */
        assert_string_equal(m.refused != NULL ? m.refused->name : "none", "matmul+bias+ramp");
        assert_int_equal(m.read_elsewhere, 0);
        g.nodes[3].inputs[1] = 2; /* twice what 2 gives, which is a result anyway */
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "matmul+bias+ramp");
}

/* Of a model's own branches: what is fused, and where each of them comes from then. */
static void a_model_with_branches_is_fused(void **state)
{
        static const struct {
                enum op op;
                size_t layer, around;
        } want[] = {
                { OP_CONVOLUTION_BIAS_RELU_POOL, 0, 0 }, { OP_CONVOLUTION_BIAS_RELU, 1, 0 },
                { OP_CONVOLUTION_BIAS, 1, 0 },           { OP_ADD_RELU, 1, 2 },
                { OP_CONVOLUTION_BIAS_RELU_POOL, 2, 0 }, { OP_CONVOLUTION_BIAS_RELU, 3, 0 },
                { OP_CONVOLUTION_BIAS, 3, 0 },           { OP_ADD_RELU, 3, 2 },
                { OP_MATMUL_BIAS_RELU, 4, 0 },           { OP_MATMUL_BIAS, 5, 0 },
                { OP_SOFTMAX_CROSS_ENTROPY, 5, 0 },
        };
        const struct model_size size = { .input = { 12, 12, 1 }, .classes = 10 };
        struct fusion_table t = fusion_built_in(0);
        struct model m, alone;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(model_build("resnet", &size, &m, &err), 0);
        assert_int_equal(m.layer_count, 6);
        assert_int_equal(m.unit_count, 8);
        alone = m;
        model_fuse(&m, &t, NULL, NULL);
        assert_int_equal(m.node_count, ARRAY_SIZE(want));
        for (size_t i = 0; i < m.node_count; i++) {
                assert_int_equal(m.nodes[i].op, want[i].op);
                assert_int_equal(m.nodes[i].layer, want[i].layer);
                assert_int_equal(m.nodes[i].around, want[i].around);
        }
        t.count = 0;
        model_fuse(&alone, &t, NULL, NULL);
        assert_int_equal(alone.node_count, 29);
        assert_int_equal(alone.nodes[9].op, OP_ADD);
        assert_int_equal(alone.nodes[9].around, 5);
}

/* What follows in the list need not follow in the graph. */
static void readers_are_followed_not_neighbours(void **state)
{
        static const enum op ops[] = { OP_MATMUL, OP_MATMUL, OP_BIAS, OP_BIAS, OP_RELU };
        struct fusion_graph g = chain(ops, 5);
        struct fusion_table t = fusion_built_in(0);
        struct fusion_match m;

        (void) state;
        g.nodes[1].input_count = 0;
        g.nodes[2].inputs[0] = 0; /* 0 -> 2 -> 4, 1 -> 3 */
        g.nodes[3].inputs[0] = 1;
        g.nodes[4].inputs[0] = 2;
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "matmul+bias+ramp");
        assert_int_equal(m.members[1], 2);
        assert_int_equal(m.members[2], 4);
        m = fusion_match(&g, &t, 1);
        assert_rule(&m, "matmul+bias");
        assert_int_equal(m.members[1], 3);
}

static void a_row_replaces_the_one_with_its_operators(void **state)
{
        struct fusion_rule rule = {
                .name = "mine", .part_count = 2, .parts = { OP_MATMUL, OP_BIAS }, .fused = OP_OWN
        };
        struct fusion_table t = fusion_built_in(0);
        size_t count = t.count;
        struct fusion_graph g = chain((const enum op[]){ OP_MATMUL, OP_BIAS, OP_SOFTMAX }, 3);
        struct fusion_match m;

        (void) state;
        assert_true(fusion_put(&t, &rule));
        assert_int_equal(t.count, count);
        m = fusion_match(&g, &t, 0);
        assert_rule(&m, "mine");
        rule.part_count = 3;
        rule.parts[2] = OP_SOFTMAX;
        assert_true(fusion_put(&t, &rule));
        assert_int_equal(t.count, count + 1);
        t.count = FUSION_RULES_MAX;
        rule.parts[2] = OP_POOL;
        assert_false(fusion_put(&t, &rule));
        assert_false(fusion_drop(&t, rule.parts, 3));
}

static void a_file_brings_rows(void **state)
{
        static const char text[] =
                "{\"rules\":[{\"operators\":[\"matmul\",\"bias\",\"activation\"],\"fused\":\"dense_silu\","
                "\"library\":\"./"
                "own.so\"},{\"operators\":[\"softmax\",\"cross-entropy\"],\"fused\":\"none\"}]}";
        struct fusion_file f;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(fusion_file_parse("own.json", text, strlen(text), &f, &err), 0);
        assert_int_equal(f.count, 2);
        assert_int_equal(f.rows[0].part_count, 3);
        assert_int_equal(f.rows[0].parts[2], OP_ACTIVATION);
        assert_string_equal(f.rows[0].library, "./own.so");
        assert_false(fusion_file_never(&f.rows[0]));
        assert_true(fusion_file_never(&f.rows[1]));
}

static void what_no_pass_could_do_is_refused(void **state)
{
        static const struct {
                const char *operators, *rest, *words;
        } rows[] = {
                { "matmul", "'fused':'none'", "rules[0]: operators: 2 to 4" },
                { "matmul','bias','ramp','pool','softmax", "'fused':'none'", "rules[0].operators" },
                { "matmul','relu", "'fused':'none'", "must be one of matmul, bias, ramp" },
                { "ramp','matmul", "'fused':'x','library':'x.so'", "'matmul' has weights" },
                { "ramp','add", "'fused':'none'", "'add' reads two values" },
                { "cross-entropy','bias", "'fused':'none'", "may only stand last" },
                { "matmul','bias','bias", "'fused':'none'", "one 'bias' at most" },
                { "matmul','bias", "'library':'x.so'", "fused: is missing" },
                { "matmul','bias", "'fused':'x'", "remuda_fused_x" },
                { "matmul','bias", "'fused':'a+b','library':'x.so'", "no name of a function" },
                { "matmul','bias", "'fused':'none','library':'x.so'", "leave it out" },
                { "matmul','bias", "'fused':'none','speed':3", "speed: is not known here" },
        };
        char text[256];
        struct fusion_file f;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                (void) snprintf(text, sizeof(text), "{'rules':[{'operators':['%s'],%s}]}", rows[i].operators,
                                rows[i].rest);
                for (char *c = text; *c != '\0'; c++)
                        *c = *c == '\'' ? '"' : *c;
                assert_int_equal(fusion_file_parse("own.json", text, strlen(text), &f, &err), -EINVAL);
                if (strstr(err.msg, rows[i].words) == NULL || strncmp(err.msg, "own.json: ", 10) != 0)
                        fail_msg("%s: %s", text, err.msg);
        }
        assert_int_equal(fusion_file_parse("own.json", "{\"rules\": [", 11, &f, &err), -EINVAL);
        assert_int_equal(fusion_file_parse("own.json", "{}", 2, &f, &err), -EINVAL);
        assert_int_equal(fusion_file_parse("own.json", "{\"rules\": [7]}", 14, &f, &err), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_longest_rule_counts),
                cmocka_unit_test(a_value_with_two_readers_is_not_fused_away),
                cmocka_unit_test(a_residual_is_not_fused_around),
                cmocka_unit_test(a_model_with_branches_is_fused),
                cmocka_unit_test(readers_are_followed_not_neighbours),
                cmocka_unit_test(a_row_replaces_the_one_with_its_operators),
                cmocka_unit_test(a_file_brings_rows),
                cmocka_unit_test(what_no_pass_could_do_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
