/* Every shape rule of the ONNX reader, at what it takes and at what it refuses. A model is written a
 * statement at a time, parted by "; ":
 *
 *     in x 1 3 N      an input ("N": a size by name)      w v 2 3     weights
 *     c k 1 -1        a constant of whole numbers         c32 k 1     the same in 32 bits
 *     Op y x v @axes 0 1 @auto_pad SAME_UPPER             a node: output, inputs ("-": none), attributes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/models/network_onnx.h"

#define IN2   "in x 1 4; "
#define IN4   "in x 1 3 8 8; "
#define MOST  "9223372036854775807"
#define LEAST "-9223372036854775808"

/* clang-format off */
/* What comes out of the last operator, without the batch: "2x3". */
static const struct {
        const char *model, *output;
} taken[] = {
        /* windows */
        { IN4 "w v 4 3 3 3; Conv y x v @pads 1 1 1 1 @strides 2 2",          "4x4x4" },
        { IN4 "w v 4 1 3 3; w b 4; Conv y x v b @group 3",                   "4x6x6" },
        { IN4 "w v 4 3 3 3; Conv y x v @auto_pad SAME_UPPER @strides 3 3",   "4x3x3" },
        { IN4 "w v 4 3 3 3; Conv y x v @dilations 2 2 @auto_pad NOTSET",     "4x4x4" },
        { "in x 1 2 5 5 5; w v 3 2 2 2 2; Conv y x v",                       "3x4x4x4" },
        { IN4 "MaxPool y x @kernel_shape 3 3 @strides 2 2 @ceil_mode 1",     "3x4x4" },
        { IN4 "AveragePool y x @kernel_shape 3 3 @strides 2 2",              "3x3x3" },
        { IN4 "GlobalAveragePool y x",                                       "3x1x1" },
        /* matrices */
        { IN2 "w v 4 6; w b 6; Gemm y x v b",                                "6" },
        { IN2 "w v 6 4; Gemm y x v @transB 1",                               "6" },
        { "in x 1 1; in z 1 5; Gemm y x z @transA 1",                        "5" },
        { "in x 1 2 3 4; in z 1 1 4 5; MatMul y x z",                        "2x3x5" },
        { "in x 1 3 4; w v 4 5; MatMul y x v",                               "3x5" },
        { "in x 1 3 4; w v 1 4 5; MatMul y x v",                             "3x5" },
        /* elements */
        { IN4 "w v 3 1 1; Add y x v",                                        "3x8x8" },
        { IN4 "Mul y x -",                                                   "3x8x8" },
        { "w v 2 1 8; in x 1 8; Add y v x",                                  "1x8" },
        { IN4 "w s 3; BatchNormalization y x s s s s",                       "3x8x8" },
        { IN2 "w s 4; LayerNormalization y x s s",                           "4" },
        { IN2 "w s; Mul y x s; Softmax z y",                                 "4" },
        { "in x N T 4; Relu y x",                                            "128x4" },
        { "in x 1 2 2 2 2 2 2 2; Relu y x",                                  "4x2x2x2x2x2" },
        { "in x 7; Relu y x",                                                "1" },
        { "in x; Relu y x",                                                  "1" },
        /* moves */
        { "in x 1 6; w v 100 16; Gather y v x",                              "6x16" },
        { IN4 "c k 1; Gather y x k @axis 1",                                 "8x8" },
        { IN4 "c k 0 1; Gather y x k @axis -1",                              "3x8x2" },
        { IN4 "Concat y x x @axis 1",                                        "6x8x8" },
        { IN4 "Concat y x x @axis -1",                                       "3x8x16" },
        { IN4 "Flatten y x",                                                 "192" },
        { IN4 "Flatten y x @axis -2",                                        "64" },
        { IN4 "c k 0 -1; Reshape y x k",                                     "192" },
        { IN4 "c32 k 1 3 64; Reshape y x k",                                 "3x64" },
        { "in x 16 4; c k 16 2 2; Reshape y x k",                            "2x2" },
        { IN4 "Transpose y x @perm 0 2 3 1",                                 "8x8x3" },
        { "in x 1 3 1; Transpose y x",                                       "3x1" },
        { IN4 "ReduceMean y x @axes 2 3",                                    "3x1x1" },
        { IN4 "ReduceMean y x @axes 2 -1 @keepdims 0",                       "3" },
        { IN4 "ReduceSum y x",                                               "1x1x1" },
        { IN4 "c k 2 3; ReduceMax y x k @keepdims 0",                        "3" },
        { IN4 "ReduceMax y x @axes " MOST " " LEAST,                         "3x8x8" },
        { "in x 1 1 3 1; Squeeze y x @axes 1",                               "3x1" },
        { "in x 1 3 1 3; Squeeze y x",                                       "3" },
        { IN2 "Unsqueeze y x @axes 1",                                       "1x4" },
        { IN2 "c k -1; Unsqueeze y x k",                                     "4x1" },
        { IN4 "c f 1; c t 3; c a 1; Slice y x f t a",                        "2x8x8" },
        { IN4 "c f 0 -2; c t 9 " MOST "; Slice y x f t",                     "2x8x8" },
        { IN4 "c f " LEAST "; c t 2; c a -1; Slice y x f t a",               "3x8x2" },
        /* what shapes are computed from */
        { IN4 "Shape s x; Reshape y x s",                                    "3x8x8" },
        { IN4 "Shape s x; c k 0 -3; Gather p s k; c l -1; Concat r p l; Reshape y x r",      "3x64" },
        { IN4 "Shape s x; c a 0; c b 2; Slice p s a b; c l -1; Concat r p l; Reshape y x r", "3x64" },
        { IN4 "Shape s x; c a -9; c b 2; Slice p s a b; c l -1; Concat r p l; Reshape y x r", "3x64" },
        { IN4 "Shape s x; c a 9; c b 99; Slice p s a b; c l 1 3 -1; Concat r l p; Reshape y x r", "3x64" },
        { IN4 "Shape s x; c a 3; c b 1; Slice p s a b; c l 1 3 -1; Concat r l p; Reshape y x r", "3x64" },
        { IN4 "Shape s x; c k 1; Mul m s k; Div n k k; Mul o n m; Reshape y x o",            "3x8x8" },
        { IN4 "Shape s x; c a -2; c b 99; Slice p s a b; Identity q p; c l 1 3; Concat r l q; Cast t r; Reshape y x t", "3x8x8" },
        { IN4 "Constant k @value 1 192; Reshape y x k",                      "192" },
        { IN4 "c a 1 100; c b 0 92; Add k a b; Reshape y x k",               "192" },
        { IN4 "c a 1 200; c b 0 8; Sub k a b; Reshape y x k",                "192" },
        { IN4 "c a 1 96; c b 1 2; Mul k a b; Reshape y x k",                 "192" },
        { IN4 "c a 2 384; c b 2; Div k a b; Reshape y x k",                  "192" },
        { IN4 "c a 2; c b 2 384; Div q b a; Unsqueeze k q; Squeeze l k; Reshape y x l", "192" },
};
static const struct {
        const char *model, *says;
} refused[] = {
        { IN4 "LSTM y x",                                                    "operator LSTM '': is not one that is known; describe the network as JSON" },
        { IN4 "Relu y z",                                                    "operator Relu '': the shape of its input is not known" },
        { IN4 "Relu - x",                                                    "operator Relu '': has no output" },
        { IN4 "Relu",                                                        "operator Relu '': has no output" },
        { IN4,                                                               "operators: must not be empty; give at least one" },
        { "in x 1 1 1 1 1 1 1 1 1; Relu y x",                                "input 'x': has no shape, or more than 8 dimensions" },
        { "bare x; Relu y x",                                                "input 'x': has no shape, or more than 8 dimensions" },
        { "in x 1 1099511627777; Relu y x",                                  "input 'x': has a size that cannot be" },
        { IN2 "w v 1 1 1 1 1 1 1 1 1; Relu y x",                             "initializer 'v': has more than 8 dimensions" },
        { IN2 "w v -1; Relu y x",                                            "initializer 'v': has a size that cannot be" },
        { IN2 "w v 1099511627777; Relu y x",                                 "initializer 'v': has a size that cannot be" },
        { IN2 "w v 0; Relu y v",                                             "an output that cannot be" },
        { "in x 1 1099511627776 512; Relu y x",                              "an output that cannot be" },
        { "in x 1 1099511627776 1099511627776; Relu y x",                    "an output that cannot be" },
        /* windows */
        { IN4 "Conv y x",                                                    "weights that do not fit the input" },
        { IN4 "w v 4 3; Conv y x v",                                         "weights that do not fit the input" },
        { IN4 "w v 4 3 3; Conv y x v",                                       "weights that do not fit the input" },
        { "in x 1 1 1 1 1 1; w v 1 1 1 1 1 1; Conv y x v",                   "weights that do not fit the input" },
        { IN4 "w v 4 2 3 3; Conv y x v",                                     "weights that do not fit the input" },
        { IN4 "w v 4 3 3 3; Conv y x v @group 0",                            "weights that do not fit the input" },
        { IN4 "w v 4 3 3 3; Conv y x v @group " MOST,                        "weights that do not fit the input" },
        { IN4 "w v 4 3 3 3; Conv y x v @strides 0 1",                        "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @strides 1 1048577",                  "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @dilations 0 1",                      "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @dilations 1 1048577",                "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @pads -1 0 0 0",                      "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @pads 1048577 0 0 0",                 "a window that cannot be" },
        { IN4 "w v 4 3 3 3; Conv y x v @pads " MOST " 0 " MOST " 0",         "a window that cannot be" },
        { IN4 "w v 4 3 0 3; Conv y x v",                                     "a window that cannot be" },
        { IN4 "w v 4 3 1048577 3; Conv y x v",                               "a window that cannot be" },
        { IN4 "w v 4 3 9 3; Conv y x v",                                     "a window larger than its input" },
        { IN4 "MaxPool y x",                                                 "a kernel_shape that does not fit the input" },
        { IN4 "MaxPool y x @kernel_shape 3",                                 "a kernel_shape that does not fit the input" },
        { IN2 "MaxPool y x @kernel_shape",                                   "a kernel_shape that does not fit the input" },
        /* matrices, elements */
        { IN2 "Gemm y x",                                                    "matrices that do not fit each other" },
        { IN4 "w v 4 6; Gemm y x v",                                         "matrices that do not fit each other" },
        { IN2 "w v 4; Gemm y x v",                                           "matrices that do not fit each other" },
        { IN2 "w v 6 4; Gemm y x v",                                         "matrices that do not fit each other" },
        { IN2 "MatMul y x",                                                  "matrices that do not fit each other" },
        { "in x 4; w v 4 6; MatMul y x v",                                   "matrices that do not fit each other" },
        { IN2 "w v 4; MatMul y x v",                                         "matrices that do not fit each other" },
        { IN2 "w v 5 6; MatMul y x v",                                       "matrices that do not fit each other" },
        { "in x 1 2 3 4; in z 1 3 4 5; MatMul y x z",                        "shapes that do not fit each other" },
        { IN4 "w v 3 8; Add y x v",                                          "shapes that do not fit each other" },
        { "in x 4; BatchNormalization y x",                                  "an input without channels" },
        /* moves */
        { IN4 "Gather y x",                                                  "an axis that is not there" },
        { IN4 "c k 0; Gather y x k @axis 4",                                 "an axis that is not there" },
        { IN4 "c k 0; Gather y x k @axis " LEAST,                            "an axis that is not there" },
        { "in x 1 1 1 1 1 1 1 1; in z 1 1; Gather y x z",                    "an axis that is not there" },
        { IN4 "Concat y x @axis 4",                                          "an axis that is not there" },
        { IN4 "Concat y x @axis -5",                                         "an axis that is not there" },
        { IN4 "Concat y x z",                                                "parts that do not fit each other" },
        { IN4 "w v 3; Concat y x v",                                         "parts that do not fit each other" },
        { "in x 1 1099511627776 1099511627776; Flatten y x",                 "more elements than can be counted" },
        { IN4 "Reshape y x",                                                 "a shape that is not constant; export the model with fixed sizes" },
        { IN4 "Reshape y x x",                                               "a shape that is not constant; export the model with fixed sizes" },
        { IN4 "c k 1 1 1 1 1 1 1 1 1; Reshape y x k",                        "a shape that is not constant; export the model with fixed sizes" },
        { "in x 1 1099511627776 1099511627776; c k 0 -1; Reshape y x k",     "a shape that is not constant; export the model with fixed sizes" },
        { IN4 "c k -1 -1; Reshape y x k",                                    "a shape that cannot be" },
        { IN4 "c k -2; Reshape y x k",                                       "a shape that cannot be" },
        { IN4 "c k 1 1 1 1 0; Reshape y x k",                                "a shape that cannot be" },
        { IN4 "c k " MOST " 2; Reshape y x k",                               "a shape that cannot be" },
        { IN4 "c k 1 5 -1; Reshape y x k",                                   "a shape with another number of elements" },
        { IN4 "c k 1 96; Reshape y x k",                                     "a shape with another number of elements" },
        { IN4 "Transpose y x @perm 0 1 2 4",                                 "an order that cannot be" },
        { IN4 "Transpose y x @perm 0 1 2 -1",                                "an order that cannot be" },
        { IN4 "Unsqueeze y x",                                               "axes that are not constant, or too many" },
        { IN4 "Unsqueeze y x x",                                             "axes that are not constant, or too many" },
        { IN4 "Unsqueeze y x @axes 0 1 2 3 4",                               "axes that are not constant, or too many" },
        { IN4 "Unsqueeze y x @axes 0 0",                                     "an axis twice" },
        { IN4 "c f 0; c t 1; c a 4; Slice y x f t a",                        "an axis that is not there" },
        { IN4 "c f 0; c t 1; c a -5; Slice y x f t a",                       "an axis that is not there" },
        { IN4 "c f 1; c t 1; Slice y x f t",                                 "nothing left" },
        { IN4 "Slice y x",                                                   "bounds that are not constant, or steps" },
        { IN4 "c f 1; Slice y x f x",                                        "bounds that are not constant, or steps" },
        { IN4 "c t 1; Slice y x x t",                                        "bounds that are not constant, or steps" },
        { IN4 "c f 0; c t 1; Slice y x f t x",                               "bounds that are not constant, or steps" },
        { IN4 "c f 0; c t 1; c a 1; Slice y x f t a a",                      "bounds that are not constant, or steps" },
        { IN4 "c f 0; c t 1 2; Slice y x f t",                               "bounds that are not constant, or steps" },
        /* what shapes cannot be computed from: the operator is then one of the network, and its input no shape of one */
        { IN4 "Shape s z; Reshape y x s",                                    "operator Shape '': the shape of its input is not known" },
        { IN4 "Shape s x; c k 4; Gather p s k; Reshape y x p",               "a shape that is not constant" },
        { IN4 "Shape s x; c k -5; Gather p s k; Reshape y x p",              "a shape that is not constant" },
        { IN4 "c a 1 2; c b 1 2 3; Add k a b; Reshape y x k",                "shapes that do not fit each other" },
        { IN4 "c a " MOST "; c b 1; Add k a b; Reshape y x k",               "a shape that is not constant" },
        { IN4 "c a " LEAST "; c b 1; Sub k a b; Reshape y x k",              "a shape that is not constant" },
        { IN4 "c a " MOST "; c b 2; Mul k a b; Reshape y x k",               "a shape that is not constant" },
        { IN4 "c a 4; c b 0; Div k a b; Reshape y x k",                      "a shape that is not constant" },
        { IN4 "c a 1 2; c b 0 0; Slice k a b b; Reshape y x k",              "nothing left" },
        { IN4 "Constant k; Reshape y x k",                                   "operator Constant '': the shape of its input is not known" },
        { IN4 "cut64 k 2; Reshape y x k",                                    "a shape that is not constant" },
        { IN4 "cut32 k 2; Reshape y x k",                                    "a shape that is not constant" },
        { IN4 "w k 2; Reshape y x k",                                        "a shape that is not constant" },
        { IN4 "cut64 k 65; Reshape y x k",                                   "a shape that is not constant" },
};
/* clang-format on */

static void number(struct text *out, uint64_t n)
{
        for (; n >= 128; n >>= 7)
                text_append_char(out, (char) (n | 128));
        text_append_char(out, (char) n);
}

static void whole(struct text *out, unsigned field, uint64_t n)
{
        number(out, field << 3);
        number(out, n);
}

static void bytes(struct text *out, unsigned field, const char *content, size_t size)
{
        number(out, field << 3 | 2);
        number(out, size);
        text_append_bytes(out, content, size);
}

static void string(struct text *out, unsigned field, const char *content)
{
        bytes(out, field, content, strlen(content));
}

static void part(struct text *out, unsigned field, struct text *content)
{
        bytes(out, field, content->data != NULL ? content->data : "", content->size_bytes);
        text_free(content);
}

static bool is_number(const char *word)
{
        return isdigit((unsigned char) word[*word == '-']) != 0;
}

static void input(struct text *graph, char *name, char **words)
{
        struct text shape = { 0 }, type = { 0 }, tensor = { 0 }, info = { 0 };

        for (char *word; (word = strsep(words, " ")) != NULL;) {
                struct text dimension = { 0 };

                if (is_number(word))
                        whole(&dimension, 1, strtoull(word, NULL, 10));
                else
                        string(&dimension, 2, word);
                part(&shape, 1, &dimension);
        }
        part(&tensor, 2, &shape);
        part(&type, 1, &tensor);
        string(&info, 1, name);
        part(&info, 2, &type);
        part(graph, 11, &info);
}

/* @kind: "w": floats of these sizes; "c", "c32": these numbers; "cut64", "cut32": as many, but they are
 * missing */
static void tensor(struct text *out, const char *kind, const char *name, char **words)
{
        bool numbers = kind[0] == 'c' && kind[1] != 'u', wide = strstr(kind, "32") == NULL;
        struct text raw = { 0 };
        size_t count = 0;

        for (char *word; (word = strsep(words, " ")) != NULL && *word != '@'; count++) {
                int64_t n = strtoll(word, NULL, 10);

                if (numbers)
                        text_append_bytes(&raw, (const char *) &n, wide ? 8 : 4); /* little-endian, as ours */
                else
                        whole(out, 1, (uint64_t) n);
        }
        if (numbers && count != 1)
                whole(out, 1, count);
        whole(out, 2, kind[0] == 'w' ? 1 : wide ? 7 : 6);
        string(out, 8, name);
        part(out, 9, &raw);
}

static void attribute(struct text *node, const char *name, char **words)
{
        struct text out = { 0 }, value = { 0 };
        char *at;

        string(&out, 1, name);
        if (strcmp(name, "value") == 0) {
                tensor(&value, "c", "", words);
                part(&out, 5, &value);
        }
        while ((at = *words) != NULL && *at != '@') {
                (void) strsep(words, " ");
                if (!is_number(at))
                        string(&out, 4, at);
                else if (text_starts_with(name, "ax") || name[strlen(name) - 1] == 's' || name[0] == 'p' ||
                         text_ends_with(name, "_shape"))
                        whole(&out, 8, strtoull(at, NULL, 10));
                if (is_number(at))
                        whole(&out, 3, strtoull(at, NULL, 10));
        }
        part(node, 5, &out);
}

static void node(struct text *graph, const char *type, char **words)
{
        struct text out = { 0 };
        unsigned field = 2; /* the output, then the inputs */

        for (char *word; (word = strsep(words, " ")) != NULL;) {
                if (*word == '@') {
                        attribute(&out, word + 1, words);
                } else {
                        string(&out, field, strcmp(word, "-") == 0 ? "" : word);
                        field = 1;
                }
        }
        string(&out, 4, type);
        part(graph, 1, &out);
}

static int decode(const char *model, struct network *ret, struct err *err)
{
        CLEANUP(free_p) char *copy = strdup(model);
        CLEANUP(text_free) struct text file = { 0 };
        struct text graph = { 0 }, initializer = { 0 };
        char *rest = copy;

        for (char *words; (words = strsep(&rest, ";")) != NULL;) {
                char *kind;

                words += strspn(words, " ");
                kind = strsep(&words, " ");
                if (kind[0] == '\0')
                        continue;
                if (strcmp(kind, "in") == 0) {
                        input(&graph, strsep(&words, " "), &words);
                } else if (strcmp(kind, "bare") == 0) {
                        string(&initializer, 1, words);
                        part(&graph, 11, &initializer);
                } else if (islower((unsigned char) kind[0])) {
                        const char *name = strsep(&words, " ");

                        tensor(&initializer, kind, name, &words);
                        part(&graph, 5, &initializer);
                } else {
                        node(&graph, kind, &words);
                }
        }
        part(&file, 7, &graph);
        return network_onnx_decode(file.data, file.size_bytes, 128, ret, err);
}

static void what_is_taken_has_its_shape(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                CLEANUP(text_free) struct text output = { 0 };
                const struct network_operation *last;
                struct network network;
                struct err err = { 0 };

                if (decode(taken[i].model, &network, &err) < 0)
                        fail_msg("%s: %s", taken[i].model, err.msg);
                last = &network.operators[network.count - 1];
                for (size_t d = 0; d < last->rank; d++)
                        text_printf(&output, "%s%llu", d > 0 ? "x" : "",
                                    (unsigned long long) last->output[d]);
                if (strcmp(output.data, taken[i].output) != 0)
                        fail_msg("%s: %s, not %s", taken[i].model, output.data, taken[i].output);
                network_free(&network);
        }
}

static void what_is_refused_is_said(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct network network = { 0 };
                struct err err = { 0 };

                if (decode(refused[i].model, &network, &err) == 0)
                        fail_msg("%s: was taken", refused[i].model);
                if (strstr(err.msg, refused[i].says) == NULL)
                        fail_msg("%s: '%s', not '%s'", refused[i].model, err.msg, refused[i].says);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_taken_has_its_shape),
                cmocka_unit_test(what_is_refused_is_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
