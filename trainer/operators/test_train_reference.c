/* The reference's gradients against differences of what it gives forward: no formula is shared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trainer/operators/reference.h"
#include "trainer/random.h"

#define STEP  1e-6
#define SCALE 0.25
#define ROOM  4096

enum { INPUT, OTHER, WEIGHT, BIAS, SIDES };

struct fixture {
        struct model_node node;
        size_t count;
        size_t sizes[SIDES];
        double values[SIDES][ROOM], gradients[SIDES][ROOM], y[ROOM], dy[ROOM];
        int32_t labels[8];
};

static struct reference_call call_of(struct fixture *f)
{
        return (struct reference_call){ .node = &f->node,
                                        .count = f->count,
                                        .x = f->values[INPUT],
                                        .other = f->values[OTHER],
                                        .weight = f->values[WEIGHT],
                                        .bias = f->values[BIAS],
                                        .labels = f->labels,
                                        .y = f->y,
                                        .dy = f->dy,
                                        .scale = SCALE,
                                        .dx = f->gradients[INPUT],
                                        .dweight = f->gradients[WEIGHT],
                                        .dbias = f->gradients[BIAS] };
}

/* What the gradients are of: the weighted sum of the outputs, or the scaled loss. */
static double objective(struct fixture *f)
{
        struct reference_call c = call_of(f);
        double sum = 0;

        assert_int_equal(reference_forward(&c), 0);
        if (model_has(&f->node, OP_CROSS_ENTROPY))
                return SCALE * c.loss;
        for (size_t i = 0; i < f->count * shape_size(&f->node.out); i++)
                sum += f->dy[i] * f->y[i];
        return sum;
}

static double difference_of(struct fixture *f, int side, size_t i)
{
        double before = f->values[side][i], up, down;

        f->values[side][i] = before + STEP;
        up = objective(f);
        f->values[side][i] = before - STEP;
        down = objective(f);
        f->values[side][i] = before;
        return (up - down) / (2 * STEP);
}

static void prepare(struct fixture *f, enum op op)
{
        struct random_source r = random_for(1, op_name(op), 0);

        *f = (struct fixture){ .node = { .op = op, .in = { 6, 5, 2 } }, .count = 3 };
        f->node.part_count = op_parts(op, f->node.parts);
        if (op == OP_EMBEDDING)
                f->node.in = (struct shape){ 1, 1, 4 };
        else if (model_has(&f->node, OP_SOFTMAX) || model_has(&f->node, OP_CROSS_ENTROPY))
                f->node.in = (struct shape){ 1, 1, 60 };
        model_size_node(&f->node, 5, 3, 11);
        f->sizes[INPUT] = f->count * shape_size(&f->node.in);
        f->sizes[OTHER] = model_has(&f->node, OP_ADD) ? f->sizes[INPUT] : 0;
        f->sizes[WEIGHT] = f->node.weight_count;
        f->sizes[BIAS] = f->node.bias_count;
        for (int side = 0; side < SIDES; side++) {
                assert_true(f->sizes[side] <= ROOM);
                for (size_t i = 0; i < f->sizes[side]; i++)
                        f->values[side][i] =
                                side == INPUT && op == OP_EMBEDDING       ? (double) random_below(&r, 11)
                                : side == INPUT && op == OP_CROSS_ENTROPY ? 0.1 + (double) random_unit(&r)
                                                                          : 2 * (double) random_unit(&r) - 1;
        }
        for (size_t i = 0; i < f->count * shape_size(&f->node.out); i++)
                f->dy[i] = 2 * (double) random_unit(&r) - 1;
        for (size_t i = 0; i < f->count; i++)
                f->labels[i] = (int32_t) random_below(&r, shape_size(&f->node.out));
}

static void gradients_are_differences(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        (void) state;
        assert_non_null(f);
        for (int op = 0; op < OP_COUNT; op++) {
                struct reference_call c;

                if (op == OP_ACTIVATION) /* its gradient is had by differences already */
                        continue;
                prepare(f, (enum op) op);
                c = call_of(f);
                assert_int_equal(reference_backward(&c), 0);
                for (int side = op == OP_EMBEDDING ? WEIGHT : INPUT; side < SIDES; side++)
                        for (size_t i = 0; i < f->sizes[side]; i++) {
                                double wanted = difference_of(f, side, i);
                                double got = f->gradients[side == OTHER ? INPUT : side][i];

                                if (fabs(got - wanted) > 1e-5)
                                        fail_msg("%s, side %d, %zu: %g instead of %g", op_name((enum op) op),
                                                 side, i, got, wanted);
                        }
        }
        free(f);
}

/* A parameter's gradient comes on top of what was there, an input's in its place. */
static void gradients_are_added(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        struct reference_call c;
        double weight, input;

        (void) state;
        assert_non_null(f);
        prepare(f, OP_CONVOLUTION_BIAS_RELU_POOL);
        c = call_of(f);
        assert_int_equal(reference_backward(&c), 0);
        weight = f->gradients[WEIGHT][7];
        input = f->gradients[INPUT][7];
        assert_int_equal(reference_backward(&c), 0);
        assert_true(weight != 0 && fabs(f->gradients[WEIGHT][7] - 2 * weight) < 1e-12);
        assert_true(f->gradients[INPUT][7] == input);
        free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(gradients_are_differences),
                cmocka_unit_test(gradients_are_added),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
