/* Compares sums of products by cross multiplication, in one 128-bit number a side where that is enough and in
 * many words where it is not. */
#include "planner/shards/exact.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>

#define WORDS (EXACT_BITS / 64)

static void append_factor(struct exact_product *product, uint64_t factor)
{
        if (factor == 1)
                return;
        assert(product->count < EXACT_FACTORS);
        product->factor[product->count++] = factor;
}

struct exact_product exact_product(struct decimal decimal, uint64_t times)
{
        struct exact_product product = { .tens = decimal.exponent };

        append_factor(&product, decimal.digits);
        append_factor(&product, times);
        return product;
}

static struct exact_product multiply(const struct exact_product *a, const struct exact_product *b)
{
        struct exact_product product = *a;

        for (size_t i = 0; i < b->count; i++)
                append_factor(&product, b->factor[i]);
        product.tens += b->tens;
        return product;
}

struct exact_time exact_scale(struct exact_time time, uint64_t times)
{
        for (size_t i = 0; i < time.count; i++)
                append_factor(&time.term[i], times);
        return time;
}

struct exact_time exact_add(const struct exact_time *a, const struct exact_time *b)
{
        struct exact_time sum = { .over = multiply(&a->over, &b->over) };

        assert(a->count + b->count <= EXACT_TERMS);
        for (size_t i = 0; i < a->count; i++)
                sum.term[sum.count++] = multiply(&a->term[i], &b->over);
        for (size_t i = 0; i < b->count; i++)
                sum.term[sum.count++] = multiply(&b->term[i], &a->over);
        return sum;
}

/* One side of a comparison: a time's terms x what the other is over. */
struct side {
        struct exact_product term[EXACT_TERMS];
        size_t count;
};

static struct side cross(const struct exact_time *time, const struct exact_product *other_over,
                         int *least_tens)
{
        struct side side = { .count = time->count };

        for (size_t i = 0; i < time->count; i++) {
                side.term[i] = multiply(&time->term[i], other_over);
                if (side.term[i].tens < *least_tens)
                        *least_tens = side.term[i].tens;
        }
        return side;
}

/* The side in units of 10^least_tens. Return: false where 128 bits do not hold it. */
static bool sum_small(const struct side *side, int least_tens, unsigned __int128 *ret)
{
        *ret = 0;
        for (size_t i = 0; i < side->count; i++) {
                const struct exact_product *term = &side->term[i];
                unsigned __int128 value = 1;

                for (size_t k = 0; k < term->count; k++)
                        if (__builtin_mul_overflow(value, (unsigned __int128) term->factor[k], &value))
                                return false;
                for (int tens = term->tens; value != 0 && tens > least_tens; tens--)
                        if (__builtin_mul_overflow(value, (unsigned __int128) 10, &value))
                                return false;
                if (__builtin_add_overflow(*ret, value, ret))
                        return false;
        }
        return true;
}

/* A whole number of EXACT_BITS, little end first. */
struct wide {
        uint64_t word[WORDS];
};

static void wide_multiply(struct wide *wide, uint64_t factor)
{
        uint64_t carry = 0;

        for (size_t i = 0; i < WORDS; i++) {
                unsigned __int128 sum = (unsigned __int128) wide->word[i] * factor + carry;

                wide->word[i] = (uint64_t) sum;
                carry = (uint64_t) (sum >> 64);
        }
        assert(carry == 0);
}

static void wide_add(struct wide *to, const struct wide *wide)
{
        uint64_t carry = 0;

        for (size_t i = 0; i < WORDS; i++) {
                unsigned __int128 sum = (unsigned __int128) to->word[i] + wide->word[i] + carry;

                to->word[i] = (uint64_t) sum;
                carry = (uint64_t) (sum >> 64);
        }
        assert(carry == 0);
}

static struct wide sum_wide(const struct side *side, int least_tens)
{
        struct wide sum = { 0 };

        for (size_t i = 0; i < side->count; i++) {
                const struct exact_product *term = &side->term[i];
                struct wide value = { { 1 } };

                for (size_t k = 0; k < term->count; k++)
                        wide_multiply(&value, term->factor[k]);
                for (int tens = term->tens; tens > least_tens; tens--)
                        wide_multiply(&value, 10);
                wide_add(&sum, &value);
        }
        return sum;
}

static int compare_wide(const struct side *a, const struct side *b, int least_tens)
{
        struct wide left = sum_wide(a, least_tens), right = sum_wide(b, least_tens);

        for (size_t i = WORDS; i-- > 0;)
                if (left.word[i] != right.word[i])
                        return left.word[i] < right.word[i] ? -1 : 1;
        return 0;
}

int exact_compare(const struct exact_time *a, const struct exact_time *b)
{
        int least_tens = INT_MAX;
        struct side left = cross(a, &b->over, &least_tens), right = cross(b, &a->over, &least_tens);
        unsigned __int128 small_left, small_right;

        if (sum_small(&left, least_tens, &small_left) && sum_small(&right, least_tens, &small_right))
                return (small_left > small_right) - (small_left < small_right);
        return compare_wide(&left, &right, least_tens);
}

uint64_t exact_common_divisor(uint64_t a, uint64_t b)
{
        while (b != 0) {
                uint64_t rest = a % b;

                a = b;
                b = rest;
        }
        return a;
}
